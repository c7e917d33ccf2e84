internal import Synchronization

/// Counts accesses to keep their order. Also remembers enough pairs of tick and time to convert a
/// tick to a time with an error of at most 1 % of its age.
///
/// All writes are counted. After each move of the clock, the first few reads are counted
/// individually. The later ones share the newest tick until the clock moves again, and an entry
/// keeps its tick while the tick is younger than a tenth of a second and than a sixteenth of the
/// oldest entry's age. So threads that read the same entries rarely write to the same cache line,
/// and the access order is exact to that time. InnoDB spares its youngest pages in the same way.
package final class RecencyClock: Sendable {
  private static let sampleLimit = 8192
  /// How long an entry that is read keeps its tick at most, in milliseconds.
  private static let freshness: Int64 = 100
  /// How far the clock may go back unnoticed, in milliseconds.
  private static let lateness: Int64 = 1000

  private let tick: Atomic<UInt64>
  /// Each write changes the tick. The fields below are read at each access, so they are on other
  /// cache lines.
  private let apart = InlineArray<16, UInt64>(repeating: 0)
  /// The tick of the newest sample.
  private let sampleTick: Atomic<UInt64>
  /// Entries with this tick or a later one keep it when they are read.
  private let freshTick: Atomic<UInt64>
  /// The tick of the least recently used entry, as far as an eviction has found it.
  private let oldestTick = Atomic(UInt64(0))
  /// How many accesses after a sample are counted one by one.
  private let exactCount: UInt64
  /// The time of the newest sample, in milliseconds.
  private let lastTime: Atomic<Int64>
  private let samples: Lock<[RecencyTimes.Sample]>

  /// All earlier accesses count as one access at this moment.
  ///
  /// - Parameter exactCount: how many accesses are counted one by one after the clock has moved.
  package init(now: Timestamp, exactCount: UInt64 = 256) {
    self.exactCount = exactCount
    tick = Atomic(1)
    sampleTick = Atomic(0)
    freshTick = Atomic(0)
    lastTime = Atomic(now.millisecondsSinceEpoch)
    samples = Lock([RecencyTimes.Sample(tick: 0, time: now)])
  }

  /// Continues from the state of an earlier session. Call before any access.
  package func restore(tick last: UInt64, samples old: [Checkpoint.Sample], now: Timestamp) {
    samples.withLock { samples in
      // If the clock went back, no access may seem to be in the future.
      samples =
        old.map { Checkpoint.Sample(tick: $0.tick, time: min($0.time, now)) }
        + [Checkpoint.Sample(tick: last + 1, time: now)]
      tick.store(last + 1, ordering: .relaxed)
      sampleTick.store(last + 1, ordering: .relaxed)
      freshTick.store(last + 1, ordering: .relaxed)
      lastTime.store(now.millisecondsSinceEpoch, ordering: .relaxed)
    }
  }

  /// The ticks with a known time.
  var sampleTicks: [UInt64] { samples.withLock { $0.map(\.tick) } }

  /// Renumbers all ticks in the same order.
  func update(_ newTick: (UInt64) -> UInt64) {
    samples.withLock { samples in
      for index in samples.indices { samples[index].tick = newTick(samples[index].tick) }
      tick.store(newTick(tick.load(ordering: .relaxed)), ordering: .relaxed)
      sampleTick.store(newTick(sampleTick.load(ordering: .relaxed)), ordering: .relaxed)
      freshTick.store(newTick(freshTick.load(ordering: .relaxed)), ordering: .relaxed)
      oldestTick.store(newTick(oldestTick.load(ordering: .relaxed)), ordering: .relaxed)
    }
  }

  /// The last tick, and the samples needed to convert each tick to a time.
  package func state(now: Timestamp) -> (tick: UInt64, samples: [Checkpoint.Sample]) {
    samples.withLock { samples in
      var kept = samples
      Self.thin(&kept, now: now)
      let last = min(tick.load(ordering: .relaxed), IndexEntry.tickLimit - 1)
      return (last, kept)
    }
  }

  /// The new tick for an entry that is read now, or `nil` if the old tick still suffices.
  @inline(__always)
  package func tickOfRead(after old: UInt64) -> UInt64? {
    let now = tick.load(ordering: .relaxed)
    if old == now { return nil }
    if now &- sampleTick.load(ordering: .relaxed) < exactCount { return advance() }
    if old >= freshTick.load(ordering: .relaxed) { return nil }
    return min(now, IndexEntry.tickLimit - 1)
  }

  /// Like `tickOfRead`, but accurate to one step of the clock: an idle limit may not end early.
  package func tickOfIdleRead(after old: UInt64) -> UInt64? {
    if old < sampleTick.load(ordering: .relaxed) { return advance() }
    return tickOfRead(after: old)
  }

  /// How much later than its stamp says an entry may have been read.
  package var slack: Duration { exactCount == .max ? .zero : .milliseconds(Self.freshness) }

  /// Records the tick of the least recently used entry.
  package func setOldestTick(_ tick: UInt64) { oldestTick.store(tick, ordering: .relaxed) }

  /// Whether anything has been accessed since this tick.
  @inline(__always)
  package func isNewer(than other: UInt64) -> Bool { tick.load(ordering: .relaxed) != other }

  /// The newest tick.
  package var now: UInt64 { tick.load(ordering: .relaxed) }

  /// Advances the clock by one tick and returns that tick.
  @inline(__always)
  package func advance() -> UInt64 {
    min(tick.wrappingAdd(1, ordering: .relaxed).newValue, IndexEntry.tickLimit - 1)
  }

  /// Advances the clock by this many ticks and returns the first of them.
  package func advance(by count: Int) -> UInt64 {
    let ticks = tick.wrappingAdd(UInt64(count), ordering: .relaxed)
    return min(ticks.oldValue + 1, IndexEntry.tickLimit - 1)
  }

  /// Ensures that later accesses get later ticks than this one.
  package func skip(past other: UInt64) { tick.max(other, ordering: .relaxed) }

  /// The time that was noted last.
  package var lastNoted: Timestamp {
    Timestamp(millisecondsSinceEpoch: lastTime.load(ordering: .relaxed))
  }

  /// Whether `note` must be called with this time. Call at each access.
  ///
  /// SAFETY: the other words are loaded relaxed. They only order accesses, and guard no memory. A
  /// thread that sees a time here has acquired the tick of its sample, which `note` stored before.
  @inline(__always)
  package func needs(_ now: Timestamp) -> Bool {
    lastTime.load(ordering: .acquiring) != now.millisecondsSinceEpoch
  }

  /// Records the current time. The system's clock moves only every few milliseconds, so calls are
  /// rare.
  package func note(_ now: Timestamp) {
    let milliseconds = now.millisecondsSinceEpoch
    samples.withLock { samples in
      let last = Timestamp(millisecondsSinceEpoch: lastTime.load(ordering: .relaxed))
      // A thread may arrive late with a time that it read before others. Only a larger step back
      // counts as a reset of the clock. Otherwise each late thread would leave a sample that is
      // never dropped.
      if (0...Self.lateness).contains(last.milliseconds(since: now)) { return }
      // No entry gets this tick. The next access of any entry gets a later one, even an access of
      // the entry that was accessed last.
      let tick = tick.wrappingAdd(1, ordering: .relaxed).newValue
      sampleTick.store(tick, ordering: .relaxed)
      samples.append(RecencyTimes.Sample(tick: tick, time: now))
      freshTick.store(firstFreshTick(in: samples), ordering: .relaxed)
      // Stored last: a thread that sees this time gives entries a tick of the new sample.
      lastTime.store(milliseconds, ordering: .releasing)
      if samples.count > Self.sampleLimit { Self.thin(&samples, now: now) }
    }
  }

  /// The tick of the first sample of the period in which entries keep their ticks.
  private func firstFreshTick(in samples: [RecencyTimes.Sample]) -> UInt64 {
    let newest = samples[samples.count - 1]
    let oldest = RecencyTimes(samples: samples).time(of: oldestTick.load(ordering: .relaxed))
    let period = min(Self.freshness, max(0, newest.time.milliseconds(since: oldest) / 16))
    // There is at most one sample a millisecond, unless the clock was set back.
    let first = samples.suffix(Int(Self.freshness) + 1).first {
      (0...period).contains(newest.time.milliseconds(since: $0.time))
    }
    return (first ?? newest).tick
  }

  /// Drops samples while the time of every tick stays at most 1 % of its age too late, however
  /// often this runs. Times never become earlier, so the earliest time at which an entry can have
  /// been idle for too long stays valid.
  private static func thin(_ samples: inout [RecencyTimes.Sample], now: Timestamp) {
    var kept: [RecencyTimes.Sample] = []
    for (index, sample) in samples.enumerated() {
      if kept.count > 1, index + 1 < samples.count, kept[kept.count - 1].time <= sample.time {
        // A merge gives this sample's time to all ticks from the last kept sample on. Those
        // accesses came after the time of the sample before the last kept one.
        let step = sample.time.milliseconds(since: kept[kept.count - 2].time)
        if step >= 0 && step <= max(1, now.milliseconds(since: sample.time) / 100) {
          kept[kept.count - 1].time = sample.time
          continue
        }
      }
      kept.append(sample)
    }
    // If the clock is set back repeatedly, no samples are close together. Memory must be bounded
    // even then.
    while kept.count > sampleLimit * 3 / 4 {
      let pairCount = (kept.count - sampleLimit / 4) / 2
      let pairs = (0..<pairCount).map { number in
        let (first, second) = (kept[2 * number], kept[2 * number + 1])
        return RecencyTimes.Sample(tick: first.tick, time: max(first.time, second.time))
      }
      kept = pairs + kept[(2 * pairCount)...]
    }
    samples = kept
  }

  /// The time of a tick, at most 1 % of its age too late.
  package func time(of tick: UInt64) -> Timestamp {
    samples.withLock { RecencyTimes(samples: $0).time(of: tick) }
  }

  /// The times of all ticks so far, for many conversions without a lock.
  package var times: RecencyTimes { samples.withLock { RecencyTimes(samples: $0) } }
}

/// The times of ticks, as known at one moment.
package struct RecencyTimes: Sendable {
  typealias Sample = Checkpoint.Sample

  fileprivate let samples: [Sample]

  /// The time of a tick, at most 1 % of its age too late.
  package func time(of tick: UInt64) -> Timestamp {
    var low = 0
    var high = samples.count
    while low + 1 < high {
      let middle = (low + high) / 2
      if samples[middle].tick <= tick { low = middle } else { high = middle }
    }
    return samples[low].time
  }

  /// The earliest time of any tick.
  package var earliest: Timestamp {
    samples.reduce(Timestamp.distantFuture) { min($0, $1.time) }
  }
}

/// Maps ticks to small numbers, in the same order.
struct TickRanks {
  /// Each tick once, in order.
  private let ticks: [UInt64]

  /// - Parameter sorted: ticks in order; duplicates are allowed.
  init(_ sorted: [UInt64]) {
    var ticks: [UInt64] = []
    for tick in sorted where tick != ticks.last { ticks.append(tick) }
    self.ticks = ticks
  }

  /// The number of ticks up to and including this one.
  func rank(of tick: UInt64) -> UInt64 {
    var low = 0
    var high = ticks.count
    while low < high {
      let middle = (low + high) / 2
      if ticks[middle] <= tick { low = middle + 1 } else { high = middle }
    }
    return UInt64(low)
  }
}
