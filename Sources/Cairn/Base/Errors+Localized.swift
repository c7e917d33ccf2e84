public import CairnStore
public import FoundationEssentials

// So that `localizedDescription` says what `description` says.

extension CacheError: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}

extension StoreError: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}
