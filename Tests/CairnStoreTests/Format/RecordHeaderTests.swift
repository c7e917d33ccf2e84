import CairnStore
import Testing

@Suite("Record headers")
struct RecordHeaderTests {
  static let segment = SegmentHeader(
    storeIdentifier: [UInt8](repeating: 1, count: 16), id: SegmentID(rawValue: 3),
    salt: 0xFEED_FACE_CAFE_BEEF, baseSequence: 100, baseTime: 1000)

  /// A whole record with every field that the flags announce.
  static func record(
    flags: UInt8, kind: RecordKind = .put, key: [UInt8] = Array("a key".utf8),
    value: [UInt8] = Array("the value".utf8), at offset: Int = 4096
  ) -> (header: RecordHeader, bytes: [UInt8]) {
    var header = RecordHeader(kind: kind)
    header.flags = RecordFlags(rawValue: flags)
    header.keyByteCount = key.count
    header.valueByteCount = value.count
    header.valueChecksum = CRC32C.checksum(of: value.rawSpan)
    header.sequenceDelta = 77
    header.writtenDelta = 88
    var metadata: [UInt8] = []
    if header.flags.contains(.expiry) { header.expires = -5 }
    if header.flags.contains(.idleLimit) { header.idleLimit = .max }
    if header.flags.contains(.cost) { header.cost = 12_345_678_901 }
    if header.flags.contains(.metadata) {
      metadata = [9, 8, 7]
      header.metadataByteCount = 3
    }
    if header.flags.contains(.batch) {
      header.batchIndex = 2
      header.batchCount = 4
    }
    if header.flags.contains(.syncMark) { header.syncMark = 72_000 }
    var bytes = [UInt8](repeating: 0xEE, count: header.byteCount)
    let copy = header
    bytes.withMutableSpan { bytes in
      copy.encode(key: key.rawSpan, metadata: metadata.rawSpan, value: value.rawSpan, into: &bytes)
      copy.seal(&bytes, at: offset, seed: segment.recordSeed)
    }
    header.headerChecksum = bytes.rawSpan.load(UInt32.self, at: 0)
    return (header, bytes)
  }

  static func decoded(_ bytes: [UInt8], limit: Int? = nil) -> RecordHeader? {
    RecordHeader(decoding: bytes.rawSpan, limit: limit ?? bytes.count)
  }

  static func isValid(_ bytes: [UInt8], at offset: Int = 4096) -> Bool {
    let span = bytes.rawSpan
    guard let header = RecordHeader(decoding: span, limit: span.byteCount) else { return false }
    return header.hasValidChecksum(span, at: offset, seed: segment.recordSeed)
  }

  @Test("Every combination of flags is decoded as it was encoded", arguments: 0..<UInt8(64))
  func roundTrip(flags: UInt8) {
    let (header, bytes) = Self.record(flags: flags)
    #expect(Self.decoded(bytes) == header)
    #expect(Self.isValid(bytes))
    #expect(bytes[header.keyRange] == Array("a key".utf8)[...])
    #expect(bytes[header.valueRange] == Array("the value".utf8)[...])
    #expect(header.byteCount % 8 == 0)
    #expect(bytes[header.valueRange.upperBound...].allSatisfy { $0 == 0 }, "padding is zero")
  }

  @Test("Metadata is between key and value")
  func metadata() {
    let (header, bytes) = Self.record(flags: RecordFlags.metadata.rawValue)
    #expect(bytes[header.metadataRange] == [9, 8, 7])
    #expect(header.metadataRange.lowerBound == header.keyRange.upperBound)
    #expect(header.valueRange.lowerBound == header.metadataRange.upperBound)
  }

  @Test("Every flipped bit of the head is found", arguments: [0, 63] as [UInt8])
  func flips(flags: UInt8) {
    let (header, bytes) = Self.record(flags: flags)
    for bit in 0..<(header.headByteCount * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!Self.isValid(damaged), "bit \(bit)")
    }
  }

  @Test("A record that was moved, or that belongs to another segment, is not valid")
  func misplaced() {
    let bytes = Self.record(flags: 0).bytes
    #expect(!Self.isValid(bytes, at: 4104))
    for change in 0..<2 {
      var other = Self.segment
      if change == 0 { other.salt += 1 } else { other.id = SegmentID(rawValue: 4) }
      let isValid = RecordHeader(decoding: bytes.rawSpan, limit: bytes.count)?
        .hasValidChecksum(bytes.rawSpan, at: 4096, seed: other.recordSeed)
      #expect(isValid == false)
    }
  }

  @Test("A truncated header is refused, wherever it ends")
  func truncated() {
    let (header, bytes) = Self.record(flags: 63)
    for count in 0..<header.fieldByteCount {
      #expect(Self.decoded(Array(bytes.prefix(count)), limit: 1 << 20) == nil, "\(count) bytes")
    }
  }

  @Test("Unknown kinds are refused", arguments: [0, 4, 5, 127, 128, 255] as [UInt8])
  func unknownKind(kind: UInt8) {
    var bytes = Self.record(flags: 0).bytes
    bytes[22] = kind
    #expect(Self.decoded(bytes) == nil)
  }

  @Test("Unknown flags are refused", arguments: [0x40, 0x80, 0xC0, 0xFF] as [UInt8])
  func unknownFlags(flags: UInt8) {
    var bytes = Self.record(flags: 0).bytes + [UInt8](repeating: 0, count: 64)
    bytes[23] = flags
    #expect(Self.decoded(bytes) == nil)
  }

  /// 0, 1, numbers around the record's real end, and the extremes.
  static let lengths: [UInt64] = [
    0, 1, 2, 7, 8, 9, 47, 48, 49, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0x7FFF_FFFF,
    0x8000_0000, 0xFFFF_FFF7, 0xFFFF_FFF8, 0xFFFF_FFFE, 0xFFFF_FFFF,
  ]

  @Test("Hostile lengths neither trap nor reach beyond the limit", arguments: lengths)
  func hostileLength(length: UInt64) {
    // The size and position of each length: value, key, metadata.
    for (offset, width) in [(16, 4), (20, 2), (48, 2)] {
      for kind in UInt8(0)...4 {
        for flags in UInt8(0)...63 {
          var bytes = Self.record(flags: flags).bytes
          bytes += [UInt8](repeating: 0, count: 128 - min(128, bytes.count))
          bytes[22] = kind
          for index in 0..<width {
            bytes[offset + index] = UInt8(truncatingIfNeeded: length >> UInt64(8 * index))
          }
          for limit in [0, 24, 66, bytes.count, 1 << 20, 1 << 40] {
            guard let header = Self.decoded(bytes, limit: limit) else { continue }
            #expect(header.byteCount <= limit)
            #expect(header.valueRange.upperBound <= header.byteCount)
            #expect(header.headByteCount <= header.byteCount)
          }
        }
      }
    }
  }

  @Test("A record that ends one byte beyond the limit is refused")
  func limit() {
    let (header, bytes) = Self.record(flags: 0)
    #expect(Self.decoded(bytes, limit: header.byteCount) != nil)
    #expect(Self.decoded(bytes, limit: header.byteCount - 1) == nil)
  }

  @Test("A put or tombstone without a key is refused", arguments: [RecordKind.put, .tombstone])
  func withoutKey(kind: RecordKind) {
    #expect(Self.decoded(Self.record(flags: 0, kind: kind, key: [], value: []).bytes) == nil)
  }

  @Test("A tombstone with a value is refused")
  func tombstoneWithValue() {
    #expect(Self.decoded(Self.record(flags: 0, kind: .tombstone).bytes) == nil)
    #expect(Self.decoded(Self.record(flags: 0, kind: .tombstone, value: []).bytes) != nil)
  }

  @Test("A roll record with key, value or flags is refused")
  func rollWithMore() {
    #expect(Self.decoded(Self.record(flags: 0, kind: .roll, key: [], value: []).bytes) != nil)
    #expect(Self.decoded(Self.record(flags: 0, kind: .roll, key: [1], value: []).bytes) == nil)
    #expect(Self.decoded(Self.record(flags: 0, kind: .roll, key: [], value: [1]).bytes) == nil)
    #expect(Self.decoded(Self.record(flags: 1, kind: .roll, key: [], value: []).bytes) == nil)
  }

  @Test("An index at or beyond the end of its batch is refused", arguments: [4, 5, UInt32.max])
  func batchPlace(index: UInt32) {
    var bytes = Self.record(flags: RecordFlags.batch.rawValue).bytes
    bytes.withMutableSpan { $0.store(index, at: 24) }
    #expect(Self.decoded(bytes) == nil)
  }
}
