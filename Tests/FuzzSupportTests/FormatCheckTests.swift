import CairnStore
import FuzzSupport
import Testing

/// Decoders with mistakes, each of which must be found.
@Suite("The checks of the format find what is wrong")
struct FormatCheckTests {
  // MARK: Records

  private static let place = SegmentHeader.byteCount

  private static func record() -> [UInt8] {
    var generator = EncodingGenerator(random: FuzzRandom(seed: 3))
    var header = RecordHeader(kind: .put)
    header.flags = [.expiry, .metadata]
    header.keyByteCount = 5
    header.metadataByteCount = 3
    header.valueByteCount = 10
    return generator.encode(&header, at: place, seed: RecordCheck.segment.recordSeed).bytes
  }

  private static func check(
    _ change: @escaping (inout RecordHeader) -> Void
  ) throws -> Bool {
    let bytes = record()
    return try RecordCheck.check(bytes: bytes, place: place, limit: bytes.count) { bytes, limit in
      var header = RecordHeader(decoding: bytes.rawSpan, limit: limit)
      if var changed = header {
        change(&changed)
        header = changed
      }
      return header
    }
  }

  @Test("A sound decoder passes")
  func sound() throws {
    #expect(try Self.check { _ in })
  }

  @Test("A range beyond the input is reported")
  func rangeBeyondInput() {
    #expect(throws: FuzzFailure.self) { try Self.check { $0.valueByteCount += 8 } }
    #expect(throws: FuzzFailure.self) { try Self.check { $0.valueByteCount = 1 << 31 } }
  }

  @Test("A wrong range inside the input is reported")
  func wrongRange() {
    #expect(throws: FuzzFailure.self) {
      try Self.check {
        $0.keyByteCount -= 1
        $0.metadataByteCount += 1
      }
    }
  }

  @Test("A field that differs from the bytes is reported")
  func wrongField() {
    #expect(throws: FuzzFailure.self) { try Self.check { $0.expires += 1 } }
    #expect(throws: FuzzFailure.self) { try Self.check { $0.sequenceDelta ^= 1 } }
    #expect(throws: FuzzFailure.self) { try Self.check { $0.kind = .tombstone } }
  }

  @Test("A valid record that is refused is reported")
  func refused() {
    let bytes = Self.record()
    #expect(throws: FuzzFailure.self) {
      try RecordCheck.check(bytes: bytes, place: Self.place, limit: bytes.count) { _, _ in nil }
    }
  }

  @Test("A trusted length is reported: a decoder that ignores the limit")
  func trustedLength() {
    var bytes = Self.record()
    bytes[19] = 0x7F
    #expect(throws: FuzzFailure.self) {
      try RecordCheck.check(bytes: bytes, place: Self.place, limit: bytes.count) { bytes, _ in
        RecordHeader(decoding: bytes.rawSpan, limit: .max)
      }
    }
  }

  // MARK: Manifests and headers of segments

  private typealias ManifestDecoder = ([UInt8]) throws(StoreError) -> Manifest

  private static func decode(_ bytes: [UInt8]) throws(StoreError) -> Manifest {
    try Manifest(decoding: bytes.rawSpan)
  }

  @Test("A manifest that loses a field, accepts any checksum, or ends with the wrong error")
  func manifest() throws {
    var generator = EncodingGenerator(random: FuzzRandom(seed: 4))
    let bytes = generator.manifest().encoding.bytes
    let lossy: ManifestDecoder = { (bytes) throws(StoreError) in
      var manifest = try Self.decode(bytes)
      manifest.floorSequence ^= 1
      return manifest
    }
    let trusting: ManifestDecoder = { (bytes) throws(StoreError) in
      var bytes = bytes
      ChecksumRepair.manifest(&bytes, size: false)
      return try Self.decode(bytes)
    }
    let vague: ManifestDecoder = { _ throws(StoreError) in throw .closed(path: "") }
    #expect(try ManifestCheck.check(bytes: bytes, decode: Self.decode))
    #expect(throws: FuzzFailure.self) { try ManifestCheck.check(bytes: bytes, decode: lossy) }
    #expect(throws: FuzzFailure.self) { try ManifestCheck.check(bytes: bytes, decode: vague) }
    var damaged = bytes
    damaged[40] ^= 1
    #expect(throws: FuzzFailure.self) { try ManifestCheck.check(bytes: damaged, decode: trusting) }
  }

  @Test("A header of a segment that loses a field or is accepted whatever its version")
  func segmentHeader() throws {
    var generator = EncodingGenerator(random: FuzzRandom(seed: 5))
    let (header, encoding) = generator.segmentHeader()
    #expect(throws: FuzzFailure.self) {
      try SegmentHeaderCheck.check(bytes: encoding.bytes) { _ throws(StoreError) in
        var other = header
        other.salt ^= 1
        return other
      }
    }
    var bytes = encoding.bytes
    bytes[8] = 2
    ChecksumRepair.segmentHeader(&bytes)
    #expect(throws: FuzzFailure.self) {
      try SegmentHeaderCheck.check(bytes: bytes) { _ throws(StoreError) in header }
    }
  }
}
