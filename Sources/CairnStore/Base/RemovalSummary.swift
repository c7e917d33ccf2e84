/// What a call removed that removes many entries.
public struct RemovalSummary: Sendable, Hashable {
  /// How many entries went.
  public var count: Int
  /// What they cost together, or the greatest number where it is more. Of a store and of a cache on disk, the live bytes
  /// that they took in the log, with their keys and metadata.
  public var cost: Int
  /// Entries on disk that were to go and stay because the head of their record is damaged: their keys are not known. Reads
  /// of them throw `corrupt`.
  public var damagedCount: Int

  @inlinable
  package init(count: Int = 0, cost: Int = 0, damagedCount: Int = 0) {
    self.count = count
    self.cost = cost
    self.damagedCount = damagedCount
  }

  /// Counts one more.
  @inlinable
  package mutating func add(cost: Int) {
    count += 1
    let (sum, isTooLarge) = self.cost.addingReportingOverflow(cost)
    self.cost = isTooLarge ? .max : sum
  }

  @inlinable
  package mutating func add(_ other: RemovalSummary) {
    let (sum, isTooLarge) = cost.addingReportingOverflow(other.cost)
    self = RemovalSummary(
      count: count + other.count, cost: isTooLarge ? .max : sum,
      damagedCount: damagedCount + other.damagedCount)
  }
}
