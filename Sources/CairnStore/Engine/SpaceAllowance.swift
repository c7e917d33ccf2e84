/// How many bytes writers may still make dead before they wait for compaction. Guarded by the log's lock.
///
/// Near the most that the log may take, writers are slowed to the pace of compaction. Beyond it, bytes may be
/// made dead only as bytes are given back. Writes of new keys and removals spend nothing: these make room, and
/// those make nothing dead.
///
/// A large write beside the log leaves a share to the others, whatever it makes dead. What it lacks is its debt,
/// and the next large write waits until compaction has paid that.
struct SpaceAllowance {
  /// What is left; below 0 writers wait.
  private(set) var byteCount = Int.max
  /// What a large write leaves to the others.
  private var share = 0
  /// Bytes that large writes have made dead beyond the allowance, and that were not given back since.
  private(set) var debt = 0
  /// With less than this left, writers keep to the pace.
  private var paceLimit = Int.min
  /// Nanoseconds for each byte that the last round gave back; 0 before there was one.
  private var pace = 0.0
  /// When all that was spent will have been given back, at that pace.
  private var due = ContinuousClock.now
  /// Dead bytes that a compaction could give back, as of the last look.
  private(set) var reclaimableByteCount = 0
  /// How many of those are too many.
  private(set) var excess = 0
  /// Whether writers go on though there is an excess, since nothing is given back.
  private(set) var isLifted = false
  /// Whether it was told that writers wait.
  private var isTold = false

  /// Takes note of bytes that a write has made dead.
  ///
  /// - Returns: whether the writer is to be slowed.
  @inline(__always)
  mutating func spend(_ count: Int) -> Bool {
    byteCount -= count
    return byteCount < paceLimit
  }

  /// Takes note of bytes that a large write has made dead.
  mutating func spendAside(_ count: Int) {
    let left = max(byteCount - count, min(byteCount, share))
    debt += count - (byteCount - left)
    byteCount = left
  }

  /// How long a writer that has spent `count` bytes waits to keep to the pace.
  mutating func wait(afterSpending count: Int) -> Duration {
    let now = ContinuousClock.now
    due = max(due, now) + .nanoseconds(Int64(min(pace * Double(count), 1e9)))
    return due - now
  }

  /// Whether a writer has to go on waiting, and whether it is the first since the excess began.
  mutating func look() -> (isDue: Bool, isFirst: Bool) {
    if byteCount >= 0 { return (false, false) }
    defer { isTold = true }
    return (true, !isTold)
  }

  /// Sets what is left by what is dead in the log.
  ///
  /// - Parameters:
  ///   - reclaimable: dead bytes that a compaction could give back.
  ///   - allowed: how many of those compaction leaves alone.
  ///   - gain: what a round has given back, and how long it took.
  mutating func update(
    reclaimable: Int, allowed: Int, gain: (byteCount: Int, duration: Duration)? = nil
  ) {
    let limit = allowed + allowed / 2
    reclaimableByteCount = reclaimable
    share = allowed / 4
    debt = max(0, debt - (gain?.byteCount ?? 0))
    excess = max(0, reclaimable - limit)
    if let gain, gain.byteCount > 0 {
      pace = gain.duration / .nanoseconds(1) / Double(gain.byteCount)
      isLifted = false
    }
    if excess == 0 {
      (isLifted, isTold) = (false, false)
      debt = 0
      byteCount = limit - reclaimable
    } else if !isLifted {
      // A mass removal makes more dead at once than is allowed. Nobody waits for all of it to be given back.
      byteCount = min(byteCount, share) + (gain?.byteCount ?? 0)
    }
    if !isLifted { paceLimit = limit - reclaimable < share ? .max : share }
  }

  /// Lets writers go on, whatever they make dead, until something is given back again.
  mutating func lift() {
    isLifted = true
    debt = 0
    byteCount = .max
    paceLimit = .min
  }
}
