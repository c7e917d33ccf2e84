internal import CairnStore

/// Counts of a cache's loads. The counts only grow.
package struct LoadCounts: Sendable {
  /// Loaders that were called.
  package var startedCount: UInt64 = 0
  /// Callers that waited for another caller's load.
  package var joinedCount: UInt64 = 0
  /// Loaders that threw.
  package var failedCount: UInt64 = 0
  /// Loads cancelled because no caller was waiting.
  package var cancelledCount: UInt64 = 0
  /// Loaded values that were not kept, because the key was written or removed or the load was
  /// cancelled in the meantime.
  package var outdatedCount: UInt64 = 0
  /// Loaded values that could not be written to disk. The waiting callers got them. The log reports
  /// why they could not be written.
  package var unkeptCount: UInt64 = 0
  /// Loads that returned a value for a key that had none.
  package var freshCount: UInt64 = 0
  /// Loads that replaced a key's value, or found it still valid.
  package var refreshedCount: UInt64 = 0
  /// Loads that found the value still valid. Included in `refreshedCount`.
  package var notModifiedCount: UInt64 = 0
  /// Loads that reported that no value exists.
  package var absentCount: UInt64 = 0
  /// Loads that exceeded their time limit. These do not count as failed.
  package var timedOutCount: UInt64 = 0
  /// Callers that received a stale value.
  package var staleServedCount: UInt64 = 0

  /// Finished loaders by duration, whatever their result. Loads are timed by the cache's clock, to
  /// the millisecond.
  package var durations = DurationHistogram()

  var metrics: [Metric] {
    [
      Metric("loads.started", startedCount), Metric("loads.joined", joinedCount),
      Metric("loads.failed", failedCount), Metric("loads.cancelled", cancelledCount),
      Metric("loads.outdated", outdatedCount), Metric("loads.unkept", unkeptCount),
      Metric("loads.fresh", freshCount), Metric("loads.refreshed", refreshedCount),
      Metric("loads.notModified", notModifiedCount), Metric("loads.absent", absentCount),
      Metric("loads.timedOut", timedOutCount), Metric("loads.staleServed", staleServedCount),
    ]
  }
}
