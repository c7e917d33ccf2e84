public import CairnStore
internal import Synchronization

/// What a timed call of a ``DiskCache`` did. A minor version may add cases, so give every `switch`
/// a `default`.
public enum CacheOperation: String, Sendable, Hashable, CaseIterable {
  /// Looked up a key on disk.
  case read
  /// Set the value of a key, or extended lifetimes.
  case write
  /// Removed one key, several, those with a tag, or all.
  case removal
  /// Wrote a batch.
  case batch
  /// Called a loader.
  case load
}

/// A call of a ``DiskCache`` that took at least ``DiskCache/slowCallThreshold``.
public struct SlowCall<Key: Hashable & Sendable>: Sendable, Hashable {
  /// What the call did.
  public let operation: CacheOperation
  /// The key, if the call concerned a single key.
  public let key: Key?
  /// When the call began, by the cache's clock.
  public let began: Timestamp
  /// How long the call took.
  public let duration: Duration
}

extension DiskCache {
  /// How long a call must take to be recorded in `slowCalls()`. With zero or less, every call is
  /// recorded. `nil` means that no call is timed.
  ///
  /// If the threshold is set, the cache times each call that reaches the disk, and counts it in
  /// ``DiskCacheStatistics/readDurations`` or ``DiskCacheStatistics/writeDurations``. A read that
  /// finds its value in memory is never timed. A change applies to calls that begin later. The next
  /// open uses its configuration again.
  public var slowCallThreshold: Duration? {
    get { calls.threshold }
    set { calls.threshold = newValue }
  }

  /// The last 128 calls that took at least ``slowCallThreshold``, in the order in which they ended.
  ///
  /// The duration of an async call includes its wait for a thread. Loads are included, and timed by
  /// the cache's clock. The write of a loaded value is part of the load. Some calls read the disk
  /// more than once: an update reads before it writes, and a load reads again before it calls the
  /// loader. Each of these reads is timed. Calls about many entries, such as trims, iteration and
  /// backups, are not timed, except removals by keys, by tag or of everything.
  public func slowCalls() -> [SlowCall<Key>] {
    calls.kept().map { call in
      SlowCall(
        operation: call.operation,
        key: call.key.flatMap { try? keyCoder.decode($0.rawSpan) },
        began: call.began, duration: .nanoseconds(Int64(clamping: call.nanoseconds)))
    }
  }

  /// Call at the beginning of an operation that reaches the disk.
  @usableFromInline
  func callStart() -> CallStart { calls.start() }

  /// Call at the end of an operation on one key.
  @inline(__always)
  func note(_ operation: CacheOperation, of key: Key, since start: CallStart) {
    if start.isSet { noteTimed(operation, of: key, since: start) }
  }

  @inline(never)
  private func noteTimed(_ operation: CacheOperation, of key: Key, since start: CallStart) {
    calls.note(operation, since: start) { try? bytes(of: key) }
  }

  /// Call at the end of an operation that does not concern a single key.
  func note(_ operation: CacheOperation, since start: CallStart) {
    if start.isSet { calls.note(operation, since: start) { nil } }
  }
}

/// When a call began, if it is timed.
@usableFromInline
struct CallStart: Sendable {
  /// Zero if the call is not timed.
  fileprivate var nanoseconds: UInt64 = 0

  var isSet: Bool { nanoseconds != 0 }
}

/// The durations of a cache's calls, and the slow calls.
final class CallTimes: Sendable {
  /// A slow call, with the bytes of its key.
  struct Kept: Sendable {
    let operation: CacheOperation
    let key: [UInt8]?
    let began: Timestamp
    let nanoseconds: UInt64
  }

  private struct Log {
    var calls: [Kept] = []
    /// The index of the oldest call, once the log is full.
    var oldest = 0
  }

  /// The number of slow calls that are kept.
  static var countLimit: Int { 128 }
  /// The threshold while calls are not timed. Every other threshold is smaller.
  private static var off: UInt64 { .max }

  /// The threshold in nanoseconds.
  private let limit: Atomic<UInt64>
  private let clock: StoreClock
  private let reads = CallDurations()
  private let writes = CallDurations()
  private let log = Lock(Log())

  init(threshold: Duration?, clock: StoreClock) {
    limit = Atomic(Self.limit(threshold))
    self.clock = clock
  }

  private static func limit(_ threshold: Duration?) -> UInt64 {
    threshold.map(\.clampedNanoseconds) ?? off
  }

  var threshold: Duration? {
    get {
      let limit = limit.load(ordering: .relaxed)
      return limit == Self.off ? nil : .nanoseconds(Int64(clamping: limit))
    }
    set { limit.store(Self.limit(newValue), ordering: .relaxed) }
  }

  var durations: (reads: DurationHistogram, writes: DurationHistogram) {
    (reads.histogram, writes.histogram)
  }

  @inline(__always)
  func start() -> CallStart {
    if limit.load(ordering: .relaxed) == Self.off { return CallStart() }
    return CallStart(nanoseconds: elapsedNanoseconds())
  }

  /// Counts a call, and keeps it if it was slow.
  ///
  /// - Parameter key: called only if the call was slow.
  func note(_ operation: CacheOperation, since start: CallStart, key: () -> [UInt8]?) {
    let now = elapsedNanoseconds()
    let nanoseconds = now - min(start.nanoseconds, now)
    if operation == .read { reads.note(nanoseconds) } else { writes.note(nanoseconds) }
    if isSlow(nanoseconds) { keep(operation, key(), nanoseconds) }
  }

  @inline(never)
  func noteRead(of key: RawSpan, since start: CallStart) {
    note(.read, since: start) { [UInt8](copying: key) }
  }

  /// Keeps a load if it was slow.
  func noteLoad(of key: [UInt8], _ duration: Duration) {
    let nanoseconds = duration.clampedNanoseconds
    if isSlow(nanoseconds) { keep(.load, key, nanoseconds) }
  }

  private func isSlow(_ nanoseconds: UInt64) -> Bool {
    nanoseconds >= limit.load(ordering: .relaxed)
  }

  private func keep(_ operation: CacheOperation, _ key: [UInt8]?, _ nanoseconds: UInt64) {
    let call = Kept(
      operation: operation, key: key,
      began: clock.now().advanced(by: .nanoseconds(-Int64(clamping: nanoseconds))),
      nanoseconds: nanoseconds)
    log.withLock { log in
      if log.calls.count < Self.countLimit {
        log.calls.append(call)
      } else {
        log.calls[log.oldest] = call
        log.oldest = (log.oldest + 1) % Self.countLimit
      }
    }
  }

  /// The slow calls that are kept, oldest first.
  func kept() -> [Kept] {
    log.withLock { log in Array(log.calls[log.oldest...] + log.calls[..<log.oldest]) }
  }
}

/// A histogram that any thread may add to.
private struct CallDurations: ~Copyable, Sendable {
  /// As many counts as a `DurationHistogram` has.
  private let counts: InlineArray<17, Counter>
  private let nanoseconds = Counter()

  init() { counts = InlineArray { _ in Counter() } }

  func note(_ nanoseconds: UInt64) {
    let nanoseconds = Int64(clamping: nanoseconds)
    counts[DurationHistogram.bucket(of: .nanoseconds(nanoseconds))].add()
    self.nanoseconds.add(Int(nanoseconds))
  }

  var histogram: DurationHistogram {
    var histogram = DurationHistogram()
    for index in histogram.counts.indices { histogram.counts[index] = counts[index].load() }
    histogram.total = .nanoseconds(Int64(clamping: nanoseconds.value))
    return histogram
  }
}

extension Duration {
  /// Whole nanoseconds, at least zero, or the largest `Int64` if they do not fit.
  fileprivate var clampedNanoseconds: UInt64 {
    if self <= .zero { return 0 }
    // Getting the components of a very long duration traps.
    if self >= .nanoseconds(Int64.max) { return UInt64(Int64.max) }
    let (seconds, attoseconds) = components
    return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
  }
}
