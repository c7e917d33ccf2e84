public import CairnStore

/// A cache that can remove many entries at once, in memory or on disk. For generic code.
public protocol Trimming: Sendable {
  /// The type of error that a failed call throws.
  associatedtype Failure: Error = Never

  /// Removes entries by count, size, age or expiry.
  ///
  /// - Returns: a summary of the removed entries.
  @discardableResult
  func trim(_ trim: Trim) throws(Failure) -> RemovalSummary
}
