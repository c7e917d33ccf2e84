/// The result of a call that removes many entries.
public struct RemovalSummary: Sendable, Hashable {
  /// The number of removed entries.
  public var count: Int
  /// The total cost of the removed entries, at most `Int.max`. In a store or a disk cache, their
  /// live bytes in the log, including keys and metadata.
  public var cost: Int
  /// Entries on disk that could not be removed, because the heads of their records are damaged and
  /// do not reveal the keys. Reading one throws `corrupt`.
  @usableFromInline package var damagedCount: Int

  @inlinable
  package init(count: Int = 0, cost: Int = 0, damagedCount: Int = 0) {
    self.count = count
    self.cost = cost
    self.damagedCount = damagedCount
  }

  /// Counts one more entry.
  @inlinable
  package mutating func add(cost: Int) {
    count += 1
    self.cost = self.cost.adding(clamped: cost)
  }

  @inlinable
  package mutating func add(_ other: RemovalSummary) {
    self = RemovalSummary(
      count: count + other.count, cost: cost.adding(clamped: other.cost),
      damagedCount: damagedCount + other.damagedCount)
  }
}
