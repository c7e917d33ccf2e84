/// A check for entries that have expired by `now`.
struct ExpiryLook {
  let now: Timestamp
  /// The present, if entries that expired after `now` are retained.
  let present: Timestamp
  /// Converts ticks to times.
  let times: RecencyTimes
  /// Whether shards that are not loaded may contain expired entries.
  let loads: Bool

  init(now: Timestamp, present: Timestamp, times: RecencyTimes, segments: [Segment]) {
    self.now = now
    self.present = present
    self.times = times
    let earliest = times.earliest
    loads = segments.contains {
      $0.usage.earliestExpiry { earliest } <= now.millisecondsSinceEpoch
    }
  }
}
