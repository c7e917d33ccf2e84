internal import Synchronization

/// From how much on writes look for what might have to go.
final class EvictionStart: Sendable {
  let count: Atomic<Int>
  let byteCount: Atomic<Int>

  /// Some writes before the limits are reached.
  init(_ limits: WriteLimits) {
    let hasNone = limits.countLimit == .max
    count = Atomic(hasNone ? .max : limits.countLimit - min(limits.countLimit / 2, 2048))
    let hasNoSize = limits.liveByteLimit == .max
    byteCount = Atomic(hasNoSize ? .max : limits.liveByteLimit - limits.liveByteLimit / 64)
  }

  /// The list is there, so nothing is left to do below the limits.
  func wait(for limits: WriteLimits) {
    count.store(limits.countLimit, ordering: .relaxed)
    byteCount.store(limits.liveByteLimit, ordering: .relaxed)
  }
}

/// Keeping the limits of the configuration: no write returns before they hold.
extension Engine {
  /// The most entries that go under one hold of the appender's lock, and beyond what a limit needs:
  /// so many writes have nothing to do then.
  private static let groupLimit = 64

  private var isOverLimit: Bool {
    index.count > limits.countLimit || table.total.liveByteCount > limits.liveByteLimit
  }

  /// Removes the least recently used entries as long as there is more than the limits allow. To be
  /// called after each write, under no lock.
  @inline(__always)
  func keepLimits() throws(StoreError) {
    if index.count > evictionStart.count.load(ordering: .relaxed)
      || table.total.liveByteCount > evictionStart.byteCount.load(ordering: .relaxed)
    {
      try comeCloseToLimits()
    }
  }

  @inline(never)
  private func comeCloseToLimits() throws(StoreError) {
    if planted(.limitsForgotten) { return }
    if isOverLimit { return try evict() }
    // The first list takes a look at all of the index: a part of it with each of the last writes
    // before there is something to evict.
    let isReady = try eviction.withLock { (list) throws(StoreError) in
      try list.collectFirst(from: index)
    }
    if isReady { evictionStart.wait(for: limits) }
  }

  private func evict() throws(StoreError) {
    evictionStart.wait(for: limits)
    var removal = Removal(.evicted, now: clock.now(), sparesRead: true)
    removal.holdsEvents = true
    defer { tell(&removal) }
    try eviction.withLock { (list) throws(StoreError) in
      // Where all that was chosen is read again and again, somebody else's writes make room.
      var idleRounds = 0
      while isOverLimit, idleRounds < 100 {
        let victims = try list.take(victimCount, from: index)
        if victims.isEmpty { return }
        let count = removal.summary.count
        try remove(victims, in: &removal)
        idleRounds = removal.summary.count == count ? idleRounds + 1 : 0
      }
    }
  }

  /// How many entries are to go now: up to 1 % below the limits, so that not every write has to look
  /// for one.
  private var victimCount: Int {
    let count = index.count
    let overCount =
      count > limits.countLimit ? count - limits.countLimit + limits.countLimit / 100 : 0
    let live = table.total.liveByteCount
    var overSize = 0
    if live > limits.liveByteLimit {
      let meanByteCount = max(1, live / max(1, count))
      let excess = live - limits.liveByteLimit + min(limits.liveByteLimit / 100, 64 << 10)
      overSize = excess / meanByteCount
    }
    return min(max(1, overCount, overSize), Self.groupLimit)
  }
}
