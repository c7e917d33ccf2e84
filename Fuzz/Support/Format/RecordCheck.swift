package import CairnStore

/// Compares the decoding of one record with the document of the format.
package enum RecordCheck {
  package typealias Decoder = ([UInt8], _ limit: Int) -> RecordHeader?

  /// The segment of the record.
  package static let segment = SegmentHeader(
    storeIdentifier: [UInt8](repeating: 0xA5, count: 16), id: SegmentID(rawValue: 3),
    salt: 0x0123_4567_89AB_CDEF, baseSequence: 1000, baseTime: 1_767_225_600)

  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Bool {
    let input = FormatInput(input)
    var bytes = input.bytes
    let place = place(input.options)
    if input.options.contains(.repair) {
      _ = ChecksumRepair.record(&bytes, place: place, seed: segment.recordSeed)
    }
    let limit = input.options.contains(.second) ? FormatVersion.highestOffset : bytes.count
    return try check(bytes: bytes, place: place, limit: limit) { bytes, limit in
      RecordHeader(decoding: bytes.rawSpan, limit: limit)
    }
  }

  /// The place in the segment of a record with these options.
  package static func place(_ options: FormatInput.Options) -> Int {
    options.contains(.third) ? FormatVersion.highestOffset : SegmentHeader.byteCount
  }

  /// - Parameters:
  ///   - limit: how many bytes there are from the start of the record to the end of the file.
  ///     `bytes` may be only the first of them.
  ///   - decode: the code to check. Tests pass other code to show that errors are found.
  package static func check(
    bytes: [UInt8], place: Int, limit: Int, decode: Decoder
  ) throws -> Bool {
    var checksummed = 0
    let expected = ReferenceRecord(
      bytes, at: 0, place: place, salt: segment.salt, id: segment.id.rawValue,
      checksummed: &checksummed)
    guard let header = decode(bytes, limit) else {
      try require(expected == nil, "record: refused though it is valid")
      return false
    }
    try checkRanges(header, byteCount: bytes.count, limit: limit)
    let fieldEnd = header.fieldByteCount
    var fields = [UInt8](repeating: 0, count: fieldEnd)
    fields.withMutableSpan { header.encodeFields(into: &$0) }
    try require(fields[4...] == bytes[4..<fieldEnd], "record: fields encode to other bytes")
    guard header.headByteCount <= bytes.count else { return false }
    let isValid = header.hasValidChecksum(bytes.rawSpan, at: place, seed: segment.recordSeed)
    if header.byteCount <= bytes.count {
      try require(isValid == (expected != nil), "record: valid \(isValid), expected otherwise")
      try checkWhole(header, bytes: bytes, place: place, isValid: isValid)
    }
    return isValid
  }

  private static func checkRanges(
    _ header: RecordHeader, byteCount: Int, limit: Int
  ) throws(FuzzFailure) {
    let key = header.keyRange
    let metadata = header.metadataRange
    let value = header.valueRange
    try require(header.fieldByteCount <= byteCount, "record: fields beyond the bytes")
    try require(
      key.lowerBound == header.fieldByteCount && key.upperBound == metadata.lowerBound
        && metadata.upperBound == value.lowerBound && value.lowerBound == header.headByteCount,
      "record: ranges with gaps: \(header)")
    try require(
      value.upperBound <= header.byteCount && header.byteCount - value.upperBound < 8
        && header.byteCount % 8 == 0 && header.byteCount <= limit,
      "record: ranges beyond the limit: \(header)")
  }

  /// Encodes the record again from its parts.
  private static func checkWhole(
    _ header: RecordHeader, bytes: [UInt8], place: Int, isValid: Bool
  ) throws(FuzzFailure) {
    var canonical = Array(bytes[..<header.byteCount])
    for index in header.valueRange.upperBound..<header.byteCount { canonical[index] = 0 }
    var encoded = [UInt8](repeating: 0xEE, count: header.byteCount)
    encoded.withMutableSpan { encoded in
      let span = bytes.rawSpan
      header.encode(
        key: span.extracting(header.keyRange), metadata: span.extracting(header.metadataRange),
        value: span.extracting(header.valueRange), into: &encoded)
      header.seal(&encoded, at: place, seed: segment.recordSeed)
    }
    try require(encoded[4...] == canonical[4...], "record: encodes to other bytes")
    try require(
      (encoded[..<4] == canonical[..<4]) == isValid, "record: sealed with another checksum")
  }
}
