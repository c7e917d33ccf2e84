#ifndef CCAIRN_H
#define CCAIRN_H

// What Glibc's module does not expose or Swift cannot express.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Whether this processor has the instructions that `cairn_crc32c` uses. Found out before `main`, so
/// that asking is a load (a Swift global costs a call each time).
extern bool cairn_crc32c_support;
static inline bool cairn_crc32c_is_supported(void) { return cairn_crc32c_support; }

/// Continues a CRC32C (Castagnoli, reflected) over `count` bytes. `state` is the running register,
/// without the inversions at begin and end. Call only where supported.
uint32_t cairn_crc32c(uint32_t state, const void *bytes, size_t count);

/// Continues a CRC32C over the eight bytes of `word`, the lowest first. Call only where supported.
uint32_t cairn_crc32c_word(uint32_t state, uint64_t word);

/// Copies `count` bytes that do not overlap, and continues a CRC32C over the copy, as `cairn_crc32c`
/// does: one pass over memory instead of two. Call only where supported.
uint32_t cairn_crc32c_copy(uint32_t state, void *target, const void *source, size_t count);

/// Asks the processor for the cache line at an address, without waiting for it. Any address may be given;
/// one that cannot be read is left alone.
static inline void cairn_prefetch(const void *address) { __builtin_prefetch(address); }

/// fallocate(2), not glibc's posix_fallocate, which would emulate it by touching every block.
/// Returns 0, or -1 with `errno`.
int cairn_fallocate(int descriptor, int64_t offset, int64_t count);
/// The same for the first byte of a file, whose length stays.
int cairn_probe_fallocate(int descriptor);

/// The magic number of the filesystem that the descriptor is on (statfs(2)), or -1 with `errno`.
int64_t cairn_filesystem_magic(int descriptor);

/// copy_file_range(2), to the same offset. Returns how many bytes, or -1 with `errno`.
int64_t cairn_copy_range(int source, int target, int64_t offset, size_t count);

/// fcntl(2) with F_OFD_SETLK over a whole file; `kind` is F_RDLCK, F_WRLCK or F_UNLCK. Returns 0, or -1 with
/// `errno`.
int cairn_lock_bytes(int descriptor, int kind);

/// renameat2(2) with RENAME_EXCHANGE (2) in one directory. Returns 0, or -1 with `errno`.
int cairn_exchange(int directory, const char *name, const char *other);

#endif
