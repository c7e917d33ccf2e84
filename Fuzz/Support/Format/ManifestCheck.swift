package import CairnStore

/// Compares the decoding of a manifest with the document of the format.
package enum ManifestCheck {
  /// The result of decoding the bytes of a manifest.
  package enum Outcome: Hashable {
    case accepted
    case unsupported(major: Int)
    case corrupt(Corruption.Cause)
  }

  @discardableResult
  package static func check(_ input: [UInt8]) throws -> Bool {
    let input = FormatInput(input)
    var bytes = input.bytes
    if input.options.contains(.repair) {
      ChecksumRepair.manifest(&bytes, size: input.options.contains(.second))
    }
    return try check(bytes: bytes) { (bytes) throws(StoreError) in
      try Manifest(decoding: bytes.rawSpan)
    }
  }

  /// - Parameter decode: the code to check. Tests pass other code to show that errors are found.
  package static func check(
    bytes: [UInt8], decode: ([UInt8]) throws(StoreError) -> Manifest
  ) throws -> Bool {
    let expected = outcome(of: bytes)
    let manifest: Manifest
    do {
      manifest = try decode(bytes)
    } catch {
      let found = try outcome(of: error, byteCount: bytes.count)
      try require(found == expected, "manifest: \(error), expected \(expected)")
      return false
    }
    try require(expected == .accepted, "manifest: accepted, expected \(expected)")
    let encoded = manifest.encoded()
    try require(encoded == canonical(bytes), "manifest: encodes to other bytes")
    try require(try decode(encoded) == manifest, "manifest: comes back changed")
    return true
  }

  private static func outcome(of error: StoreError, byteCount: Int) throws -> Outcome {
    switch error {
    case .unsupportedVersion(FileName.manifest, let major): return .unsupported(major: major)
    case .corrupt(let corruption):
      try require(
        corruption.file == FileName.manifest && (0...byteCount).contains(corruption.offset)
          || corruption.cause == .fileTooShort || corruption.cause == .badMagic,
        "manifest: \(corruption) is no place in the file")
      return .corrupt(corruption.cause)
    default: throw FuzzFailure("manifest: not an error of decoding: \(error)")
    }
  }

  /// What section 4 of the document says about the bytes, in its order.
  package static func outcome(of bytes: [UInt8]) -> Outcome {
    guard bytes.count >= 140 else { return .corrupt(.fileTooShort) }
    guard bytes[..<8] == [0x8B, 0x43, 0x52, 0x4E, 0x4D, 0x0D, 0x0A, 0x1A] else {
      return .corrupt(.badMagic)
    }
    let size = bytes.count
    let sum = ~PortableCRC32C.update(~0, with: Array(bytes[..<(size - 4)]).rawSpan)
    let isIntact = bytes.number(at: size - 4, count: 4) == UInt64(sum)
    let major = Int(bytes.number(at: 8, count: 2))
    if isIntact && major != 1 { return .unsupported(major: major) }
    if bytes.number(at: 12, count: 4) != UInt64(size) { return .corrupt(.badLength) }
    if !isIntact { return .corrupt(.badChecksum) }
    let counts = (0..<4).map { Int(bytes.number(at: 116 + 4 * $0, count: 4)) }
    guard 140 + 24 * counts[0] + 48 * counts[1] + 8 * (counts[2] + counts[3]) == size else {
      return .corrupt(.badLength)
    }
    func word(_ offset: Int) -> UInt64 { bytes.number(at: offset, count: 8) }
    let open = (0..<counts[0]).map { 136 + 24 * $0 }
    let sealed = (0..<counts[1]).map { 136 + 24 * counts[0] + 48 * $0 }
    let ids = (open + sealed).map(word)
    guard Set(ids).count == ids.count, ids.allSatisfy({ $0 < word(40) }) else {
      return .corrupt(.badHeader)
    }
    let numbers = [40, 64, 72] + sealed.flatMap { [$0 + 24, $0 + 32, $0 + 40] }
    guard numbers.allSatisfy({ word($0) <= 1 << 62 }) else { return .corrupt(.badHeader) }
    let isClean = bytes[112] & 1 == 1
    func isLength(_ length: UInt64) -> Bool { (72...1 << 40).contains(length) }
    guard sealed.allSatisfy({ isLength(word($0 + 16)) }),
      open.allSatisfy({ isLength(word($0 + 16)) || !isClean && word($0 + 16) == 0 })
    else { return .corrupt(.badLength) }
    return .accepted
  }

  /// An accepted encoding. The parts that a reader ignores are replaced by what version 1.0 writes.
  private static func canonical(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    bytes.set(0, at: 10, count: 2)
    bytes.set(UInt64(bytes[112] & 1), at: 112, count: 4)
    ChecksumRepair.manifest(&bytes, size: false)
    return bytes
  }
}
