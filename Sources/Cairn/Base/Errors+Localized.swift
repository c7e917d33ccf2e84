public import CairnEssentials
public import CairnStore

// Makes `localizedDescription` the same as `description`.
extension StoreError: LocalizedError {
  /// The same as `description`.
  public var errorDescription: String? { description }
}
