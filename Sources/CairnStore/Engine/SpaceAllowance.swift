/// How many more bytes writers may make dead before they wait for compaction. Guarded by the log's
/// lock.
///
/// Near the limit for the log, writers are slowed to the pace of compaction: the nearer the limit,
/// the slower they are. Beyond the limit, writers may make bytes dead only as fast as compaction
/// reclaims bytes. Writes of new keys and removals spend nothing: removals make room, and writes of
/// new keys make nothing dead.
///
/// A large write outside the log leaves a share to other writes, however much it makes dead. The
/// bytes beyond its own share are its debt. The next large write waits until compaction has paid
/// the debt.
package struct SpaceAllowance {
  /// The bytes left. Below 0, writers wait.
  private(set) var byteCount = Int.max
  /// The share that a large write leaves to other writes.
  private var share = 0
  /// Bytes that large writes have made dead beyond the allowance and that compaction has not paid
  /// off.
  private(set) var debt = 0
  /// When fewer bytes than this are left, writers keep to the pace.
  private var paceLimit = Int.min
  /// Nanoseconds for each byte that the last round reclaimed, or a guess before the first round.
  private var pace = 10.0
  /// When slowed writers may continue, relative to `origin`. With an `Instant`, the compiler would
  /// not know the layout of the appender.
  private var due = Duration.zero
  private static let origin = ContinuousClock.now
  /// Dead bytes that a compaction could reclaim, as of the last check.
  private(set) var reclaimableByteCount = 0
  /// How many of those bytes are above the limit.
  private(set) var excess = 0
  /// Bytes that could be reclaimed if no segment were damaged, as of the last check.
  var heldByteCount = 0
  /// How many bytes writers made dead during the last round, or more if they did so before. Counts
  /// only rounds of half a second or more: for the end of others, a put may wait.
  private(set) var roundGrowth = 0
  /// The bytes that were left when the last round began.
  private var byteCountAtRound = 0
  /// Whether writers continue despite an excess, because nothing is reclaimed.
  private(set) var isLifted = false
  /// When the diagnostic log last said that writers wait, relative to `origin`.
  private var told: Duration?

  package init() {}

  /// Counts bytes that a write has made dead.
  ///
  /// - Returns: whether to slow the writer.
  @inline(__always)
  package mutating func spend(_ count: Int) -> Bool {
    byteCount -= count
    return isScarce
  }

  /// Counts bytes that a large write has made dead.
  mutating func spendAside(_ count: Int) {
    let left = max(byteCount - count, min(byteCount, share))
    debt += count - (byteCount - left)
    byteCount = left
  }

  /// Whether writers keep to the pace. Compaction then does not rest.
  package var isScarce: Bool { byteCount < paceLimit }

  /// How long a writer that has spent `count` bytes must wait. The pace slows as the allowance
  /// shrinks, so that writers rarely have to stop until the end of a round.
  package mutating func wait(afterSpending count: Int) -> Duration {
    let now = ContinuousClock.now - Self.origin
    let factor = min(64, max(1, Double(share) / Double(max(1, byteCount))))
    due = max(due, now) + .nanoseconds(Int64(min(pace * factor * Double(count), 1e8)))
    // However many writers rest at once, none rests for more than a second.
    due = min(due, now + .seconds(1))
    return due - now
  }

  /// Whether a writer must keep waiting, whether the diagnostic log should say so, which is at most
  /// once a minute, and whether writers are being slowed.
  mutating func look() -> (isDue: Bool, isNews: Bool, isScarce: Bool) {
    if byteCount >= 0 { return (false, false, isScarce) }
    let now = ContinuousClock.now - Self.origin
    if let told, now - told < .seconds(60) { return (true, false, isScarce) }
    told = now
    return (true, true, isScarce)
  }

  /// Recomputes the allowance from the dead bytes in the log.
  ///
  /// - Parameters:
  ///   - reclaimable: dead bytes that a compaction could reclaim.
  ///   - allowed: how many of those bytes compaction ignores.
  ///   - limit: how many may be dead before writers wait.
  ///   - gain: the bytes that a round has reclaimed, and its duration.
  package mutating func update(
    reclaimable: Int, allowed: Int, limit: Int,
    gain: (byteCount: Int, duration: Duration)? = nil
  ) {
    reclaimableByteCount = reclaimable
    share = allowed / 4
    debt = max(0, debt - (gain?.byteCount ?? 0))
    excess = max(0, reclaimable - limit)
    if let gain, gain.byteCount > 0 {
      // A round that merges small segments may gain little.
      pace = min(100, gain.duration / .nanoseconds(1) / Double(gain.byteCount))
      let isSlow = gain.duration >= .milliseconds(500) && !isLifted
      // Before the first check, there is no limit.
      let isLimited = byteCountAtRound < .max / 4
      roundGrowth = max(
        isSlow && isLimited ? byteCountAtRound - byteCount : 0, roundGrowth / 2)
      isLifted = false
    }
    if excess == 0 {
      isLifted = false
      debt = 0
      byteCount = limit - reclaimable
    } else if !isLifted {
      // A mass removal can make more bytes dead at once than are allowed. Writers need not wait
      // until all of them are reclaimed.
      byteCount = min(byteCount, share) + (gain?.byteCount ?? 0)
    }
    if !isLifted { paceLimit = limit - reclaimable < share ? .max : share }
    if !isScarce { due = .zero }
  }

  mutating func beginRound() { byteCountAtRound = byteCount }

  /// Lets writers continue, whatever they make dead, until compaction reclaims bytes again.
  package mutating func lift() {
    isLifted = true
    debt = 0
    byteCount = .max
    paceLimit = .min
    due = .zero
  }
}
