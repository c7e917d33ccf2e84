internal import Synchronization

/// When the next pass of housekeeping runs.
final class Housekeeping: Sendable {
  /// Whether a pass is queued.
  let isQueued = Atomic(false)
  /// Whether a pass has failed a moment ago: what failed, on a full disk say, is not tried again with every write,
  /// nor because the pass itself has asked for another.
  let isResting = Atomic(false)
  /// Whether passes also run by time.
  let isTimed = Atomic(false)
  /// Whether the next pass also looks for what has expired.
  let isTimeUp = Atomic(true)
  /// Whether free space is being won back: it goes on until there is some more than the floor.
  let isWinningSpace = Atomic(false)
  /// How many entries that took.
  let evictedCount = Atomic(0)
  /// Whether the pass before has failed.
  let hasFailed = Atomic(false)
  /// Writes that waited for compaction, and for how many milliseconds in all.
  let delayedWriteCount = Atomic(0)
  let writeDelay = Atomic(Int64(0))
}

/// What the lock of maintenance guards.
struct MaintenanceState: ~Copyable {
  var compaction = CompactionState()
}
