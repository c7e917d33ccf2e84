import CairnStore

/// Compares the reading of whole segments (the scanner, the end of an unclean log, an open, a
/// verification) with the document of the format.
///
/// A second segment may follow the first. The second segment begins at the last occurrence of the
/// magic in the bytes.
package enum SegmentCheck {
  static let boot = [UInt8](repeating: 0xB0, count: 16)
  static let now = Timestamp(millisecondsSinceEpoch: 1_767_225_600_000)

  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Bool {
    let input = FormatInput(input)
    var segments: [ReferenceLog.Segment] = []
    for var bytes in split(input.bytes) {
      if input.options.contains(.repair) {
        ChecksumRepair.segment(
          &bytes, values: !input.options.contains(.second),
          unrepaired: input.options.unrepairedRecord)
      }
      try SegmentHeaderCheck.check(
        FormatInput(options: [], bytes: Array(bytes.prefix(SegmentHeader.byteCount))).encoded)
      let header = try? SegmentHeader(decoding: bytes.rawSpan, file: "seg-x")
      guard let header else { break }
      if let first = segments.first?.header,
        first.id == header.id || first.storeIdentifier != header.storeIdentifier
      {
        break
      }
      var segment = ReferenceLog.Segment(header: header, bytes: bytes)
      segment.knownLength = knownLength(header.salt, byteCount: bytes.count)
      segments.append(segment)
    }
    if segments.isEmpty { return false }
    let log = ReferenceLog(segments)
    // Beyond its budget, the scanner may miss records that the reference finds.
    for (segment, checksummed) in zip(segments, log.checksummed)
    where checksummed >= 64 * max(segment.bytes.count, 1 << 20) {
      return false
    }
    let probe = StoreProbe(log: log)
    try probe.checkScanner()
    try probe.checkTail()
    try probe.checkStore(
      isClean: input.options.contains(.fourth), sameBoot: input.options.contains(.third))
    return log.extents.contains { !$0.isEmpty }
  }

  /// The length known to be durable, which the salt decides: usually none.
  private static func knownLength(_ salt: UInt64, byteCount: Int) -> Int {
    switch salt % 8 {
    case 0: SegmentHeader.byteCount
    case 1: SegmentHeader.byteCount + 8 * Int(salt >> 8 % 32)
    case 2: byteCount
    case 3: byteCount + 8
    default: 0
    }
  }

  private static func split(_ bytes: [UInt8]) -> [[UInt8]] {
    let magic = SegmentHeader.magic
    guard bytes.count > 2 * SegmentHeader.byteCount else { return [bytes] }
    var index = bytes.count - magic.count
    while index >= SegmentHeader.byteCount {
      if bytes[index] == magic[0], bytes[index..<(index + magic.count)] == magic[...] {
        return [Array(bytes[..<index]), Array(bytes[index...])]
      }
      index -= 1
    }
    return [bytes]
  }
}
