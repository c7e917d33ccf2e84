/// What a call removed from a cache that removes many entries.
public struct CacheRemovalSummary: Sendable, Hashable {
  /// How many entries went.
  public var count: Int
  /// What they cost together, or the greatest number where it is more.
  public var cost: Int
  /// Entries on disk that were to go and stay, since the head of their record is damaged: their keys are
  /// not known. Reads of them throw.
  public var damagedCount: Int

  /// Makes a summary.
  ///
  /// - Parameters:
  ///   - count: how many entries went.
  ///   - cost: what they cost together; on disk, bytes of the log.
  ///   - damagedCount: entries that were to go and stay, since they are damaged.
  public init(count: Int = 0, cost: Int = 0, damagedCount: Int = 0) {
    self.count = count
    self.cost = cost
    self.damagedCount = damagedCount
  }

  /// Counts one more.
  @usableFromInline
  mutating func add(cost: Int) {
    count += 1
    let (sum, isTooLarge) = self.cost.addingReportingOverflow(cost)
    self.cost = isTooLarge ? .max : sum
  }

  @usableFromInline
  mutating func add(_ other: CacheRemovalSummary) {
    let (sum, isTooLarge) = cost.addingReportingOverflow(other.cost)
    self = CacheRemovalSummary(
      count: count + other.count, cost: isTooLarge ? .max : sum,
      damagedCount: damagedCount + other.damagedCount)
  }
}
