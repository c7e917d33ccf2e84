#define _GNU_SOURCE
#include "CCairn.h"

#ifndef CAIRN_DARWIN
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int cairn_fallocate(int descriptor, int64_t offset, int64_t count) {
  return fallocate(descriptor, 0, offset, count);
}

int cairn_probe_fallocate(int descriptor) { return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, 1); }

int64_t cairn_filesystem_magic(int descriptor) {
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return -1;
  return (uint32_t)status.f_type;
}

int64_t cairn_copy_range(int source, int target, int64_t offset, size_t count) {
  return copy_file_range(source, &offset, target, &(int64_t){offset}, count, 0);
}

int cairn_exchange(int directory, const char *name, const char *other) {
  return (int)syscall(SYS_renameat2, directory, name, directory, other, 2u);
}

int cairn_lock_bytes(int descriptor, int kind) {
  // The whole file, whatever its length. `l_pid` must be 0.
  struct flock lock = {.l_type = (short)kind, .l_whence = SEEK_SET};
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}
#endif
