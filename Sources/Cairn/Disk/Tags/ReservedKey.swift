internal import CairnStore

/// The keys reserved for the cache itself. A user's key with the same prefix is refused.
package enum ReservedKey {
  /// Sixteen bytes, so that no integer and hardly any UUID has this prefix.
  private static let prefix: [UInt8] = [0] + Array("cairn/reserved/".utf8)
  private static var byteCount: Int { 16 }
  /// The key of the marks of removed tags.
  package static let marks: [UInt8] = prefix + Array("tags".utf8)

  /// Whether a key is one of them.
  @inline(__always)
  package static func contains(_ key: RawSpan) -> Bool {
    key.byteCount >= byteCount && key.load(UInt8.self, at: 0) == 0 && hasPrefix(key)
  }

  @inline(never)
  private static func hasPrefix(_ key: RawSpan) -> Bool {
    prefix.withBytes { key.starts(with: $0) }
  }
}
