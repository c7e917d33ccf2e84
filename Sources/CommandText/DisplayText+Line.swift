package import CairnStore

/// Shows bytes on a line of a terminal.
extension DisplayText {
  /// Bytes on one line, unambiguously: `\` becomes `\\`. Bytes of control characters, and bytes
  /// that are not UTF-8, become `\xNN`. All others stay unchanged.
  package static func line(_ bytes: [UInt8]) -> String { escaped(bytes, backslash: "\\\\") }

  /// Text on one line. It may already contain escapes, so only control characters are escaped.
  package static func line(_ text: String) -> String { escaped(Array(text.utf8), backslash: "\\") }

  /// Whether a terminal shows the bytes unchanged: text, with line feeds and tabs.
  package static func isPlainText(_ bytes: [UInt8]) -> Bool {
    guard let text = String(validating: bytes, as: UTF8.self) else { return false }
    return text.unicodeScalars.allSatisfy { $0 == "\n" || $0 == "\t" || !isObeyed($0) }
  }

  private static func escaped(_ bytes: [UInt8], backslash: String) -> String {
    var line = ""
    var decoder = UTF8()
    var iterator = bytes[...].makeIterator()
    var start = 0
    // A decoder reports an error without its length, so invalid bytes are handled one by one.
    while start < bytes.count {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        let count = UTF8.width(scalar)
        if isObeyed(scalar) {
          line += hexadecimal(bytes[start..<start + count])
        } else if scalar == "\\" {
          line += backslash
        } else {
          line.unicodeScalars.append(scalar)
        }
        start += count
      case .emptyInput, .error:
        line += hexadecimal(bytes[start..<start + 1])
        start += 1
        decoder = UTF8()
        iterator = bytes[start...].makeIterator()
      }
    }
    return line
  }

  private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.map { "\\x" + hexadecimal($0) }.joined()
  }

  /// Whether a terminal may do something other than show this character in place. True for
  /// controls, line ends, and characters that change the text direction or have no width.
  private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// A byte as two uppercase hexadecimal digits.
  package static func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return digits.utf8.count < 2 ? "0" + digits : digits
  }
}
