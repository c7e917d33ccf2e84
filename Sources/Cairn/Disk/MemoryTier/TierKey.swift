internal import CairnStore

/// A key as the memory tier has it: equal to another where both have the same bytes on disk.
///
/// Two texts that are canonically equal and differ in their UTF-8 are one key to a dictionary, and two on
/// disk; and a key coder of one's own may tell keys apart that are equal, or not tell apart those that
/// differ. If memory went by `==`, a write of the one would leave a stale value of the other.
@usableFromInline
struct TierKey<Key: Hashable & Sendable>: Hashable, Sendable {
  @usableFromInline let key: Key
  /// Those on disk, where `==` of keys may not agree with them.
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
    // In code that is specialised for strings these casts are none.
    if let left = left.key as? String, let right = right.key as? String {
      return left.hasSameBytes(as: right)
    }
    return left.key == right.key
  }

  // The one that the compiler makes is not specialised, and looks types up with every read.
  @inlinable
  @inline(__always)
  var hashValue: Int {
    guard let bytes else { return key.hashValue }
    var hasher = Hasher()
    hasher.combine(bytes)
    return hasher.finalize()
  }

  // Texts that are canonically equal have the same hash, which does no harm.
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
  /// The hash of a key that is known by these bytes.
  static func hash<TierKeyed>(ofBytes bytes: [UInt8]) -> UInt32 where Key == TierKey<TierKeyed> {
    var hasher = Hasher()
    hasher.combine(bytes)
    return fold(hasher.finalize())
  }
}
