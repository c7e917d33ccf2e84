#ifndef CCAIRN_H
#define CCAIRN_H

// Functions that Glibc's module does not expose or Swift cannot express.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__APPLE__) || defined(CAIRN_DARWIN_SHIM)
#define CAIRN_DARWIN 1
#elif !defined(__GLIBC__)
#error "Cairn runs on Linux with Glibc, and on macOS for development. Docs/Porting.md lists what other systems need."
#endif

/// Whether this processor has the instructions that `cairn_crc32c` uses. Set before `main`, so that
/// a check is one load (a Swift global would cost a call each time).
extern bool cairn_crc32c_support;
static inline bool cairn_crc32c_is_supported(void) { return cairn_crc32c_support; }

/// Updates a CRC32C (Castagnoli, reflected) with `count` bytes. `state` is the running register,
/// without the inversions at the beginning and end. Call only if supported.
uint32_t cairn_crc32c(uint32_t state, const void *bytes, size_t count);

/// Updates a CRC32C with the eight bytes of `word`, the lowest first. Call only if supported.
uint32_t cairn_crc32c_word(uint32_t state, uint64_t word);

/// Copies `count` bytes that do not overlap, and updates a CRC32C with them, as `cairn_crc32c` does:
/// one pass over memory instead of two. Call only if supported.
uint32_t cairn_crc32c_copy(uint32_t state, void *target, const void *source, size_t count);

/// Prefetches the cache line at an address, without waiting for it. Accepts any address, even an unreadable one.
static inline void cairn_prefetch(const void *address) { __builtin_prefetch(address); }

/// fallocate(2), not glibc's posix_fallocate, which would emulate it by touching every block.
/// Returns 0, or -1 with `errno`.
int cairn_fallocate(int descriptor, int64_t offset, int64_t count);
/// fallocate(2) for the first byte of a file, without changing the length of the file.
int cairn_probe_fallocate(int descriptor);

/// The magic number of the filesystem that the descriptor is on (statfs(2)), or -1 with `errno`.
int64_t cairn_filesystem_magic(int descriptor);

/// copy_file_range(2), to the same offset. Returns the number of bytes copied, or -1 with `errno`.
int64_t cairn_copy_range(int source, int target, int64_t offset, size_t count);

/// fcntl(2) with F_OFD_SETLK over a whole file; `kind` is F_RDLCK, F_WRLCK or F_UNLCK. Returns 0, or -1 with
/// `errno`.
int cairn_lock_bytes(int descriptor, int kind);

/// renameat2(2) with RENAME_EXCHANGE (2) in one directory. Returns 0, or -1 with `errno`.
int cairn_exchange(int directory, const char *name, const char *other);

// Pins: objects that readers without locks keep alive (epochs and hazard pointers). Pins.swift has the rules.

/// What one thread keeps alive. Has its own cache lines; other threads write only the two `wanted` fields.
struct cairn_pin_slot {
  /// The epoch when the thread began to read; 0 while it does not read.
  uint64_t epoch;
  /// An object that the thread holds beyond its pins, or 0.
  uint64_t hazard;
  /// Whether a thread awaits the end of the pin, and the release of the object.
  uint32_t wanted_pin, wanted_hazard;
  /// How many pins of the thread have begun but not ended.
  uint32_t depth;
  uint32_t is_taken;
  struct cairn_pin_slot *next;
  /// Starts at 0. No two live threads have the same number.
  uint64_t number;
  uint64_t apart[10];
};

/// The slot of this thread; NULL until the thread takes one.
extern __thread struct cairn_pin_slot *cairn_own_pin_slot;
/// Incremented for every retired object.
extern uint64_t cairn_pin_epoch;
/// Whether readers must order their own stores, because the kernel does not do it for them (membarrier(2)).
extern bool cairn_pins_need_fences;

/// Gives this thread a slot, until the thread ends. NULL if there is no memory.
struct cairn_pin_slot *cairn_take_pin_slot(void);

static inline void cairn_pin_fence(void) {
  if (cairn_pins_need_fences) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  else __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/// A number that no other live thread has; 0 for all threads without a slot.
static inline uint64_t cairn_thread_number(void) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  return slot || (slot = cairn_take_pin_slot()) ? slot->number : 0;
}

/// Begins a pin of this thread and returns its slot; NULL if the thread cannot have one.
static inline struct cairn_pin_slot *cairn_pin(void) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  if (!slot && !(slot = cairn_take_pin_slot())) return NULL;
  if (slot->depth++ == 0) {
    uint64_t epoch = __atomic_load_n(&cairn_pin_epoch, __ATOMIC_ACQUIRE);
    __atomic_store_n(&slot->epoch, epoch, __ATOMIC_RELEASE);  // SAFETY: replaces the 0 that ended the last pin's reads.
    cairn_pin_fence();
  }
  return slot;
}

/// Returns whether a `wanted` field is set, and clears it.
static inline bool cairn_is_wanted(uint32_t *wanted) {
  cairn_pin_fence();
  if (__builtin_expect(!__atomic_load_n(wanted, __ATOMIC_RELAXED), 1)) return false;
  __atomic_store_n(wanted, 0, __ATOMIC_RELEASE);
  return true;
}

/// Ends the pin that began last. Returns whether its end is awaited.
static inline bool cairn_unpin(struct cairn_pin_slot *slot) {
  if (--slot->depth > 0) return false;
  __atomic_store_n(&slot->epoch, 0, __ATOMIC_RELEASE);
  return cairn_is_wanted(&slot->wanted_pin);
}

/// Holds an object that a pin of this thread reaches, beyond that pin. Returns the slot; NULL if the slot already
/// holds one.
static inline struct cairn_pin_slot *cairn_hold(const void *object) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  if (!slot || __atomic_load_n(&slot->hazard, __ATOMIC_RELAXED)) return NULL;
  __atomic_store_n(&slot->hazard, (uint64_t)(uintptr_t)object, __ATOMIC_RELEASE);
  return slot;
}

/// Releases the object that the slot holds. Returns whether the release is awaited.
static inline bool cairn_let_go(struct cairn_pin_slot *slot) {
  __atomic_store_n(&slot->hazard, 0, __ATOMIC_RELEASE);
  return cairn_is_wanted(&slot->wanted_hazard);
}

/// Begins the next epoch and returns it. Only pins of earlier epochs reach what was unlinked before the call.
static inline uint64_t cairn_next_pin_epoch(void) {
  return __atomic_add_fetch(&cairn_pin_epoch, 1, __ATOMIC_ACQ_REL);
}

/// Whether there are retired objects that no thread has tried to free yet.
extern bool cairn_reclamation_due;
static inline bool cairn_is_reclamation_due(void) { return __atomic_load_n(&cairn_reclamation_due, __ATOMIC_RELAXED); }
static inline void cairn_set_reclamation_due(bool is_due) {
  __atomic_store_n(&cairn_reclamation_due, is_due, __ATOMIC_RELAXED);
}

/// The earliest epoch in which a pin may still reach a retired object; UINT64_MAX if there is none. Marks the slots
/// that delay the freeing. If the kernel refuses, returns 0, so that nothing is freed.
uint64_t cairn_oldest_pin(void);

/// Whether a slot holds the object. If so, marks the slot. Call after `cairn_oldest_pin`.
bool cairn_is_held(const void *object);

#endif
