/// A key in the memory tier's form: two keys are equal if they have the same bytes on disk.
///
/// Two strings that are canonically equal but differ in their UTF-8 are one key in a dictionary,
/// but two keys on disk. A custom key coder may also encode equal keys differently, or different
/// keys equally. If memory compared keys by `==`, one entry in memory would stand for two on disk.
@usableFromInline
struct TierKey<Key: Hashable & Sendable>: Hashable, Sendable {
  @usableFromInline let key: Key
  /// The bytes on disk, if `==` of keys may disagree with them.
  @usableFromInline let bytes: [UInt8]?
  /// The hash of the bytes: in the index of the cache, or one of its own in a cache that follows.
  @usableFromInline let hash: UInt64

  @inlinable
  @inline(__always)
  init(_ key: Key, bytes: [UInt8]?, hash: UInt64) {
    self.key = key
    self.bytes = bytes
    self.hash = hash
  }

  @inlinable
  @inline(__always)
  static func == (left: TierKey, right: TierKey) -> Bool {
    if left.hash != right.hash { return false }
    if let left = left.bytes, let right = right.bytes { return left == right }
    // In code specialised for strings, these casts cost nothing.
    if let left = left.key as? String, let right = right.key as? String {
      return left.hasSameBytes(as: right)
    }
    return left.key == right.key
  }

  // The synthesised `hashValue` is not specialised, and would look up types at every read.
  @inlinable
  @inline(__always)
  var hashValue: Int { Int(truncatingIfNeeded: hash) }

  @inlinable
  @inline(__always)
  func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

extension String {
  /// Whether the UTF-8 of two strings is the same, byte for byte.
  @usableFromInline
  func hasSameBytes(as other: String) -> Bool {
    withBytes { bytes in other.withBytes { bytes.equals($0) } }
  }
}
