#define _GNU_SOURCE
#include "CDarwin.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int shim_exchange(int directory, const char *name, int otherDirectory, const char *other) {
  return (int)syscall(SYS_renameat2, directory, name, otherDirectory, other, 2u);
}

int shim_allocate(int descriptor, int64_t offset, int64_t count) {
  return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, count);
}

int64_t shim_magic(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) != 0 ? -1 : (int64_t)(uint32_t)status.f_type;
}

int64_t shim_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int shim_flock(int descriptor, int operation) { return flock(descriptor, operation); }

enum { DARWIN_RESTART = 2, DARWIN_RESETHAND = 4 };

int shim_sigaction(int signal, const struct shim_sigaction *action, struct shim_sigaction *old) {
  struct sigaction own, before;
  if (action) {
    own = (struct sigaction){.sa_handler = action->__sigaction_u.__sa_handler};
    if (action->sa_flags & DARWIN_RESTART) own.sa_flags |= SA_RESTART;
    if (action->sa_flags & DARWIN_RESETHAND) own.sa_flags |= (int)SA_RESETHAND;
  }
  if (sigaction(signal, action ? &own : NULL, &before) != 0) return -1;
  if (old) *old = (struct shim_sigaction){.__sigaction_u.__sa_handler = before.sa_handler};
  return 0;
}
