#define _GNU_SOURCE
#include "CCairn.h"

#include <pthread.h>
#include <stdlib.h>

struct start {
  void (*body)(void *);
  void *context;
};

static void *run(void *memory) {
  struct start start = *(struct start *)memory;
  free(memory);
  start.body(start.context);
  return NULL;
}

bool cairn_start_thread(void (*body)(void *), void *context) {
  struct start *start = malloc(sizeof *start);
  if (!start) return false;
  *start = (struct start){body, context};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, start) != 0) {
    free(start);
    return false;
  }
  pthread_detach(thread);
  return true;
}

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
