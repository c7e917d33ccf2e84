internal import CCairn

/// A period in which this thread may use, without a lock, objects that other threads unlink. Until
/// the pin ends, no object that this thread can have reached is freed. A pin begins and ends within
/// one call, on one thread.
///
/// Epoch-based reclamation (Fraser, "Practical lock-freedom", 2004), and hazard pointers (Michael,
/// 2004) for objects held beyond a pin:
///
/// 1. A thread writes the current epoch into its slot, then reads.
/// 2. A writer unlinks an object, then begins a new epoch and marks the object with it. Pins of
///    this epoch and of later ones cannot reach the object. The object is freed when no slot shows
///    an earlier epoch and no slot holds the object.
/// 3. No thread waits. If a thread delays the freeing of an object, its slot is marked, and the
///    thread frees the object when it lets go.
/// 4. A reader publishes its epoch and reads without a fence. Between unlinking an object and
///    reading the slots, the thread that frees makes the kernel order all threads (membarrier(2)).
/// 5. A child of fork(2) keeps only its own thread's slot.
/// 6. A write makes no system call under a pin: a slow disk would delay every free.
/// 7. Freeing an object may take locks. So nothing is freed under a lock of the log or the index:
///    code that retires an object under such a lock calls `reclaim` after releasing it.
@safe
package struct Pin {
  // SAFETY: a slot is never freed.
  private let slot: UnsafeMutablePointer<cairn_pin_slot>

  /// `nil` if the thread has no slot. The thread must then use locks.
  @inline(__always)
  package init?() {
    guard let slot = unsafe cairn_pin() else { return nil }
    unsafe self.slot = unsafe slot
  }

  @inline(__always)
  package func end() { if unsafe cairn_unpin(slot) { Reclamation.reclaim() } }

  /// Like `end`, for a thread that may hold a lock. The thread calls `Reclamation.reclaimIfDue`
  /// once it holds none.
  @inline(__always)
  package func endUnderLock() {
    if unsafe cairn_unpin(slot) { cairn_set_reclamation_due(true) }
  }
}

/// A number, starting at 0, that no other live thread has. The numbers of ended threads are reused.
/// Threads without a slot get 0.
@inline(__always)
package func threadNumber() -> Int {
  Int(truncatingIfNeeded: cairn_thread_number())
}

/// An object that a thread's slot holds beyond a pin, until `end`.
@safe
package struct Hazard: @unchecked Sendable {
  // SAFETY: a slot is never freed, and its words are atomic.
  private let slot: UnsafeMutablePointer<cairn_pin_slot>

  /// Holds an object that a pin of this thread reaches. Returns `nil` if the thread already holds
  /// one.
  @inline(__always)
  package init?(holding object: some AnyObject) {
    guard let slot = unsafe cairn_hold(Unmanaged.passUnretained(object).toOpaque()) else {
      return nil
    }
    unsafe self.slot = unsafe slot
  }

  @inline(__always)
  package func end() { if unsafe cairn_let_go(slot) { Reclamation.reclaim() } }
}

/// Frees unlinked objects once no reader can use them.
@safe
package enum Reclamation {
  // SAFETY: retired memory has no other owner.
  @safe
  private struct Retired: @unchecked Sendable {
    let epoch: UInt64
    var object: AnyObject?
    var memory: UnsafeMutableRawPointer?
    var byteCount = 0
    /// The address whose presence in a slot delays the freeing.
    let address: UnsafeRawPointer

    var isHeld: Bool { unsafe cairn_is_held(address) }

    func free() {
      if let memory = unsafe memory { unsafe freeTable(memory, byteCount: byteCount) }
    }
  }

  private struct Queue {
    var retired: [Retired] = []
    /// Objects that readers can no longer reach.
    var free: [Retired] = []

    /// Removes the retired objects that readers can no longer reach.
    mutating func takeUnreachable(where isWanted: (Retired) -> Bool) -> [Retired] {
      if retired.isEmpty { return [] }
      let oldest = cairn_oldest_pin()
      let end = retired.partition { isWanted($0) && $0.epoch <= oldest && !$0.isHeld }
      defer { retired.removeSubrange(end...) }
      return Array(retired[end...])
    }
  }

  private static let queue = Lock(Queue(), isOfProcess: true)

  /// Releases an object once no reader can reach `kept`, which the object keeps alive. `kept` must
  /// already be unlinked. Call `reclaim` once no lock is held.
  package static func retire(_ object: AnyObject, keeping kept: AnyObject) {
    let address = unsafe UnsafeRawPointer(Unmanaged.passUnretained(kept).toOpaque())
    queue.withLock {
      unsafe $0.retired.append(
        Retired(epoch: cairn_next_pin_epoch(), object: object, address: address))
    }
    cairn_set_reclamation_due(true)
  }

  /// Frees the memory of a table once no reader can reach it. Otherwise like `retire(_:keeping:)`.
  package static func retire(_ memory: UnsafeMutableRawPointer, byteCount: Int) {
    queue.withLock {
      unsafe $0.retired.append(
        Retired(
          epoch: cairn_next_pin_epoch(), memory: memory, byteCount: byteCount, address: memory))
    }
    cairn_set_reclamation_due(true)
  }

  /// Frees retired objects, if there are any.
  @inline(__always)
  package static func reclaimIfDue() {
    if cairn_is_reclamation_due() { reclaim() }
  }

  /// Frees everything that readers can no longer reach.
  @inline(never)
  package static func reclaim() {
    cairn_set_reclamation_due(false)
    let isEmpty = queue.withLock { queue -> Bool in
      queue.free += queue.takeUnreachable { _ in true }
      return queue.free.isEmpty
    }
    if isEmpty { return }
    // Outside the lock, because freed objects may take locks of their own. One at a time, because
    // the last close of a large file may take long. Other threads can then free the rest.
    while let retired = queue.withLock({ $0.free.popLast() }) { retired.free() }
  }

  /// Frees the memory of tables that readers can no longer reach, but no objects. So a deinit may
  /// call this: freeing one object never frees another in turn.
  package static func reclaimTables() {
    let tables = queue.withLock { $0.takeUnreachable { $0.object == nil } }
    for table in tables { table.free() }
  }
}
