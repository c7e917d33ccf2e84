import CairnLibC

/// Keys as file names: letters, digits, `-`, `_` and `~` stay unchanged; every other byte becomes
/// `%` and two hexadecimal digits. Different keys have different names, and none begins with a dot
/// or contains a slash.
enum FileName {
  /// The longest name that Linux's filesystems accept.
  static let byteLimit = 255

  /// Calls `body` with the name, NUL-terminated, on the stack.
  static func withEncoded<Result>(
    _ key: RawSpan, _ body: (UnsafePointer<CChar>) throws -> Result
  ) throws -> Result {
    guard key.byteCount > 0 else { throw BenchFailure.unsuited("an empty key has no file name") }
    // SAFETY: every store into the buffer is preceded by a check of the remaining room.
    return try unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: byteLimit + 1) {
      buffer in
      var count = 0
      for offset in 0..<key.byteCount {
        let byte = unsafe key.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
        let isPlain = isUnreserved(byte)
        guard count + (isPlain ? 1 : 3) <= byteLimit else {
          throw BenchFailure.unsuited("a key of \(key.byteCount) bytes is too long for a file name")
        }
        if isPlain {
          unsafe buffer[count] = CChar(bitPattern: byte)
          count += 1
        } else {
          unsafe buffer[count] = CChar(UInt8(ascii: "%"))
          unsafe buffer[count + 1] = hexadecimalDigit(byte >> 4)
          unsafe buffer[count + 2] = hexadecimalDigit(byte & 15)
          count += 3
        }
      }
      unsafe buffer[count] = 0
      // Never nil: the buffer is not empty.
      guard let name = buffer.baseAddress else { preconditionFailure("no room for a name") }
      return try unsafe body(name)
    }
  }

  /// The name as a string.
  static func encoded(_ key: RawSpan) throws -> String {
    try unsafe withEncoded(key) { unsafe String(cString: $0) }
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func hexadecimalDigit(_ value: UInt8) -> CChar {
    CChar(value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10)
  }
}
