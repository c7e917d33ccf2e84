import CairnStore

/// A record in a segment of an undamaged store.
struct StoredRecord: Sendable {
  var header: RecordHeader
  /// The range of the record in the file, and that of its value.
  var range: Range<Int>
  var value: Range<Int>
  var key: [UInt8]
  var version: UInt64
}

extension DamagedStore {
  var manifest: Manifest? {
    files[FileName.manifest].flatMap { try? Manifest(decoding: $0.rawSpan) }
  }

  /// The header of the checkpoint that the manifest lists.
  var checkpoint: Checkpoint? {
    guard let manifest, manifest.checkpointID > 0 else { return nil }
    let name = FileName.checkpoint(manifest.checkpointID)
    guard let bytes = files[name] else { return nil }
    let span = bytes.rawSpan
    let count = try? Checkpoint.headerByteCount(
      decoding: span, fileByteCount: bytes.count, file: name)
    guard let count else { return nil }
    return try? Checkpoint(
      decoding: span.extracting(0..<count), fileByteCount: bytes.count,
      checksum: manifest.checkpointChecksum, file: name)
  }

  /// The records of a segment that count, including rolls. None if the manifest does not list the
  /// segment.
  func records(in name: String) -> [StoredRecord] {
    guard let manifest, let bytes = files[name] else { return [] }
    let sealed = manifest.sealedSegments.first { FileName.segment($0.id) == name }
    let open = manifest.openSegments.first { FileName.segment($0.id) == name }
    guard sealed != nil || open != nil else { return [] }
    let recorded = sealed?.byteCount ?? (manifest.isClean ? open?.byteCount : nil)
    let end = min(bytes.count, recorded ?? .max)
    let span = bytes.rawSpan
    let base = span.load(UInt64.self, at: 48)
    var records: [StoredRecord] = []
    var offset = SegmentHeader.byteCount
    while let header = RecordHeader(
      decoding: span.extracting(offset..<end), limit: end - offset)
    {
      func absolute(_ range: Range<Int>) -> Range<Int> {
        (offset + range.lowerBound)..<(offset + range.upperBound)
      }
      records.append(
        StoredRecord(
          header: header, range: absolute(0..<header.byteCount),
          value: absolute(header.valueRange), key: Array(bytes[absolute(header.keyRange)]),
          version: base + UInt64(header.sequenceDelta)))
      offset += header.byteCount
    }
    return records
  }
}
