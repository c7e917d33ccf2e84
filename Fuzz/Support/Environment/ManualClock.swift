package import CairnStore
import Synchronization

/// A clock that stands still until its time is set.
package final class ManualClock: WallClock {
  /// 2026-01-01 00:00:00 UTC.
  package static let start = Timestamp(millisecondsSinceEpoch: 1_767_225_600_000)

  private let milliseconds: Atomic<Int64>

  package init(_ now: Timestamp = ManualClock.start) {
    milliseconds = Atomic(now.millisecondsSinceEpoch)
  }

  package func now() -> Timestamp {
    Timestamp(millisecondsSinceEpoch: milliseconds.load(ordering: .sequentiallyConsistent))
  }

  /// Advances the time. If several threads do so at once, none sets the clock back.
  package func advance(by duration: Duration) {
    var old = now()
    while true {
      let (isExchanged, found) = milliseconds.compareExchange(
        expected: old.millisecondsSinceEpoch,
        desired: old.advanced(by: duration).millisecondsSinceEpoch,
        ordering: .sequentiallyConsistent)
      if isExchanged { return }
      old = Timestamp(millisecondsSinceEpoch: found)
    }
  }

  package func set(_ time: Timestamp) {
    milliseconds.store(time.millisecondsSinceEpoch, ordering: .sequentiallyConsistent)
  }
}
