package import CairnStore

/// Compares the decoding of a segment's header with the document of the format.
package enum SegmentHeaderCheck {
  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Bool {
    let input = FormatInput(input)
    var bytes = input.bytes
    if input.options.contains(.repair) { ChecksumRepair.segmentHeader(&bytes) }
    return try check(bytes: bytes) { (bytes) throws(StoreError) in
      try SegmentHeader(decoding: bytes.rawSpan, file: "seg-x")
    }
  }

  /// - Parameter decode: the code to check. Tests pass other code to show that errors are found.
  package static func check(
    bytes: [UInt8], decode: ([UInt8]) throws(StoreError) -> SegmentHeader
  ) throws -> Bool {
    let expected = error(for: bytes)
    let header: SegmentHeader
    do {
      header = try decode(bytes)
    } catch {
      try require(error == expected, "header: \(error), expected \(String(describing: expected))")
      return false
    }
    if let expected { throw FuzzFailure("header: accepted, expected \(expected)") }
    var canonical = Array(bytes[..<SegmentHeader.byteCount])
    canonical.set(0, at: 10, count: 2)
    canonical.set(0, at: 12, count: 4)
    ChecksumRepair.segmentHeader(&canonical)
    try require(header.encoded() == canonical, "header: encodes to other bytes")
    try require(try decode(canonical) == header, "header: comes back changed")
    return true
  }

  /// What section 5 of the document says about the bytes, in its order: `nil` for a valid header.
  package static func error(for bytes: [UInt8]) -> StoreError? {
    func corrupt(_ cause: Corruption.Cause, at offset: Int = 0) -> StoreError {
      .corrupt(Corruption(file: "seg-x", offset: offset, cause: cause))
    }
    guard bytes.count >= 72 else { return corrupt(.fileTooShort) }
    guard bytes[..<8] == [0x8B, 0x43, 0x52, 0x4E, 0x53, 0x0D, 0x0A, 0x1A] else {
      return corrupt(.badMagic)
    }
    let sum = ~PortableCRC32C.update(~0, with: Array(bytes[..<64]).rawSpan)
    guard bytes.number(at: 64, count: 4) == UInt64(sum) else { return corrupt(.badChecksum) }
    let major = bytes.number(at: 8, count: 2)
    guard major == 1 else { return .unsupportedVersion(file: "seg-x", major: Int(major)) }
    let base = bytes.number(at: 48, count: 8)
    let time = Int64(bitPattern: bytes.number(at: 56, count: 8))
    guard bytes.number(at: 32, count: 8) < 1 << 62, base >= 1, base <= 1 << 62,
      time.magnitude <= 1 << 50
    else { return corrupt(.badHeader, at: 32) }
    guard bytes.number(at: 68, count: 4) == 0 else { return corrupt(.badPadding, at: 68) }
    return nil
  }
}
