/// The parsed input of a format target: one byte of options, then the encoding.
package struct FormatInput: Sendable, Hashable {
  package struct Options: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Checksums are corrected before decoding.
    package static let repair = Options(rawValue: 1 << 0)
    /// Manifest: the size field is corrected too. Record: the bytes are only the start of a longer
    /// file. Segment: the checksums of values are left unchanged. Checkpoint: the store's last
    /// session was killed.
    package static let second = Options(rawValue: 1 << 1)
    /// Record: it is at the last offset of the largest file. Segment: the store's boot is this one.
    /// Checkpoint: numbers that follow from others are corrected too.
    package static let third = Options(rawValue: 1 << 2)
    /// Segment: the manifest says that the store was closed.
    package static let fourth = Options(rawValue: 1 << 3)

    /// Segment: which record keeps its header checksum unchanged, counted from 1; 0 for none.
    package var unrepairedRecord: Int { Int(rawValue >> 4) }
  }

  package var options: Options
  package var bytes: [UInt8]

  package init(options: Options, bytes: [UInt8]) {
    self.options = options
    self.bytes = bytes
  }

  package init(_ input: [UInt8]) {
    options = Options(rawValue: input.first ?? 0)
    bytes = Array(input.dropFirst())
  }

  package var encoded: [UInt8] { [options.rawValue] + bytes }
}

extension [UInt8] {
  /// The little-endian number of `count` bytes at `offset`, which must lie inside.
  func number(at offset: Int, count: Int) -> UInt64 {
    var number: UInt64 = 0
    for index in (0..<count).reversed() { number = number << 8 | UInt64(self[offset + index]) }
    return number
  }

  /// Writes the number little-endian over `count` bytes at `offset`.
  mutating func set(_ number: UInt64, at offset: Int, count: Int) {
    for index in 0..<count {
      self[offset + index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * index))
    }
  }
}

/// Throws a failure if a condition does not hold.
func require(_ holds: Bool, _ description: @autoclosure () -> String) throws(FuzzFailure) {
  if !holds { throw FuzzFailure(description()) }
}
