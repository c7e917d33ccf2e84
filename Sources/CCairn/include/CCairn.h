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

// Pins: what readers without locks hold up (epochs and hazard pointers). Pins.swift has the rules.

/// What one thread holds up. On cache lines of its own; only the two `wanted` are written by others.
struct cairn_pin_slot {
  /// The epoch when the thread began to read; 0 while it does not.
  uint64_t epoch;
  /// An object that the thread holds by itself, or 0.
  uint64_t hazard;
  /// Whether somebody waits for the pin to end, and for the object to be let go.
  uint32_t wanted_pin, wanted_hazard;
  /// How many pins of the thread have begun and not ended.
  uint32_t depth;
  uint32_t is_taken;
  struct cairn_pin_slot *next;
  /// From 0. No two threads that live at the same time have the same.
  uint64_t number;
  uint64_t apart[10];
};

/// The slot of this thread, once it has one.
extern __thread struct cairn_pin_slot *cairn_own_pin_slot;
/// Grows with everything that is retired.
extern uint64_t cairn_pin_epoch;
/// Whether readers must order their own stores, as the kernel does not do it for them (membarrier(2)).
extern bool cairn_pins_need_fences;

/// Gives this thread a slot, until it ends. NULL where there is no memory.
struct cairn_pin_slot *cairn_take_pin_slot(void);

static inline void cairn_pin_fence(void) {
  if (cairn_pins_need_fences) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  else __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/// A number that no other live thread has; 0 for all that have no slot.
static inline uint64_t cairn_thread_number(void) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  return slot || (slot = cairn_take_pin_slot()) ? slot->number : 0;
}

/// Begins a pin of this thread and returns its slot; NULL where it cannot have one.
static inline struct cairn_pin_slot *cairn_pin(void) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  if (!slot && !(slot = cairn_take_pin_slot())) return NULL;
  if (slot->depth++ == 0) {
    uint64_t epoch = __atomic_load_n(&cairn_pin_epoch, __ATOMIC_ACQUIRE);
    __atomic_store_n(&slot->epoch, epoch, __ATOMIC_RELAXED);
    cairn_pin_fence();
  }
  return slot;
}

/// Whether somebody waits; tells it once.
static inline bool cairn_is_wanted(uint32_t *wanted) {
  cairn_pin_fence();
  if (__builtin_expect(!__atomic_load_n(wanted, __ATOMIC_RELAXED), 1)) return false;
  __atomic_store_n(wanted, 0, __ATOMIC_RELAXED);
  return true;
}

/// Ends the pin that began last. Returns whether somebody waits for that.
static inline bool cairn_unpin(struct cairn_pin_slot *slot) {
  if (--slot->depth > 0) return false;
  __atomic_store_n(&slot->epoch, 0, __ATOMIC_RELEASE);
  return cairn_is_wanted(&slot->wanted_pin);
}

/// Holds an object that a pin of this thread reaches, beyond that pin. Returns the slot; NULL where it holds one already.
static inline struct cairn_pin_slot *cairn_hold(const void *object) {
  struct cairn_pin_slot *slot = cairn_own_pin_slot;
  if (!slot || __atomic_load_n(&slot->hazard, __ATOMIC_RELAXED)) return NULL;
  __atomic_store_n(&slot->hazard, (uint64_t)(uintptr_t)object, __ATOMIC_RELEASE);
  return slot;
}

/// Lets go of what the slot holds. Returns whether somebody waits for that.
static inline bool cairn_let_go(struct cairn_pin_slot *slot) {
  __atomic_store_n(&slot->hazard, 0, __ATOMIC_RELEASE);
  return cairn_is_wanted(&slot->wanted_hazard);
}

/// Begins the next epoch and returns it. What was unlinked before is reached only by pins of earlier epochs.
static inline uint64_t cairn_next_pin_epoch(void) {
  return __atomic_add_fetch(&cairn_pin_epoch, 1, __ATOMIC_ACQ_REL);
}

/// Whether something was retired that nobody has tried to free yet.
extern bool cairn_reclamation_due;
static inline bool cairn_is_reclamation_due(void) { return __atomic_load_n(&cairn_reclamation_due, __ATOMIC_RELAXED); }
static inline void cairn_set_reclamation_due(bool is_due) {
  __atomic_store_n(&cairn_reclamation_due, is_due, __ATOMIC_RELAXED);
}

/// The earliest epoch in which a pin may still reach something that was retired; the highest number where there is none.
/// Whoever holds something up learns that it is wanted. 0, so that nothing is freed, where the kernel refuses.
uint64_t cairn_oldest_pin(void);

/// Whether a slot holds the object, which is then wanted. To be asked after `cairn_oldest_pin`.
bool cairn_is_held(const void *object);

#endif
