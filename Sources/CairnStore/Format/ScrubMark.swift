/// The progress of the scrub that maintenance runs: the file `SCRUB`, little-endian.
///
///     0       8     12        16     32      40   48       56      64       72        80          88       96
///     ┌───────┬─────┬─────────┬──────┬───────┬────┬────────┬───────┬────────┬─────────┬───────────┬────────┐
///     │ magic │ CRC │ version │ UUID │ last  │ id │ offset │ began │ damage │ bytes   │ completed │ damage │
///     └───────┴─────┴─────────┴──────┴───────┴────┴────────┴───────┴────────┴─────────┴───────────┴────────┘
///
/// The mark is only a hint, written in place and never synced. If anything is wrong with the mark,
/// the scrub begins again.
package struct ScrubMark: Sendable, Hashable {
  package static let byteCount = 96
  private static let magic: [UInt8] = [0x8B, 0x43, 0x52, 0x4E, 0x42, 0x0D, 0x0A, 0x1A]  // "CRNB"
  private static let version: UInt32 = 1

  /// The last segment of the current cycle.
  package var lastID: UInt64 = 0
  /// Where to resume: this segment, or the next one that exists. 0 if no cycle is under way.
  package var id: UInt64 = 0
  package var offset = 0
  /// When the current cycle began, or the last one if none is under way.
  package var began = Timestamp(millisecondsSinceEpoch: .min)
  /// What the current cycle has found and read so far.
  package var damageCount = 0
  package var readByteCount = 0
  /// When the last cycle finished; `Int64.min` milliseconds for never.
  package var completed = Timestamp(millisecondsSinceEpoch: .min)
  package var completedDamageCount = 0

  package init() {}

  package func encoded(storeIdentifier: [UInt8]) -> [UInt8] {
    var rest: [UInt8] = []
    rest.append(littleEndian: Self.version)
    rest.append(contentsOf: storeIdentifier)
    rest.append(littleEndian: lastID)
    rest.append(littleEndian: id)
    rest.append(littleEndian: UInt64(offset))
    rest.append(littleEndian: began.millisecondsSinceEpoch)
    rest.append(littleEndian: UInt64(damageCount))
    rest.append(littleEndian: UInt64(readByteCount))
    rest.append(littleEndian: completed.millisecondsSinceEpoch)
    rest.append(littleEndian: UInt64(completedDamageCount))
    var bytes = Self.magic
    bytes.append(littleEndian: rest.withSpan { CRC32C.checksum(of: $0) })
    return bytes + rest
  }

  /// Returns `nil` if the bytes are not a mark of this store and this version.
  package init?(decoding bytes: RawSpan, storeIdentifier: [UInt8]) {
    guard bytes.byteCount == Self.byteCount,
      Self.magic.withSpan({ $0.equals(bytes.extracting(0..<8)) }),
      CRC32C.checksum(of: bytes.extracting(12..<Self.byteCount)) == bytes.load(UInt32.self, at: 8),
      bytes.load(UInt32.self, at: 12) == Self.version,
      storeIdentifier.withSpan({ $0.equals(bytes.extracting(16..<32)) })
    else { return nil }
    func count(at offset: Int) -> Int? {
      let count = bytes.load(UInt64.self, at: offset)
      return count <= UInt64(FormatVersion.highestSequence) ? Int(count) : nil
    }
    lastID = bytes.load(UInt64.self, at: 32)
    id = bytes.load(UInt64.self, at: 40)
    guard let offset = count(at: 48), offset <= FormatVersion.highestOffset,
      lastID < FormatVersion.highestSequence, id <= lastID + 1,
      let damageCount = count(at: 64), let readByteCount = count(at: 72),
      let completedDamageCount = count(at: 88)
    else { return nil }
    self.offset = offset
    began = Timestamp(millisecondsSinceEpoch: bytes.load(Int64.self, at: 56))
    self.damageCount = damageCount
    self.readByteCount = readByteCount
    completed = Timestamp(millisecondsSinceEpoch: bytes.load(Int64.self, at: 80))
    self.completedDamageCount = completedDamageCount
  }
}
