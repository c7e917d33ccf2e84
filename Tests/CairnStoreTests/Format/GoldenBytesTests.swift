import CairnStore
import Testing

/// The format, byte for byte. A separate Python script, with its own CRC32C, made the constants
/// from the same field values. A change here is a change of the format.
@Suite("Golden bytes")
struct GoldenBytesTests {
  static let segment = """
    8b43524e530d0a1a 0100 0000 00000000 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 0700000000000000
    8877665544332211 e803000000000000 00b9556900000000 355c9323 00000000
    """
  static let put = "9efb3b09 6303e0e1 05000000 3c000000 05000000 0300 01 00 6b6579 76616c7565"
  static let everything = """
    e2af6ce0 529ff803 06000000 3d000000 02000000 0100 01 3f db92db769b010000 905f010000000000
    2a00000000000000 0300 01000000 02000000 0010000000000000 6b 6d6574 0102
    """
  static let tombstone = "7408be20 00000000 07000000 3e000000 00000000 0300 02 00 6b6579 0000000000"
  static let roll = "bf3a8b16 00000000 08000000 00000000 00000000 0000 03 00"
  static let manifest = """
    8b43524e4d0d0a1a 0100 0000 ec000000 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 0300000000000000
    0c00000000000000 101112131415161718191a1b1c1d1e1f f401000000000000 f203000000000000
    0000000000000000 7ba8da769b010000 606162636465666768696a6b6c6d6e6f 01000000 01000000 01000000
    01000000 02000000 00000000 0700000000000000 8877665544332211 1001000000000000
    0500000000000000 9900000000000000 0010000000000000 f501000000000000 e703000000000000
    0000000000000000 0900000000000000 0a00000000000000 0b00000000000000 caaa7445
    """

  static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  static func encoded(
    _ header: RecordHeader, key: String = "", metadata: String = "", value: [UInt8] = [],
    at offset: Int
  ) -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: header.byteCount)
    bytes.withMutableSpan { bytes in
      header.encode(
        key: Array(key.utf8).rawSpan, metadata: Array(metadata.utf8).rawSpan, value: value.rawSpan,
        into: &bytes)
      header.seal(&bytes, at: offset, seed: SegmentHeaderTests.header.recordSeed)
    }
    return bytes
  }

  @Test("A segment header")
  func segmentHeader() {
    #expect(SegmentHeaderTests.header.encoded() == Self.bytes(Self.segment))
  }

  @Test("A put without optional fields")
  func plainPut() {
    let value = Array("value".utf8)
    var header = RecordHeader(kind: .put)
    header.keyByteCount = 3
    header.valueByteCount = 5
    header.valueChecksum = CRC32C.checksum(of: value.rawSpan)
    header.sequenceDelta = 5
    header.writtenDelta = 60
    #expect(Self.encoded(header, key: "key", value: value, at: 72) == Self.bytes(Self.put))
  }

  @Test("A put with every optional field")
  func fullPut() {
    var header = RecordHeader(kind: .put)
    header.flags = .known
    header.keyByteCount = 1
    header.valueByteCount = 2
    header.valueChecksum = CRC32C.checksum(of: ([1, 2] as [UInt8]).rawSpan)
    header.sequenceDelta = 6
    header.writtenDelta = 61
    header.expires = 1_767_225_660_123
    header.idleLimit = 90_000
    header.cost = 42
    header.metadataByteCount = 3
    header.batchIndex = 1
    header.batchCount = 2
    header.syncMark = 4096
    #expect(
      Self.encoded(header, key: "k", metadata: "met", value: [1, 2], at: 112)
        == Self.bytes(Self.everything))
  }

  @Test("A tombstone")
  func tombstoneRecord() {
    var header = RecordHeader(kind: .tombstone)
    header.keyByteCount = 3
    header.sequenceDelta = 7
    header.writtenDelta = 62
    #expect(Self.encoded(header, key: "key", at: 184) == Self.bytes(Self.tombstone))
  }

  @Test("A roll record")
  func rollRecord() {
    var header = RecordHeader(kind: .roll)
    header.sequenceDelta = 8
    #expect(Self.encoded(header, at: 216) == Self.bytes(Self.roll))
  }

  @Test("A manifest")
  func fullManifest() {
    #expect(ManifestTests.full.encoded() == Self.bytes(Self.manifest))
  }

  @Test("The names of files")
  func names() {
    #expect(FileName.segment(SegmentID(rawValue: 0x1F)) == "seg-000000000000001f")
    #expect(FileName.identifier(in: "seg-000000000000001f") == 0x1F)
    #expect(FileName.identifier(in: "ckpt-00000000000000ff") == 0xFF)
    for name in [
      "seg-1f", "seg-000000000000001F", "seg-000000000000001g", "seg-", "seg", "LOCK", "",
      "seg-00000000000000001f", "seg--00000000000001f", "xseg-000000000000001f",
      "seg-+00000000000001",
    ] {
      #expect(FileName.identifier(in: name) == nil, "\(name)")
    }
  }
}
