internal import Synchronization

/// The usage at which writes start looking for entries to evict.
final class EvictionStart: Sendable {
  let count = Atomic(Int.max)
  let byteCount = Atomic(Int.max)
  /// See `WriteLimits`.
  let entryByteCount: Int
  /// Whether the limits could not be enforced after a write.
  let hasFailed = Atomic(false)
  /// Held while the limits are read and both numbers set, so that no older limits stay in force.
  private let changes = Lock(())

  init(_ limits: WriteLimits) {
    entryByteCount = limits.entryByteCount
    restart(for: limits)
  }

  /// Makes writes start looking shortly before the limits are reached.
  func restart(for limits: WriteLimits) {
    changes.withLock { _ in
      let (countLimit, byteLimit) = (limits.countLimit, limits.byteLimit)
      let firstCount = countLimit == .max ? .max : countLimit - min(countLimit / 2, 2048)
      count.store(firstCount, ordering: .relaxed)
      byteCount.store(byteLimit == .max ? .max : byteLimit - byteLimit / 64, ordering: .relaxed)
    }
  }

  /// Whether the store is so full that an eviction may soon be needed.
  func isReached(count: Int, live: Int, _ limits: WriteLimits) -> Bool {
    count > self.count.load(ordering: .relaxed)
      || limits.byteCount(live: live, count: count) > byteCount.load(ordering: .relaxed)
  }

  /// Call when the list of candidates is ready. Writes then have nothing to do below the limits.
  func wait(for limits: WriteLimits) {
    changes.withLock { _ in
      count.store(limits.countLimit, ordering: .relaxed)
      byteCount.store(limits.byteLimit, ordering: .relaxed)
    }
  }
}
