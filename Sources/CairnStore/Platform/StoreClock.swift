internal import Synchronization

/// The time of day for expiry. It is the later of two times: what the configured clock shows, and
/// the time at the open plus the time elapsed since. So setting a clock back prolongs no lifetime,
/// whether the store is open or closed.
///
/// The time at the open is the later of the clock's time and the last time that the store recorded.
/// A recorded time that is more than a day ahead is ignored.
package final class StoreClock: WallClock {
  private static let trustedLead = Duration.seconds(86_400)
  /// How far a clock without `elapsed()` may go back unnoticed, in milliseconds: threads that read
  /// the clock at the same time may report in any order.
  private static let lateness: Int64 = 60_000

  private let clock: any WallClock
  private let opened: Timestamp
  /// The result of `elapsed()` at the open, in milliseconds.
  private let start: Int64?
  /// How far the clock was behind the last time that the store recorded.
  package let lag: Duration
  /// Whether the clock was so far behind that the store uses the clock's time.
  package let wentBack: Bool

  /// The forward steps of a clock without `elapsed()`, in milliseconds.
  private struct Steps {
    var last: Int64
    var sum: Int64 = 0
  }
  private let steps: Lock<Steps>

  /// Whether the clock is the system's, which is read again only at each tick of the kernel. The
  /// last tick and its time are kept.
  package let isSystem: Bool
  /// Increases before and after each change of the two; odd in between.
  private let version = Atomic(0)
  private let readTick = Atomic(Int64.min)
  private let readTime = Atomic(Int64.min)

  package init(_ clock: any WallClock, lastRecorded: Timestamp) {
    self.clock = clock
    let now = clock.now()
    lag = max(.zero, .milliseconds(lastRecorded.milliseconds(since: now)))
    wentBack = lag > Self.trustedLead
    opened = wentBack ? now : max(now, lastRecorded)
    start = clock.elapsed()?.milliseconds
    steps = Lock(Steps(last: now.millisecondsSinceEpoch))
    isSystem = clock is SystemClock
  }

  @inline(__always)
  package func now() -> Timestamp {
    guard isSystem else {
      let (time, expected) = read()
      return max(time, expected)
    }
    return systemTime()
  }

  private func systemTime() -> Timestamp {
    let tick = SystemClock.tick()
    let before = version.load(ordering: .acquiring)
    if before & 1 == 0, tick == readTick.load(ordering: .relaxed) {
      let time = readTime.load(ordering: .relaxed)
      atomicMemoryFence(ordering: .acquiring)
      if version.load(ordering: .relaxed) == before {
        return Timestamp(millisecondsSinceEpoch: time)
      }
    }
    return readSystemTime(at: tick, before)
  }

  /// Reads the time again, and keeps it unless another thread has kept one since.
  @inline(never)
  private func readSystemTime(at tick: Int64, _ before: Int) -> Timestamp {
    let (time, expected) = read()
    let now = max(time, expected)
    if before & 1 == 0,
      version.compareExchange(
        expected: before, desired: before + 1, ordering: .acquiringAndReleasing
      ).exchanged
    {
      // No thread sees a new word with the old version.
      atomicMemoryFence(ordering: .releasing)
      readTime.store(now.millisecondsSinceEpoch, ordering: .relaxed)
      readTick.store(tick, ordering: .relaxed)
      version.store(before + 2, ordering: .releasing)
    }
    return now
  }

  package func elapsed() -> Duration? { clock.elapsed() }

  /// The time at the open plus the time elapsed since. Unlike `now()`, it never goes back, and
  /// `now()` is never earlier.
  package var steadyTime: Timestamp { read().expected }

  /// How far the clock is ahead of the time at the open plus the time elapsed since; negative if it
  /// is behind.
  package var offset: Duration {
    let (time, expected) = read()
    return .milliseconds(time.milliseconds(since: expected))
  }

  /// The clock's time, and the time at the open plus the time elapsed since.
  private func read() -> (time: Timestamp, expected: Timestamp) {
    let time = clock.now()
    let passed =
      if let start, let elapsed = clock.elapsed()?.milliseconds {
        elapsed.subtracting(clamped: start)
      } else {
        steps(to: time)
      }
    return (time, opened.advanced(byMilliseconds: passed))
  }

  private func steps(to time: Timestamp) -> Int64 {
    steps.withLock { steps in
      let step = time.milliseconds(
        since: Timestamp(millisecondsSinceEpoch: steps.last))
      if step > 0 { steps.sum = steps.sum.adding(clamped: step) }
      if step > 0 || step < -Self.lateness { steps.last = time.millisecondsSinceEpoch }
      return steps.sum
    }
  }
}
