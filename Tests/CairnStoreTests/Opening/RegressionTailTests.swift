import CairnStore
import Testing

/// Logs made by hand of several open segments, which the fuzzers of the format held against the
/// document.
@Suite("Regression: the end of a log of several segments")
struct RegressionTailTests {
  private static let identifier = [UInt8](repeating: 1, count: 16)

  /// The bytes of a segment whose first sequence number is `base`.
  private static func segment(_ id: UInt64, base: UInt64, _ records: [RecordHeader]) -> [UInt8] {
    let header = SegmentHeader(
      storeIdentifier: identifier, id: SegmentID(rawValue: id), salt: id, baseSequence: base,
      baseTime: 0)
    var bytes = header.encoded()
    for (index, record) in records.enumerated() {
      var record = record
      record.sequenceDelta = UInt32(index)
      let start = bytes.count
      bytes += [UInt8](repeating: 0, count: record.byteCount)
      let key = [UInt8](repeating: 0x61, count: record.keyByteCount)
      bytes.withMutableSpan(in: start..<bytes.count) { span in
        key.withSpan { key in
          record.encode(key: key, metadata: RawSpan(), value: RawSpan(), into: &span)
        }
        record.seal(&span, at: start, seed: header.recordSeed)
      }
    }
    return bytes
  }

  private static let put = {
    var header = RecordHeader(kind: .put)
    header.keyByteCount = 1
    return header
  }()

  /// The first of two records that belong together; the second is missing.
  private static let halfBatch = {
    var header = put
    header.flags = .batch
    header.batchCount = 2
    return header
  }()

  /// A store of these segments whose process died.
  private static func image(_ segments: [[UInt8]]) throws -> Image {
    var manifest = Manifest(
      storeIdentifier: identifier, hashSecret: identifier,
      bootIdentifier: try SystemFileSystem().bootIdentifier())
    manifest.isClean = false
    manifest.nextID = UInt64(segments.count + 1)
    var image = Image()
    image.files["LOCK"] = []
    for (index, bytes) in segments.enumerated() {
      let id = SegmentID(rawValue: UInt64(index + 1))
      manifest.openSegments.append(.init(id: id, salt: id.rawValue, byteCount: 0))
      image.files[FileName.segment(id)] = bytes
    }
    image.files["MANIFEST"] = manifest.encoded()
    return image
  }

  private static func outcome(of image: Image) throws -> StoreError? {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    return storeError { _ = try Store(directory.store, readOnly: true) }
  }

  private static let roll = RecordHeader(kind: .roll)

  @Test("Half a batch that comes next after an empty segment is a torn tail")
  func batchThatComesNext() throws {
    // The counterpart of the next: here nothing is missing before the batch.
    let image = try Self.image([
      Self.segment(1, base: 1, [Self.put, Self.put, Self.roll]), Self.segment(2, base: 3, []),
      Self.segment(3, base: 3, [Self.halfBatch]),
    ])
    #expect(try Self.outcome(of: image) == nil)
  }

  @Test("Half a batch behind an empty segment does not hide that records before it are lost")
  func batchBehindEmptySegment() throws {
    // Only the segment right before was asked for the highest sequence number; an empty one knew
    // none, so any batch passed for the one that comes next, and the numbers 3 to 19, which the
    // batch shows to have been there, were dropped without an error.
    let image = try Self.image([
      Self.segment(1, base: 1, [Self.put, Self.put, Self.roll]), Self.segment(2, base: 3, []),
      Self.segment(3, base: 20, [Self.halfBatch]),
    ])
    let corruption = try Self.outcome(of: image)?.corruption
    #expect(corruption?.file == FileName.segment(SegmentID(rawValue: 2)))
    #expect(corruption?.cause == .lostRecords)
  }

  @Test("Half a batch in one segment does not explain what is in the next")
  func batchBehindHalfBatch() throws {
    // The numbers of an unfinished batch counted as if it were complete: a batch in the next
    // segment that went on behind them passed for the one that comes next.
    let image = try Self.image([
      Self.segment(1, base: 1, [Self.put, Self.put, Self.halfBatch]),
      Self.segment(2, base: 4, [Self.halfBatch]),
    ])
    let corruption = try Self.outcome(of: image)?.corruption
    #expect(corruption?.file == FileName.segment(SegmentID(rawValue: 1)))
    #expect(corruption?.cause == .lostRecords)
  }
}
