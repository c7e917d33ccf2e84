internal import CairnStore

/// Computes the cost of a value that is set without one.
@usableFromInline
struct ValueCosting<Key, Value>: Sendable {
  @usableFromInline let costing: (@Sendable (Key, Value) -> Int)?
  /// Computes the cost from the value's size in bytes, if there is no `costing` and the size is
  /// known.
  @usableFromInline let byteCosting: (@Sendable (Value) -> Int)?

  init(_ costing: (@Sendable (Key, Value) -> Int)?) {
    self.costing = costing
    byteCosting = costing == nil ? makeByteCosting() : nil
  }

  /// The cost from `costing`, else the size of the value in bytes, or `nil` if that is unknown.
  @inlinable
  @inline(__always)
  func cost(of value: Value, forKey key: Key) -> Int? {
    if let costing { return costing(key, value) }
    // In code specialised for these types, the casts cost nothing, but the call below was measured
    // at 50 ns. Casting any other array would copy it.
    if Value.self == [UInt8].self, let bytes = value as? [UInt8] { return bytes.count }
    if Value.self == String.self, let text = value as? String { return text.utf8.count }
    return byteCosting?(value)
  }
}

/// A closure that computes costs from sizes in bytes, or `nil` if values have no known size.
private func makeByteCosting<Value>() -> (@Sendable (Value) -> Int)? {
  func costing<Bytes: ByteSource & SendableMetatype>(
    _ type: Bytes.Type
  ) -> @Sendable (Value) -> Int {
    { value in (value as? Bytes).map { $0.withBytes { $0.byteCount } } ?? 0 }
  }
  guard let type = Value.self as? any (ByteSource & SendableMetatype).Type else { return nil }
  return costing(type)
}
