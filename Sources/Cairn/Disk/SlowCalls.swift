internal import CairnStore
internal import Synchronization

/// What a timed call of a ``DiskCache`` did.
enum CacheOperation: String, Sendable {
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

extension DiskCache {
  /// See ``DiskCacheConfiguration/slowCallThreshold``. A change applies to calls that begin later.
  package var slowCallThreshold: Duration? {
    get { calls.threshold }
    set { calls.threshold = newValue }
  }

  /// Call at the beginning of an operation that reaches the disk.
  @usableFromInline
  func callStart() -> CallStart { calls.start() }

  /// Call at the end of an operation.
  @inline(__always)
  func note(_ operation: CacheOperation?, since start: CallStart) {
    if start.isSet, let operation { calls.note(operation, since: start) }
  }
}

/// When a call began, if it is timed.
@usableFromInline
struct CallStart: Sendable {
  /// Zero if the call is not timed.
  fileprivate var nanoseconds: UInt64 = 0

  var isSet: Bool { nanoseconds != 0 }
}

/// The durations of a cache's calls. Reports slow calls in the log.
final class CallTimes: Sendable {
  /// The threshold while calls are not timed. Every other threshold is smaller.
  private static var off: UInt64 { .max }
  /// The shortest time between two messages, in nanoseconds.
  private static var quiet: UInt64 { 1_000_000_000 }

  /// The threshold in nanoseconds.
  private let limit: Atomic<UInt64>
  private let log: DiagnosticLog
  private let path: String
  private let reads = CallDurations()
  private let writes = CallDurations()
  /// The earliest time of the next message.
  private let nextMessage = Atomic<UInt64>(0)
  /// Slow calls since the last message.
  private let leftOutCount = Atomic(0)

  init(threshold: Duration?, log: DiagnosticLog, path: String) {
    limit = Atomic(Self.limit(threshold))
    self.log = log
    self.path = path
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

  /// Counts a call, and reports it if it was slow.
  @inline(never)
  func note(_ operation: CacheOperation, since start: CallStart) {
    let now = elapsedNanoseconds()
    let nanoseconds = now - min(start.nanoseconds, now)
    if operation == .read { reads.note(nanoseconds) } else { writes.note(nanoseconds) }
    reportIfSlow(operation, nanoseconds, at: now)
  }

  /// Reports a load if it was slow.
  func noteLoad(_ duration: Duration) { reportIfSlow(.load, duration.clampedNanoseconds) }

  func reportIfSlow(
    _ operation: CacheOperation, _ nanoseconds: UInt64, at now: UInt64 = elapsedNanoseconds()
  ) {
    if nanoseconds < limit.load(ordering: .relaxed) { return }
    let next = nextMessage.load(ordering: .relaxed)
    guard now >= next,
      nextMessage.compareExchange(expected: next, desired: now + Self.quiet, ordering: .relaxed)
        .exchanged
    else {
      leftOutCount.add(1, ordering: .relaxed)
      return
    }
    let others = leftOutCount.exchange(0, ordering: .relaxed)
    let duration =
      nanoseconds < 1_000_000
      ? "\(nanoseconds / 1000) µs"
      : DisplayText.shortDuration(.nanoseconds(Int64(clamping: nanoseconds)))
    log(
      .warning, operation == .read || operation == .load ? .reading : .writing, path: path,
      "slow call: a \(operation.rawValue) took \(duration)"
        + (others == 0 ? "" : "; \(others) more since the last message"))
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
