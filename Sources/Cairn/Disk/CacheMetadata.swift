internal import CairnStore

/// The prefix that a cache adds to the user's metadata in a record:
///
///     0      1         2          4         8 …
///     ┌──────┬─────────┬──────────┬─────────┬───────────────
///     │ 0xCA │ version │ reserved │   tag   │ user's metadata
///     └──────┴─────────┴──────────┴─────────┴───────────────
///
/// The tag is little-endian. If it is 0 and the user has no metadata, the record has no metadata at
/// all, like one that a plain store wrote. Docs/FileFormat.md describes the same format.
package struct CacheMetadata: Equatable, Sendable {
  package static let mark: UInt8 = 0xCA
  package static let version: UInt8 = 1
  package static let byteCount = 8

  package private(set) var tag: UInt32 = 0
  /// The user's metadata.
  package private(set) var rest: [UInt8] = []

  /// The bytes to store.
  package var encoded: [UInt8] {
    if tag == 0 && rest.isEmpty { return [] }
    var bytes: [UInt8] = [Self.mark, Self.version, 0, 0]
    bytes.append(littleEndian: tag)
    return bytes + rest
  }

  package init(tag: UInt32, rest: [UInt8]) {
    self.tag = tag
    self.rest = rest
  }

  /// - Parameter wantsRest: whether to copy the user's metadata.
  /// - Throws: if a cache did not write the bytes, with the reason.
  package init(decoding bytes: RawSpan, wantsRest: Bool) throws(CodingFailure) {
    if bytes.byteCount == 0 { return }
    guard bytes.byteCount >= Self.byteCount, bytes.load(UInt8.self, at: 0) == Self.mark else {
      throw CodingFailure("its metadata is not of a cache")
    }
    let version = bytes.load(UInt8.self, at: 1)
    guard version == Self.version else {
      throw CodingFailure("its metadata has the form \(version), which this version does not read")
    }
    guard bytes.load(UInt16.self, at: 2) == 0 else {
      throw CodingFailure("its metadata has bits that are not in use")
    }
    tag = bytes.load(UInt32.self, at: 4)
    if wantsRest { rest = bytes.extracting(Self.byteCount..<bytes.byteCount).copied() }
  }
}
