/// The limits of tags.
enum TagLimits {
  /// The maximum number of tags of one entry.
  static let tagCount = 32
  /// The maximum number of bytes of one tag.
  static let byteCount = 255
  /// The maximum number of removed tags whose entries are not yet swept.
  static let markCount = 1000

  /// The bytes of a tag.
  ///
  /// - Throws: `invalidTag`.
  static func bytes(of tag: String) throws(StoreError) -> [UInt8] {
    let bytes = Array(tag.utf8)
    guard !bytes.isEmpty, bytes.count <= byteCount else {
      throw .invalidTag(
        reason: "it has \(bytes.count) bytes; it must have 1 to \(byteCount)")
    }
    return bytes
  }

  /// The bytes of an entry's tags, each once.
  ///
  /// - Throws: `invalidTag`.
  static func bytes(of tags: [String]) throws(StoreError) -> [[UInt8]] {
    var all: [[UInt8]] = []
    for tag in tags {
      let tag = try bytes(of: tag)
      if !all.contains(tag) { all.append(tag) }
    }
    guard all.count <= tagCount else {
      throw .invalidTag(reason: "the entry has \(all.count) tags; at most \(tagCount) are allowed")
    }
    return all
  }
}
