import CairnStore
import Testing

@Suite("Segment headers")
struct SegmentHeaderTests {
  static let header = SegmentHeader(
    storeIdentifier: Array(0xA0..<0xB0), id: SegmentID(rawValue: 7), salt: 0x1122_3344_5566_7788,
    baseSequence: 1000, baseTime: 1_767_225_600)

  static func decoded(_ bytes: [UInt8]) throws(StoreError) -> SegmentHeader {
    try SegmentHeader(decoding: bytes.rawSpan, file: "seg-x")
  }

  @Test("A header is decoded as it was encoded")
  func roundTrip() throws {
    #expect(try Self.decoded(Self.header.encoded()) == Self.header)
    #expect(Self.header.encoded().count == SegmentHeader.byteCount)
  }

  @Test("Every flipped bit is refused", arguments: 0..<SegmentHeader.byteCount)
  func flips(offset: Int) {
    let accepted = (0..<8).filter { bit in
      var bytes = Self.header.encoded()
      bytes[offset] ^= 1 << UInt8(bit)
      return storeError { _ = try Self.decoded(bytes) }?.corruption?.file != "seg-x"
    }
    #expect(accepted == [])
  }

  @Test("A truncated header is refused at every length", arguments: 0..<SegmentHeader.byteCount)
  func truncated(count: Int) {
    let error = storeError { _ = try Self.decoded(Array(Self.header.encoded().prefix(count))) }
    #expect(error?.corruption?.cause == .fileTooShort)
  }

  /// A header with bytes changed and the checksum corrected.
  static func resealed(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var bytes = header.encoded()
    change(&bytes)
    let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<64))
    bytes.withMutableSpan { $0.store(checksum, at: 64) }
    return bytes
  }

  @Test("Another major version is not supported", arguments: [0, 2, 0xFFFF] as [UInt16])
  func majorVersion(major: UInt16) {
    let bytes = Self.resealed { $0.withMutableSpan { $0.store(major, at: 8) } }
    #expect(throws: StoreError.unsupportedVersion(file: "seg-x", major: Int(major))) {
      try Self.decoded(bytes)
    }
  }

  @Test("A newer minor version is read")
  func minorVersion() throws {
    let bytes = Self.resealed { $0.withMutableSpan { $0.store(UInt16(9), at: 10) } }
    #expect(try Self.decoded(bytes) == Self.header)
  }

  @Test(
    "Fields whose sums could overflow are refused although the checksum is right",
    arguments: [32, 48, 56])
  func hostileFields(offset: Int) {
    for value: UInt64 in [(1 << 62) + 1, 1 << 63, .max - 1] {
      let bytes = Self.resealed { $0.withMutableSpan { $0.store(value, at: offset) } }
      // A time just before the epoch is not one of these.
      if offset == 56, Int64(bitPattern: value).magnitude < 1 << 50 { continue }
      #expect(storeError { _ = try Self.decoded(bytes) }?.corruption?.cause == .badHeader)
    }
  }
}
