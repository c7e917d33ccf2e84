/// Statistics with counts that only grow.
protocol CountedStatistics {
  typealias Count = (name: String, path: any (WritableKeyPath<Self, UInt64> & Sendable))

  /// All counts, with their names for metrics libraries.
  static var counts: [Count] { get }
}

extension CountedStatistics {
  var counters: [Metric] { Self.counts.map { ($0.name, self[keyPath: $0.path]) } }

  /// These statistics, with the counts of earlier ones subtracted.
  ///
  /// - Returns: `nil` if a count has decreased, because this is another cache or the cache was
  ///   reopened.
  func subtracting(_ earlier: Self) -> Self? {
    var difference = self
    for (_, path) in Self.counts {
      let (count, isLess) = self[keyPath: path].subtractingReportingOverflow(earlier[keyPath: path])
      if isLess { return nil }
      difference[keyPath: path] = count
    }
    return difference
  }
}
