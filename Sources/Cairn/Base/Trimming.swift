public import CairnStore

/// What can be made smaller: what is common to the tiers besides reading and writing.
///
/// A trim to a count, a cost or an age of zero leaves nothing.
public protocol Trimming: Sendable {
  /// What a call throws that fails.
  associatedtype Failure: Error = Never

  /// What all that is held costs together, in the unit of the cache's cost limit: on disk, bytes that
  /// are live in the log.
  func totalCost() throws(Failure) -> Int

  /// Removes entries until at most so many are left. What has expired goes first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes everything.
  ///   - order: which go first.
  @discardableResult
  func trim(toCount count: Int, order: TrimOrder) throws(Failure) -> RemovalSummary

  /// Removes entries until the rest costs at most so much. What has expired goes first.
  ///
  /// - Parameters:
  ///   - cost: zero or less removes everything, also what costs nothing.
  ///   - order: which go first.
  @discardableResult
  func trim(toCost cost: Int, order: TrimOrder) throws(Failure) -> RemovalSummary

  /// Removes the entries that were last accessed, or written, longer ago than `age`.
  ///
  /// - Parameters:
  ///   - age: zero or less removes everything.
  ///   - basis: what the age is counted from.
  @discardableResult
  func trim(olderThan age: Duration, by basis: AgeBasis) throws(Failure) -> RemovalSummary

  /// Removes the entries whose lifetime has ended or that were idle for too long. No read finds them
  /// anyway.
  @discardableResult
  func removeExpired() throws(Failure) -> RemovalSummary
}

extension Trimming {
  /// Removes entries until at most so many are left, the least recently used first.
  @inlinable
  @discardableResult
  public func trim(toCount count: Int) throws(Failure) -> RemovalSummary {
    try trim(toCount: count, order: .leastRecentlyUsed)
  }

  /// Removes entries until the rest costs at most so much, the least recently used first.
  @inlinable
  @discardableResult
  public func trim(toCost cost: Int) throws(Failure) -> RemovalSummary {
    try trim(toCost: cost, order: .leastRecentlyUsed)
  }

  /// Removes the entries that were last accessed longer ago than `age`.
  @inlinable
  @discardableResult
  public func trim(olderThan age: Duration) throws(Failure) -> RemovalSummary {
    try trim(olderThan: age, by: .access)
  }
}
