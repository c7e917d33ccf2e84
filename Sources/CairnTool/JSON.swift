import CairnStore
import CommandText

/// A JSON value, written on one line. Members keep their given order.
enum JSON: Sendable {
  case null
  case bool(Bool)
  case integer(Int)
  /// A number as JSON writes it.
  case number(String)
  case string(String)
  case array([JSON])
  case object([(String, JSON)])

  /// Text, or `null` if there is none.
  static func optional(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }

  /// A time in seconds.
  static func seconds(_ duration: Duration?) -> JSON {
    guard let milliseconds = duration?.milliseconds else { return .null }
    let fraction = String(1000 + milliseconds % 1000).dropFirst()
    return .number("\(milliseconds / 1000)" + (fraction == "000" ? "" : ".\(fraction)"))
  }

  /// The member for bytes: `name`, or `nameBase64` if they are not UTF-8; `null` if they are unknown.
  static func member(_ name: String, _ bytes: [UInt8]?) -> (String, JSON) {
    guard let bytes else { return (name, .null) }
    return String(validating: bytes, as: UTF8.self).map { (name, .string($0)) }
      ?? (name + "Base64", .string(Base64.encode(bytes)))
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
    case .number(let value): text += value
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
