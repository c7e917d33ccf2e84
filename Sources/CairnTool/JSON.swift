import CairnStore
import CommandText

/// A JSON value, written on one line. Members keep their given order.
enum JSON: Sendable {
  case null
  case bool(Bool)
  case integer(Int)
  case string(String)
  case array([JSON])
  case object([(String, JSON)])

  /// Text, or `null` if there is none.
  static func optional(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }

  /// The member for a key: `key`, or `keyBase64` if it is not UTF-8; `null` if it is unknown.
  static func member(key: [UInt8]?) -> (String, JSON) {
    guard let key else { return ("key", .null) }
    return String(validating: key, as: UTF8.self).map { ("key", .string($0)) }
      ?? ("keyBase64", .string(base64(key)))
  }

  var text: String {
    var text = ""
    write(to: &text)
    return text
  }

  private func write(to text: inout String) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .string(let value): JSON.write(value, to: &text)
    case .array(let elements):
      text += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { text += ", " }
        element.write(to: &text)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += ", " }
        JSON.write(member.0, to: &text)
        text += ": "
        member.1.write(to: &text)
      }
      text += "}"
    }
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}",
        // Escape line ends and characters that change the text direction, for readers on a
        // terminal.
        "\u{61C}", "\u{200E}", "\u{200F}", "\u{2028}"..."\u{202E}", "\u{2066}"..."\u{2069}":
        let value = scalar.value
        text +=
          "\\u" + DisplayText.hexadecimal(UInt8(value >> 8))
          + DisplayText.hexadecimal(UInt8(value & 255))
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

/// Bytes in the base64 of RFC 4648, with padding.
func base64(_ bytes: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var text: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
    for digit in 0..<4 {
      text.append(
        digit <= group.count ? alphabet[bits >> (18 - 6 * digit) & 63] : UInt8(ascii: "="))
    }
  }
  return String(decoding: text, as: UTF8.self)
}
