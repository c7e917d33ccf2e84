/// Bytes, sizes and counts as a person reads them in a terminal.
enum DisplayText {
  /// Bytes on one line, and unambiguously so: `\` is `\\`, and bytes of control characters or of
  /// what is not UTF-8 are `\xNN`. Anything else stands as it is.
  static func line(_ bytes: [UInt8]) -> String {
    var line: [UInt8] = []
    line.reserveCapacity(bytes.count)
    var rest = bytes[...]
    while let first = rest.first {
      let length = characterByteCount(rest)
      let character = rest.prefix(max(1, length))
      rest = rest.dropFirst(character.count)
      let isControl =
        first < 0x20 || first == 0x7F
        // The controls of U+0080 to U+009F, some of which terminals obey.
        || (first == 0xC2 && character.dropFirst().allSatisfy { $0 < 0xA0 })
      if length == 0 || isControl {
        for byte in character { line += Array("\\x".utf8) + hexadecimal(byte) }
      } else if first == UInt8(ascii: "\\") {
        line += [first, first]
      } else {
        line += character
      }
    }
    return String(decoding: line, as: UTF8.self)
  }

  /// The bytes of the character that the bytes begin with, or 0 where they are not UTF-8.
  private static func characterByteCount(_ bytes: ArraySlice<UInt8>) -> Int {
    guard let first = bytes.first else { return 0 }
    let length =
      switch first {
      case 0..<0x80: 1
      case 0xC2..<0xE0: 2
      case 0xE0..<0xF0: 3
      case 0xF0..<0xF5: 4
      default: 0
      }
    if length < 2 { return length }
    guard bytes.count >= length,
      String(validating: bytes.prefix(length), as: UTF8.self) != nil
    else { return 0 }
    return length
  }

  /// A byte as two hexadecimal digits, in capitals.
  static func hexadecimal(_ byte: UInt8) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
  }

  /// A number with its thousands apart: `1,234,567`.
  static func count(_ number: Int) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.append(String(digits.suffix(3)))
      digits.removeLast(3)
    }
    groups.append(digits)
    return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
  }

  /// A number with the word for what it counts: `1 file`, `2 files`.
  static func count(_ number: Int, _ singular: String, _ plural: String? = nil) -> String {
    "\(count(number)) \(number == 1 ? singular : plural ?? singular + "s")"
  }

  /// A size in the unit that suits it: `12.3 MiB`.
  static func size(_ byteCount: Int) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"]
    guard byteCount >= 1024 else { return "\(byteCount) B" }
    var value = Double(byteCount) / 1024
    var unit = 0
    // The number is shown with one decimal place, so 1023.95 would show as 1024.0.
    while value >= 1023.95, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    let tenths = Int((value * 10).rounded())
    return "\(count(tenths / 10)).\(tenths % 10) \(units[unit])"
  }

  /// A size with the exact number where the unit hides it: `12.3 MiB (12,897,485 bytes)`.
  static func exactSize(_ byteCount: Int) -> String {
    byteCount < 1024
      ? count(byteCount, "byte") : "\(size(byteCount)) (\(count(byteCount)) bytes)"
  }
}
