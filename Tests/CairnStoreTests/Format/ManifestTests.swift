import CairnStore
import Testing

@Suite("Manifests")
struct ManifestTests {
  /// A manifest with something in every field and list.
  static let full: Manifest = {
    var manifest = Manifest(
      storeIdentifier: Array(0xA0..<0xB0), hashSecret: Array(0x10..<0x20),
      bootIdentifier: Array(0x60..<0x70))
    manifest.generation = 3
    manifest.nextID = 12
    manifest.floorSequence = 500
    manifest.lastSequence = 1010
    manifest.lastTime = Timestamp(millisecondsSinceEpoch: 1_767_225_600_123)
    manifest.openSegments = [
      .init(id: SegmentID(rawValue: 7), salt: 0x1122_3344_5566_7788, byteCount: 272)
    ]
    manifest.sealedSegments = [
      .init(
        id: SegmentID(rawValue: 5), salt: 0x99, byteCount: 4096, lowestSequence: 501,
        highestSequence: 999, compactedAt: 0)
    ]
    manifest.pendingIDs = [9]
    manifest.retiredIDs = [10, 11]
    return manifest
  }()

  static func decoded(_ bytes: [UInt8]) throws(StoreError) -> Manifest {
    try Manifest(decoding: bytes.rawSpan)
  }

  /// The manifest with bytes changed and the checksum corrected.
  static func resealed(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var bytes = full.encoded()
    change(&bytes)
    let end = bytes.count - 4
    let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<end))
    bytes.withMutableSpan { $0.store(checksum, at: end) }
    return bytes
  }

  @Test("A manifest is decoded as it was encoded")
  func roundTrip() throws {
    #expect(try Self.decoded(Self.full.encoded()) == Self.full)
  }

  @Test("An empty manifest is decoded as it was encoded")
  func emptyRoundTrip() throws {
    let empty = Manifest(
      storeIdentifier: [UInt8](repeating: 0, count: 16),
      hashSecret: [UInt8](repeating: 0, count: 16),
      bootIdentifier: [UInt8](repeating: 0, count: 16))
    #expect(try Self.decoded(empty.encoded()) == empty)
  }

  @Test("An unclean manifest may omit the lengths of open segments")
  func unclean() throws {
    var manifest = Self.full
    manifest.isClean = false
    manifest.openSegments[0].byteCount = 0
    #expect(try Self.decoded(manifest.encoded()) == manifest)
  }

  @Test("A clean manifest must have the lengths of its open segments")
  func cleanWithoutLength() {
    var manifest = Self.full
    manifest.openSegments[0].byteCount = 0
    #expect(
      storeError { _ = try Self.decoded(manifest.encoded()) }?.corruption?.cause == .badLength)
  }

  @Test("Every flipped bit is refused", arguments: 0..<full.encoded().count)
  func flips(offset: Int) {
    let accepted = (0..<8).filter { bit in
      var bytes = Self.full.encoded()
      bytes[offset] ^= 1 << UInt8(bit)
      return storeError { _ = try Self.decoded(bytes) }?.corruption?.file != "MANIFEST"
    }
    #expect(accepted == [])
  }

  @Test("A truncated manifest is refused at every length", arguments: 0..<full.encoded().count)
  func truncated(count: Int) {
    let bytes = Array(Self.full.encoded().prefix(count))
    #expect(storeError { _ = try Self.decoded(bytes) }?.corruption?.file == "MANIFEST")
  }

  @Test("Bytes after the end are refused", arguments: [1, 4, 8, 24, 4096])
  func tooLong(count: Int) {
    let bytes = Self.full.encoded() + [UInt8](repeating: 0, count: count)
    #expect(storeError { _ = try Self.decoded(bytes) }?.corruption?.file == "MANIFEST")
  }

  @Test("Another major version is not supported", arguments: [0, 2, 0xFFFF] as [UInt16])
  func majorVersion(major: UInt16) {
    let bytes = Self.resealed { $0.withMutableSpan { $0.store(major, at: 8) } }
    #expect(throws: StoreError.unsupportedVersion(file: "MANIFEST", major: Int(major))) {
      try Self.decoded(bytes)
    }
  }

  @Test("A newer minor version is read")
  func minorVersion() throws {
    let bytes = Self.resealed { $0.withMutableSpan { $0.store(UInt16(9), at: 10) } }
    #expect(try Self.decoded(bytes) == Self.full)
  }

  @Test("A wrong size is refused although the checksum is right")
  func size() {
    for size in [0, 1, 235, 237, UInt32.max] {
      let bytes = Self.resealed { $0.withMutableSpan { $0.store(size, at: 12) } }
      #expect(storeError { _ = try Self.decoded(bytes) }?.corruption?.cause == .badLength)
    }
  }

  @Test("Hostile counts are refused and allocate nothing", arguments: [116, 120, 124, 128])
  func hostileCount(offset: Int) {
    for count in [0, 3, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, UInt32.max] {
      let bytes = Self.resealed { $0.withMutableSpan { $0.store(count, at: offset) } }
      #expect(storeError { _ = try Self.decoded(bytes) }?.corruption?.cause == .badLength)
    }
  }

  @Test("An id that was not assigned yet is refused")
  func idBeyondNext() {
    var manifest = Self.full
    manifest.nextID = 7
    #expect(
      storeError { _ = try Self.decoded(manifest.encoded()) }?.corruption?.cause == .badHeader)
  }

  @Test("A segment listed twice is refused")
  func duplicate() {
    var manifest = Self.full
    manifest.openSegments.append(manifest.openSegments[0])
    #expect(
      storeError { _ = try Self.decoded(manifest.encoded()) }?.corruption?.cause == .badHeader)
  }

  @Test("Numbers whose sums could overflow are refused")
  func hostileNumbers() {
    let changes: [(inout Manifest) -> Void] = [
      { $0.nextID = .max }, { $0.floorSequence = .max }, { $0.lastSequence = 1 << 63 },
      { $0.sealedSegments[0].lowestSequence = .max },
      { $0.sealedSegments[0].highestSequence = .max },
      { $0.sealedSegments[0].compactedAt = .max }, { $0.sealedSegments[0].byteCount = 0 },
      { $0.sealedSegments[0].byteCount = .max }, { $0.openSegments[0].byteCount = 71 },
      { $0.openSegments[0].byteCount = .max },
    ]
    for (index, change) in changes.enumerated() {
      var manifest = Self.full
      change(&manifest)
      #expect(
        storeError { _ = try Self.decoded(manifest.encoded()) }?.corruption != nil,
        "change \(index)")
    }
  }
}
