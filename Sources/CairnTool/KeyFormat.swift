import CairnStore
import CommandText

/// How keys are written on the command line and in listings: `--key-format`.
package enum KeyFormat: String, CaseIterable, Sendable {
  /// As the lines of a listing: `\\` for a backslash, `\xNN` for a byte that is not shown.
  case escaped
  case base64

  /// A key on one line.
  package func text(of key: [UInt8]) -> String {
    switch self {
    case .escaped: DisplayText.line(key)
    case .base64: Base64.encode(key)
    }
  }

  /// The key that a text stands for, or `nil` if the text is not in this format.
  package func key(from text: [UInt8]) -> [UInt8]? {
    switch self {
    case .escaped: Self.unescaped(text)
    case .base64: Base64.decode(text)
    }
  }

  /// What a text must be, in words.
  var kind: String {
    switch self {
    case .escaped: #"text in which each backslash begins \\ or \xNN"#
    case .base64: "base64 with padding"
    }
  }

  private static func unescaped(_ text: [UInt8]) -> [UInt8]? {
    let backslash = UInt8(ascii: "\\")
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == backslash else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case backslash: bytes.append(backslash)
      case UInt8(ascii: "x"):
        guard let high = rest.popFirst().flatMap(hexadecimalValue),
          let low = rest.popFirst().flatMap(hexadecimalValue)
        else { return nil }
        bytes.append(high << 4 | low)
      default: return nil
      }
    }
    return bytes
  }
}

/// The value of a hexadecimal digit of either case.
func hexadecimalValue(ofDigit digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  default: nil
  }
}
