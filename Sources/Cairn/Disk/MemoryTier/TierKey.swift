internal import CairnStore

/// A key in the memory tier's form: two keys are equal if they have the same bytes on disk.
///
/// Two strings that are canonically equal but differ in their UTF-8 are one key in a dictionary,
/// but two keys on disk. A custom key coder may also encode equal keys differently, or different
/// keys equally. If memory compared keys by `==`, a write of one key could leave a stale value of
/// another.
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

  // The synthesised `hashValue` is not specialised, and would look up types at every read.
  @inlinable
  @inline(__always)
  var hashValue: Int {
    if let bytes { return hashOfBytes(bytes) }
    if let text = key as? String { return text.hashOfBytes }
    return key.hashValue
  }

  @inlinable
  @inline(__always)
  func hash(into hasher: inout Hasher) { hasher.combine(hashValue) }
}

/// Takes fewer instructions than `Hasher`, which hashes the normal form of a string.
private let hashOfKeys = SipHash(secret: (0..<16).map { _ in UInt8.random(in: 0...255) })

@usableFromInline
func hashOfBytes(_ bytes: [UInt8]) -> Int {
  bytes.withBytes { Int(truncatingIfNeeded: hashOfKeys.hash($0)) }
}

extension String {
  @usableFromInline
  var hashOfBytes: Int { withBytes { Int(truncatingIfNeeded: hashOfKeys.hash($0)) } }

  /// Whether the UTF-8 of two strings is the same, byte for byte.
  @usableFromInline
  func hasSameBytes(as other: String) -> Bool {
    withBytes { bytes in other.withBytes { bytes.equals($0) } }
  }
}

extension MemoryTable {
  /// The hash of the key with these bytes.
  static func hash<TierKeyed>(ofBytes bytes: [UInt8]) -> UInt32 where Key == TierKey<TierKeyed> {
    fold(hashOfBytes(bytes))
  }
}
