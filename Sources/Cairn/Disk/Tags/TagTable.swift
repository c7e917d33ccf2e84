internal import CairnStore

/// The marks of removed tags. A read does not find an entry if its version is at or below the mark of
/// one of its tags.
///
///     0      1      2          4              8         16 …
///     ┌──────┬──────┬──────────┬──────────────┬─────────┬───────────────────────────────
///     │ 0xCB │ form │ reserved │ number n     │ all     │ n times: version, length, tag
///     └──────┴──────┴──────────┴──────────────┴─────────┴───────────────────────────────
///
/// This is the value of one record. All numbers are little-endian; versions have 8 bytes and
/// lengths have one. `all` is a mark of every tag, which replaces lost marks. It is 0 if there is
/// none.
struct TagTable: Equatable, Sendable {
  private(set) var marks: [[UInt8]: UInt64] = [:]
  private(set) var all: UInt64 = 0

  init(all: UInt64 = 0) { self.all = all }

  var isEmpty: Bool { marks.isEmpty && all == 0 }

  /// The number of marked tags.
  var count: Int { marks.count + (all > 0 ? 1 : 0) }

  /// The newest mark.
  var newest: UInt64 { max(all, marks.values.max() ?? 0) }

  /// Marks a tag.
  ///
  /// - Parameter mayMarkAll: whether to mark every tag if the table is full.
  /// - Returns: whether it did.
  /// - Throws: `invalidTag`.
  mutating func mark(
    _ tag: [UInt8], _ version: UInt64, mayMarkAll: Bool
  ) throws(StoreError) -> Bool {
    if marks[tag] != nil || marks.count < TagLimits.markCount {
      marks[tag] = max(marks[tag] ?? 0, version)
      return false
    }
    guard mayMarkAll else {
      throw .invalidTag(
        reason: "\(TagLimits.markCount) removed tags still have entries to remove")
    }
    self = TagTable(all: max(newest, version))
    return true
  }

  /// Removes the marks that another table has too, with the same versions.
  mutating func subtract(_ other: TagTable) {
    marks = marks.filter { other.marks[$0.key] != $0.value }
    if all == other.all { all = 0 }
  }

  /// Whether a mark hides an entry with this metadata and version.
  func hides(_ metadata: RawSpan, _ version: UInt64) -> Bool {
    var isHidden = false
    CacheMetadata.forEachTag(in: metadata) { tag in
      isHidden = version <= all || version <= marks[tag.copied()] ?? 0
      return !isHidden
    }
    return isHidden
  }

  /// Whether a mark hides an entry with these tags and this version. The version is 0 for a value
  /// that was loaded before the first write.
  func hides(_ tags: [[UInt8]], _ version: UInt64) -> Bool {
    tags.contains { tag in
      all > 0 && version <= all || marks[tag].map { version <= $0 } == true
    }
  }

  // MARK: Bytes

  private static let form: [UInt8] = [0xCB, 1, 0, 0]
  private static let headByteCount = 16

  var encoded: [UInt8] {
    var bytes = Self.form
    bytes.append(littleEndian: UInt32(marks.count))
    bytes.append(littleEndian: all)
    for (tag, version) in marks {
      bytes.append(littleEndian: version)
      bytes.append(UInt8(tag.count))
      bytes += tag
    }
    return bytes
  }

  /// - Parameter recordVersion: the version of the record, which is above all marks in it.
  /// - Returns: `nil` if a cache did not write the bytes, or if a mark is not below the record's
  ///   version.
  init?(decoding bytes: RawSpan, recordVersion: UInt64) {
    guard bytes.byteCount >= Self.headByteCount,
      Self.form.withBytes({ bytes.starts(with: $0) })
    else { return nil }
    all = bytes.load(UInt64.self, at: 8)
    var start = Self.headByteCount
    for _ in 0..<bytes.load(UInt32.self, at: 4) {
      guard bytes.byteCount - start >= 9 else { return nil }
      let version = bytes.load(UInt64.self, at: start)
      let end = start + 9 + Int(bytes.load(UInt8.self, at: start + 8))
      guard end > start + 9, end <= bytes.byteCount else { return nil }
      let tag = bytes.extracting((start + 9)..<end).copied()
      guard marks.updateValue(version, forKey: tag) == nil else { return nil }
      start = end
    }
    guard start == bytes.byteCount, newest < recordVersion else { return nil }
  }
}
