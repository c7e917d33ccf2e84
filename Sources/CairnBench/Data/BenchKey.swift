import Cairn

/// The key with a given index: `user:` and 12 hexadecimal digits that look random, 17 bytes.
///
/// Made on the stack in a few nanoseconds, so that no store pays for the benchmark's memory. The
/// digits are a bijection of the index, so different indices give different keys.
struct BenchKey: ByteSource, Sendable {
  static let byteCount = 17

  // The bytes, little-endian; those after the 17th are zero.
  private let words: (UInt64, UInt64, UInt64)

  @inline(__always)
  init(index: Int, seed: UInt64) {
    let mask: UInt64 = (1 << 48) - 1
    var number = (UInt64(truncatingIfNeeded: index) ^ seed) & mask
    number = (number &* 0x9E37_79B9_7F4A_7C15) & mask
    number ^= number >> 25
    number = (number &* 0xD1B5_4A32_D192_ED03) & mask
    number ^= number >> 23
    let high = Self.hexadecimalDigits(number >> 16)
    let low = Self.hexadecimalDigits((number & 0xFFFF) << 16)
    let prefix: UInt64 = 0x3a_72_65_73_75  // "user:"
    words = (
      (prefix | high << 40).littleEndian,
      (high >> 24 | low << 40).littleEndian,
      (low >> 24 & 0xFF).littleEndian
    )
  }

  /// The eight digits of a 32-bit number, the first in the lowest byte.
  @inline(__always)
  private static func hexadecimalDigits(_ number: UInt64) -> UInt64 {
    var x = UInt64(UInt32(truncatingIfNeeded: number).byteSwapped)
    // One nibble per byte, the high one of each pair first.
    x = (x | x << 16) & 0x0000_FFFF_0000_FFFF
    x = (x | x << 8) & 0x00FF_00FF_00FF_00FF
    x = (x >> 4 | x << 8) & 0x0F0F_0F0F_0F0F_0F0F
    // '0' + nibble, and 39 more from 10 upwards.
    let isLetter = (x &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return x &+ 0x3030_3030_3030_3030 &+ isLetter &* 39
  }

  @inline(__always)
  func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // SAFETY: the span covers this copy of the words, which lives until the call ends.
    try unsafe withUnsafeBytes(of: words) { (bytes) throws(Failure) in
      let key = unsafe UnsafeRawBufferPointer(start: bytes.baseAddress, count: Self.byteCount)
      return try body(unsafe RawSpan(_unsafeBytes: key))
    }
  }

  /// The key as text, for messages.
  var text: String {
    withBytes { key in
      unsafe key.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
  }
}
