internal import Synchronization

/// Counts accesses, so that their order is known exactly, and remembers enough (tick, time) pairs
/// to tell when a tick was, within 1 % of its age.
package final class RecencyClock: Sendable {
  private static let sampleLimit = 4096

  private let tick: Atomic<UInt64>
  /// The time of the newest sample, in milliseconds.
  private let lastTime: Atomic<Int64>
  private let samples: Lock<[RecencyTimes.Sample]>

  /// Everything accessed before now counts as accessed now.
  package init(now: Timestamp) {
    tick = Atomic(1)
    lastTime = Atomic(now.millisecondsSinceEpoch)
    samples = Lock([RecencyTimes.Sample(tick: 0, time: now)])
  }

  /// Whether anything was accessed since the tick.
  @inline(__always)
  package func isNewer(than other: UInt64) -> Bool { tick.load(ordering: .relaxed) != other }

  /// The newest tick.
  package var now: UInt64 { tick.load(ordering: .relaxed) }

  /// The next tick.
  @inline(__always)
  package func advance() -> UInt64 {
    min(tick.wrappingAdd(1, ordering: .relaxed).newValue, IndexEntry.tickLimit - 1)
  }

  /// Makes later accesses get later ticks than this one.
  package func skip(past other: UInt64) { tick.max(other, ordering: .relaxed) }

  /// Whether `note` has to be told the time. To be asked with each access.
  @inline(__always)
  package func needs(_ now: Timestamp) -> Bool {
    lastTime.load(ordering: .relaxed) != now.millisecondsSinceEpoch
  }

  /// Remembers the time. The system's clock moves every few milliseconds only, so this is rare.
  package func note(_ now: Timestamp) {
    let milliseconds = now.millisecondsSinceEpoch
    samples.withLock { samples in
      guard lastTime.exchange(milliseconds, ordering: .relaxed) != milliseconds else { return }
      // The tick is taken, so that no entry has it and the next access of any entry gets a later
      // one, also of the entry that was accessed last.
      let tick = tick.wrappingAdd(1, ordering: .relaxed).newValue
      samples.append(RecencyTimes.Sample(tick: tick, time: now))
      if samples.count > Self.sampleLimit { Self.thin(&samples, now: now) }
    }
  }

  /// Drops samples that lie closer together than 1 % of their age.
  private static func thin(_ samples: inout [RecencyTimes.Sample], now: Timestamp) {
    var kept: [RecencyTimes.Sample] = []
    for sample in samples {
      let age = now.millisecondsSinceEpoch - sample.time.millisecondsSinceEpoch
      if let last = kept.last {
        let step = sample.time.millisecondsSinceEpoch - last.time.millisecondsSinceEpoch
        if step >= 0 && step < max(1, age / 100) { continue }
      }
      kept.append(sample)
    }
    samples = kept
  }

  /// When a tick was: at most 1 % of its age too early.
  package func time(of tick: UInt64) -> Timestamp {
    samples.withLock { RecencyTimes(samples: $0).time(of: tick) }
  }

  /// When all ticks so far were, for many questions without a lock.
  package var times: RecencyTimes { samples.withLock { RecencyTimes(samples: $0) } }
}

/// When ticks were, as it was known at one moment.
package struct RecencyTimes: Sendable {
  struct Sample {
    var tick: UInt64
    var time: Timestamp
  }

  fileprivate let samples: [Sample]

  /// When a tick was: at most 1 % of its age too early.
  package func time(of tick: UInt64) -> Timestamp {
    var low = 0
    var high = samples.count
    while low + 1 < high {
      let middle = (low + high) / 2
      if samples[middle].tick <= tick { low = middle } else { high = middle }
    }
    return samples[low].time
  }
}
