#define _GNU_SOURCE
#include "CCairn.h"

#include <pthread.h>
#include <stdlib.h>
#ifdef CAIRN_DARWIN
static int order_threads(int command) { return -1; }
#else
#include <sys/syscall.h>
#include <unistd.h>
/// membarrier(2).
static int order_threads(int command) { return (int)syscall(SYS_membarrier, command, 0, 0); }
#endif

_Static_assert(sizeof(struct cairn_pin_slot) == 128, "slots lie on cache lines of their own");

enum { EXPEDITED = 1 << 3, REGISTER_EXPEDITED = 1 << 4 };

__thread struct cairn_pin_slot *cairn_own_pin_slot;
uint64_t cairn_pin_epoch = 1;
bool cairn_pins_need_fences = true;
bool cairn_reclamation_due;

/// All slots ever made. When a thread ends, its slot goes to the next thread that needs one.
static struct cairn_pin_slot *slots;
static pthread_key_t key;
static bool has_key;

/// Releases everything that the slot of an ended thread holds.
static void clear(struct cairn_pin_slot *slot) {
  slot->depth = 0;
  __atomic_store_n(&slot->epoch, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->hazard, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
}

static void give_back(void *slot) {
  cairn_own_pin_slot = NULL;
  clear(slot);
}

/// A forked child has only the thread that forked.
static void forget_other_threads(void) {
  for (struct cairn_pin_slot *slot = slots; slot; slot = slot->next)
    if (slot != cairn_own_pin_slot) clear(slot);
}

// Runs before `main`, because the kernel registers a process at once while the process has one thread.
__attribute__((constructor)) static void prepare(void) {
  has_key = pthread_key_create(&key, give_back) == 0;
  pthread_atfork(NULL, NULL, forget_other_threads);
  cairn_pins_need_fences = order_threads(REGISTER_EXPEDITED) != 0;
}

__attribute__((noinline)) struct cairn_pin_slot *cairn_take_pin_slot(void) {
  if (!has_key) return NULL;
  struct cairn_pin_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
  for (; slot; slot = slot->next) {
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&slot->is_taken, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break;
  }
  if (!slot) {
    if (!(slot = aligned_alloc(128, sizeof *slot))) return NULL;
    static uint64_t count;
    *slot = (struct cairn_pin_slot){.is_taken = 1, .next = __atomic_load_n(&slots, __ATOMIC_ACQUIRE)};
    slot->number = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&slots, &slot->next, slot, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
  }
  if (pthread_setspecific(key, slot) != 0) {
    __atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
    return NULL;
  }
  return cairn_own_pin_slot = slot;
}

/// After this call, every pin that another thread began earlier is visible, and every pin that begins later sees what
/// was unlinked earlier. Returns false if the kernel refuses.
static bool order_all_threads(void) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return cairn_pins_need_fences || order_threads(EXPEDITED) == 0;
}

uint64_t cairn_oldest_pin(void) {
  uint64_t now = __atomic_load_n(&cairn_pin_epoch, __ATOMIC_ACQUIRE), oldest = UINT64_MAX, epoch;
  bool is_held_up = false;
  if (!order_all_threads()) return 0;
  struct cairn_pin_slot *first = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
  for (struct cairn_pin_slot *slot = first; slot; slot = slot->next) {
    epoch = __atomic_load_n(&slot->epoch, __ATOMIC_ACQUIRE);
    if (epoch == 0 || epoch >= now) continue;
    __atomic_store_n(&slot->wanted_pin, 1, __ATOMIC_RELAXED);
    is_held_up = true;
  }
  if (!is_held_up) return oldest;
  // From here on, a thread that ends a pin sees the mark in its slot, and new pins reach nothing that was unlinked.
  if (!order_all_threads()) return 0;
  for (struct cairn_pin_slot *slot = first; slot; slot = slot->next) {
    epoch = __atomic_load_n(&slot->epoch, __ATOMIC_ACQUIRE);
    // If the thread has cleared the mark, the hazard that it set before is visible.
    if (epoch && epoch < oldest && __atomic_load_n(&slot->wanted_pin, __ATOMIC_ACQUIRE)) oldest = epoch;
  }
  return oldest;
}

bool cairn_is_held(const void *object) {
  uint64_t hazard = (uint64_t)(uintptr_t)object;
  for (struct cairn_pin_slot *slot = __atomic_load_n(&slots, __ATOMIC_ACQUIRE); slot; slot = slot->next) {
    if (__atomic_load_n(&slot->hazard, __ATOMIC_ACQUIRE) != hazard) continue;
    __atomic_store_n(&slot->wanted_hazard, 1, __ATOMIC_RELAXED);
    if (!order_all_threads() || __atomic_load_n(&slot->hazard, __ATOMIC_ACQUIRE) == hazard) return true;
  }
  return false;
}
