/// The base64 of RFC 4648, with padding.
package enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")
  /// The value of each digit, or 64 for bytes that are no digits.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 64, count: 256)
    for (value, digit) in alphabet.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()

  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for digit in 0..<4 {
        text.append(digit <= group.count ? alphabet[bits >> (18 - 6 * digit) & 63] : padding)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes what `encode` returns. `nil` for anything else: each sequence of bytes has one form.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let digits = text[..<(text.count - text.suffix(2).count { $0 == padding })]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var (bits, bitCount) = (0, 0)
    for digit in digits {
      let value = values[Int(digit)]
      if value == 64 { return nil }
      bits = bits << 6 | Int(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(bits >> bitCount))
        bits &= (1 << bitCount) - 1
      }
    }
    // The bits that no byte needs are zero. `x=` followed by a digit has failed above.
    return bits == 0 && bitCount < 6 ? bytes : nil
  }
}
