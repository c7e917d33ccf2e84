public import CairnStore

/// The calls that shrink a cache or a memory tier.
///
/// A trim to a count, cost or age of zero removes every entry.
public protocol Trimming: Sendable {
  /// The error of a failed call.
  associatedtype Failure: Error = Never

  /// The total cost of all entries, in the unit of the cache's cost limit. On disk, the cost is
  /// live bytes.
  func totalCost() throws(Failure) -> Int

  /// Removes entries until at most `count` are left. Expired entries go first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes every entry.
  ///   - order: which entries go first.
  @discardableResult
  func trim(toCount count: Int, order: TrimOrder) throws(Failure) -> RemovalSummary

  /// Removes entries until the total cost is at most `cost`. Expired entries go first.
  ///
  /// - Parameters:
  ///   - cost: zero or less removes every entry, including entries that cost nothing.
  ///   - order: which entries go first.
  @discardableResult
  func trim(toCost cost: Int, order: TrimOrder) throws(Failure) -> RemovalSummary

  /// Removes entries whose last access (with `.write`, whose write) was more than `age` ago.
  ///
  /// - Parameters:
  ///   - age: zero or less removes every entry.
  ///   - basis: whether the age counts from the last access or from the write.
  @discardableResult
  func trim(olderThan age: Duration, by basis: AgeBasis) throws(Failure) -> RemovalSummary

  /// Removes expired entries: those whose lifetime has ended or that have been idle for too long.
  /// No read finds them.
  @discardableResult
  func removeExpired() throws(Failure) -> RemovalSummary
}

extension Trimming {
  /// Removes entries until at most `count` are left, the least recently used first.
  @inlinable
  @discardableResult
  public func trim(toCount count: Int) throws(Failure) -> RemovalSummary {
    try trim(toCount: count, order: .leastRecentlyUsed)
  }

  /// Removes entries until the total cost is at most `cost`, the least recently used first.
  @inlinable
  @discardableResult
  public func trim(toCost cost: Int) throws(Failure) -> RemovalSummary {
    try trim(toCost: cost, order: .leastRecentlyUsed)
  }

  /// Removes entries whose last access was more than `age` ago.
  @inlinable
  @discardableResult
  public func trim(olderThan age: Duration) throws(Failure) -> RemovalSummary {
    try trim(olderThan: age, by: .access)
  }
}
