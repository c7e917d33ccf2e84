internal import CairnStore

/// A key in the memory tier's form: two keys are equal if they have the same bytes on disk.
///
/// Two texts that are canonically equal but differ in their UTF-8 are one key to a dictionary, and
/// two on disk. A custom key coder may also encode equal keys differently, or different keys
/// equally. If memory compared by `==`, a write of one key would leave a stale value of the other.
@usableFromInline
struct TierKey<Key: Hashable & Sendable>: Hashable, Sendable {
  @usableFromInline let key: Key
  /// The bytes on disk, if `==` of keys may disagree with them.
  @usableFromInline let bytes: [UInt8]?

  @inlinable
  @inline(__always)
  init(_ key: Key, bytes: [UInt8]? = nil) {
    self.key = key
    self.bytes = bytes
  }

  @inlinable
  @inline(__always)
  static func == (left: TierKey, right: TierKey) -> Bool {
    if let left = left.bytes, let right = right.bytes { return left == right }
    // In code specialised for strings, these casts cost nothing.
    if let left = left.key as? String, let right = right.key as? String {
      return left.hasSameBytes(as: right)
    }
    return left.key == right.key
  }

  // The synthesised `==` is not specialised, and looks up types at every read.
  @inlinable
  @inline(__always)
  var hashValue: Int {
    guard let bytes else { return key.hashValue }
    var hasher = Hasher()
    hasher.combine(bytes)
    return hasher.finalize()
  }

  // Canonically equal texts have the same hash, which does no harm.
  @inlinable
  @inline(__always)
  func hash(into hasher: inout Hasher) {
    if let bytes {
      hasher.combine(bytes)
    } else {
      hasher.combine(key)
    }
  }
}

extension String {
  /// Whether the UTF-8 of two strings is the same, byte for byte.
  @usableFromInline
  func hasSameBytes(as other: String) -> Bool {
    withBytes { bytes in other.withBytes { bytes.equals($0) } }
  }
}

extension MemoryTable {
  /// The hash of the key with these bytes.
  static func hash<TierKeyed>(ofBytes bytes: [UInt8]) -> UInt32 where Key == TierKey<TierKeyed> {
    var hasher = Hasher()
    hasher.combine(bytes)
    return fold(hasher.finalize())
  }
}
