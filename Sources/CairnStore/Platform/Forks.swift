internal import CairnLibC
internal import Synchronization

/// The forks of this process. The locks of the process are held across each fork, so no child
/// inherits one from another thread.
@safe
final class Forks: @unchecked Sendable {
  // SAFETY: never freed. The count changes only in a child, before that has threads, and
  // `takenCount` only under the first lock. The slots are atomic: a thread that waited here while
  // it initialises a global would leave that global unusable in the child.
  let count = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
  private let slots = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: slotCount)
  private var takenCount = 0
  private static var slotCount: Int { 16 }

  static let shared = Forks()

  private init() {
    unsafe count.initialize(to: 0)
    for index in 0..<Self.slotCount { unsafe (slots + index).initialize(to: Atomic(0)) }
    // Every fork takes this lock first.
    let first = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    unsafe first.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(first, nil)
    unsafe hold(first)
    pthread_atfork(
      { Forks.shared.begin() }, { Forks.shared.end() },
      {
        unsafe Forks.shared.count.pointee += 1
        Forks.shared.end()
      })
  }

  /// Holds a lock across each fork from now on. The lock must never be destroyed.
  func hold(_ lock: UnsafeMutablePointer<pthread_mutex_t>) {
    for index in 0..<Self.slotCount {
      let (isFree, _) = unsafe slots[index].compareExchange(
        expected: 0, desired: UInt(bitPattern: lock), ordering: .acquiringAndReleasing)
      if isFree { return }
    }
    preconditionFailure("too many locks of the process")
  }

  private func lock(_ index: Int) -> UnsafeMutablePointer<pthread_mutex_t>? {
    unsafe UnsafeMutablePointer(bitPattern: slots[index].load(ordering: .acquiring))
  }

  private func begin() {
    var count = 0
    while count < Self.slotCount, let lock = unsafe lock(count) {
      unsafe pthread_mutex_lock(lock)
      count += 1
    }
    takenCount = count
  }

  private func end() {
    // The first lock goes last, because it guards the count.
    for index in (0..<takenCount).reversed() {
      if let lock = unsafe lock(index) { unsafe pthread_mutex_unlock(lock) }
    }
  }
}

/// Distinguishes a forked child from the process that made the mark. A check costs one load.
///
/// Every fork that runs the handlers of pthread_atfork(3) is noticed.
@usableFromInline
@safe
package struct ProcessMark: @unchecked Sendable {
  // SAFETY: the address of a global. The word changes only in a child, before that has threads.
  @usableFromInline let forkCount: UnsafePointer<UInt64>
  @usableFromInline let own: UInt64

  @usableFromInline
  package init() {
    unsafe forkCount = UnsafePointer(Forks.shared.count)
    own = unsafe forkCount.pointee
  }

  /// Whether this process is a child of the one that made the mark.
  @inlinable
  @inline(__always)
  package var isForeign: Bool { unsafe forkCount.pointee != own }
}
