/// A look at what has expired by a moment.
struct ExpiryLook {
  let now: Timestamp
  /// When ticks were.
  let times: RecencyTimes
  /// Whether something may have expired in those parts of the index that are not loaded.
  let loads: Bool

  init(now: Timestamp, times: RecencyTimes, segments: [Segment]) {
    self.now = now
    self.times = times
    let earliest = times.earliest
    loads = segments.contains {
      $0.usage.earliestExpiry { earliest } <= now.millisecondsSinceEpoch
    }
  }
}
