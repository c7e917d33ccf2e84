public import CairnStore
public import FoundationEssentials

// Makes `localizedDescription` the same as `description`.

extension CacheError: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}

extension StoreError: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}
