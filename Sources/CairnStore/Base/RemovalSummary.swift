/// How far a removal of all has come. The entries are gone before the first file is.
///
/// In a store of class `.process` or `.interval`, a file may stay for a moment after it was counted: until the
/// removal is on disk.
public struct RemoveAllProgress: Sendable, Hashable {
  /// Files that are out of the store.
  public var fileCount: Int
  /// Files that will be.
  public var totalFileCount: Int

  /// Makes a step of a removal.
  ///
  /// - Parameters: as the properties of these names.
  package init(fileCount: Int, totalFileCount: Int) {
    self.fileCount = fileCount
    self.totalFileCount = totalFileCount
  }
}

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
