#ifndef CDARWIN_H
#define CDARWIN_H

// Darwin's structures, under names that Glibc does not have. Swift sees them under Darwin's names.

#include <stdint.h>

#define NAMED(name) __attribute__((swift_name(#name)))

struct shim_timespec {
  long tv_sec;
  long tv_nsec;
} NAMED(timespec);

struct shim_timeval {
  long tv_sec;
  int32_t tv_usec;
} NAMED(timeval);

struct shim_stat {
  int32_t st_dev;
  uint16_t st_mode;
  uint16_t st_nlink;
  uint64_t st_ino;
  uint32_t st_uid;
  uint32_t st_gid;
  int32_t st_rdev;
  struct shim_timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
  int64_t st_size;
  int64_t st_blocks;
  int32_t st_blksize;
  uint32_t st_flags;
  uint32_t st_gen;
  int32_t st_lspare;
  int64_t st_qspare[2];
} NAMED(stat);

struct shim_statfs {
  uint32_t f_bsize;
  int32_t f_iosize;
  uint64_t f_blocks, f_bfree, f_bavail, f_files, f_ffree;
  int32_t f_fsid[2];
  uint32_t f_owner, f_type, f_flags, f_fssubtype;
  char f_fstypename[16];
  char f_mntonname[1024];
  char f_mntfromname[1024];
  uint32_t f_flags_ext;
  uint32_t f_reserved[7];
} NAMED(statfs);

struct shim_statvfs {
  unsigned long f_bsize, f_frsize;
  uint32_t f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_favail;
  unsigned long f_fsid, f_flag, f_namemax;
} NAMED(statvfs);

struct shim_fstore {
  uint32_t fst_flags;
  int32_t fst_posmode;
  int64_t fst_offset, fst_length, fst_bytesalloc;
} NAMED(fstore_t);

struct shim_dirent {
  uint64_t d_ino;
  uint64_t d_seekoff;
  uint16_t d_reclen;
  uint16_t d_namlen;
  uint8_t d_type;
  char d_name[1024];
} NAMED(dirent);

/// Swift sees a complete structure, as on a Mac.
struct shim_DIR {
  void *stream;
  struct shim_dirent entry;
} NAMED(DIR);

struct shim_rlimit {
  uint64_t rlim_cur, rlim_max;
} NAMED(rlimit);

struct shim_rusage {
  struct shim_timeval ru_utime, ru_stime;
  long ru_maxrss, ru_ixrss, ru_idrss, ru_isrss, ru_minflt, ru_majflt, ru_nswap;
  long ru_inblock, ru_oublock, ru_msgsnd, ru_msgrcv, ru_nsignals, ru_nvcsw, ru_nivcsw;
} NAMED(rusage);

struct shim_mutex {
  long __sig;
  char __opaque[56];
} NAMED(pthread_mutex_t);

struct shim_mutexattr {
  long __sig;
  char __opaque[8];
} NAMED(pthread_mutexattr_t);

struct shim_cond {
  long __sig;
  char __opaque[40];
} NAMED(pthread_cond_t);

struct shim_condattr {
  long __sig;
  char __opaque[8];
} NAMED(pthread_condattr_t);

struct shim_thread {
  long __sig;
  void *__cleanup_stack;
  char __opaque[8176];
} NAMED(_opaque_pthread_t);

union shim_handler {
  void (*__sa_handler)(int);
  void (*__sa_sigaction)(int, void *, void *);
} NAMED(__sigaction_u);

struct shim_sigaction {
  union shim_handler __sigaction_u;
  uint32_t sa_mask;
  int32_t sa_flags;
} NAMED(sigaction);

// What Glibc's module does not expose.

int shim_exchange(int directory, const char *name, int otherDirectory, const char *other);
/// fallocate(2) that keeps the length of the file.
int shim_allocate(int descriptor, int64_t offset, int64_t count);
/// The magic number of a filesystem; -1 with `errno`.
int64_t shim_magic(int descriptor);
// Swift cannot call those of Glibc: their structures have the same names.
int shim_flock(int descriptor, int operation);
int shim_sigaction(int signal, const struct shim_sigaction *action, struct shim_sigaction *old);
int64_t shim_seek_data(int descriptor, int64_t offset);

#undef NAMED
#endif
