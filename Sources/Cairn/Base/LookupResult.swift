/// The result of looking up a key: its value, or why it has none.
public enum LookupResult<Value: Sendable>: Sendable {
  /// The key's value.
  case found(Value)
  /// The key's value has expired, and the cache has not removed it yet.
  case expired
  /// The key has no value, or its value has expired and was removed.
  case absent
}

extension LookupResult: Equatable where Value: Equatable {}
extension LookupResult: Hashable where Value: Hashable {}
