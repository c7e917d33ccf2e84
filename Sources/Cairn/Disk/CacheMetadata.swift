internal import CairnStore

/// The prefix that a cache adds to the user's metadata in a record:
///
///     0      1         2          4         8 …
///     ┌──────┬─────────┬──────────┬─────────┬──────┬─────────────────
///     │ 0xCA │ version │ n        │   tag   │ tags │ user's metadata
///     └──────┴─────────┴──────────┴─────────┴──────┴─────────────────
///
/// The tag is the value coder's. The tag and n are little-endian. The entry's tags take n bytes:
/// for each tag its length in one byte, then the tag. Without tags, n is 0 and the version is 1.
/// Otherwise the version is 2. If the coder's tag is 0 and the entry has neither tags nor user
/// metadata, the record has no metadata at all, as if a plain store had written it.
/// Docs/FileFormat.md describes the same format.
package struct CacheMetadata: Equatable, Sendable {
  package static let mark: UInt8 = 0xCA
  package static let version: UInt8 = 1
  package static let versionWithTags: UInt8 = 2
  package static let byteCount = 8

  package private(set) var tag: UInt32 = 0
  /// The entry's tags, each preceded by its length.
  private var tagBytes: [UInt8] = []
  /// The user's metadata.
  package private(set) var rest: [UInt8] = []

  /// The bytes to store.
  package var encoded: [UInt8] {
    if tag == 0 && rest.isEmpty && tagBytes.isEmpty { return [] }
    var bytes: [UInt8] = [Self.mark, tagBytes.isEmpty ? Self.version : Self.versionWithTags]
    bytes.append(littleEndian: UInt16(tagBytes.count))
    bytes.append(littleEndian: tag)
    return bytes + tagBytes + rest
  }

  /// - Parameter tags: within the limits of `TagLimits`.
  package init(tag: UInt32, tags: [[UInt8]] = [], rest: [UInt8]) {
    self.tag = tag
    for tag in tags { tagBytes += [UInt8(tag.count)] + tag }
    self.rest = rest
  }

  /// - Parameter wantsRest: whether to copy the user's metadata and the entry's tags.
  /// - Throws: the reason, if a cache did not write the bytes.
  package init(decoding bytes: RawSpan, wantsRest: Bool) throws(CodingFailure) {
    if bytes.byteCount == 0 { return }
    guard bytes.byteCount >= Self.byteCount, bytes.load(UInt8.self, at: 0) == Self.mark else {
      throw CodingFailure("its metadata is not a cache's")
    }
    let version = bytes.load(UInt8.self, at: 1)
    guard version == Self.version || version == Self.versionWithTags else {
      throw CodingFailure("its metadata has format \(version), which this version cannot read")
    }
    let tagByteCount = Int(bytes.load(UInt16.self, at: 2))
    if version == Self.version {
      guard tagByteCount == 0 else {
        throw CodingFailure("its metadata uses reserved bits")
      }
    } else if !Self.forEachTag(in: bytes, { _ in true }) {
      throw CodingFailure("its metadata has invalid tags")
    }
    tag = bytes.load(UInt32.self, at: 4)
    if wantsRest {
      let start = Self.byteCount + tagByteCount
      tagBytes = bytes.extracting(Self.byteCount..<start).copied()
      rest = bytes.extracting(start..<bytes.byteCount).copied()
    }
  }

  /// The tags of the entry, or none if they were not copied.
  package var tags: [[UInt8]] {
    var tags: [[UInt8]] = []
    var start = 0
    while start < tagBytes.count {
      let end = start + 1 + Int(tagBytes[start])
      tags.append(Array(tagBytes[(start + 1)..<end]))
      start = end
    }
    return tags
  }

  /// The same, as text.
  package var tagNames: [String] { tags.map { String(decoding: $0, as: UTF8.self) } }

  /// Whether the header of metadata on disk says that the entry has tags.
  static func hasTags(_ bytes: RawSpan) -> Bool {
    bytes.byteCount > byteCount && bytes.load(UInt8.self, at: 1) == versionWithTags
      && bytes.load(UInt8.self, at: 0) == mark
  }

  /// The tags in metadata on disk.
  static func tags(in bytes: RawSpan) -> [[UInt8]] {
    var tags: [[UInt8]] = []
    forEachTag(in: bytes) { tag in
      tags.append(tag.copied())
      return true
    }
    return tags
  }

  /// Calls `body` with each tag in metadata on disk, until `body` returns `false`.
  ///
  /// - Returns: whether the visited tags are valid. `false` for metadata without tags.
  @discardableResult
  static func forEachTag(in bytes: RawSpan, _ body: (RawSpan) -> Bool) -> Bool {
    guard hasTags(bytes) else { return false }
    let end = byteCount + Int(bytes.load(UInt16.self, at: 2))
    guard end > byteCount, end <= bytes.byteCount else { return false }
    var start = byteCount
    while start < end {
      let next = start + 1 + Int(bytes.load(UInt8.self, at: start))
      guard next > start + 1, next <= end else { return false }
      if !body(bytes.extracting((start + 1)..<next)) { return true }
      start = next
    }
    return true
  }
}
