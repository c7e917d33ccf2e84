/// Reads one JSON object whose members are strings, numbers or null.
///
/// Strict: anything that RFC 8259 does not allow is refused, as are arrays, objects and booleans.
/// The text must be UTF-8, and an escaped surrogate must be half of a pair.
package struct JSONReader {
  package enum Value: Equatable, Sendable {
    /// The UTF-8 of a string, without escapes.
    case string([UInt8])
    /// A number as it is written.
    case number([UInt8])
    case null
  }

  /// Where the text is wrong, and how.
  package struct Failure: Error {
    /// The bytes before the wrong one.
    package let offset: Int
    package let reason: String
  }

  private let text: [UInt8]
  private var position = 0

  /// The members of an object, in order. Names may repeat.
  package static func members(of text: [UInt8]) throws(Failure) -> [(name: String, value: Value)] {
    guard String(validating: text, as: UTF8.self) != nil else {
      throw Failure(offset: 0, reason: "the line is not UTF-8")
    }
    var reader = JSONReader(text: text)
    return try reader.object()
  }

  private init(text: [UInt8]) { self.text = text }

  private func failure(_ reason: String) -> Failure { Failure(offset: position, reason: reason) }

  private var next: UInt8? { position < text.count ? text[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
  }

  /// Skips a character and the space around it, if it comes next.
  private mutating func skip(_ character: Character) -> Bool {
    skipSpace()
    guard let byte = next, byte == character.asciiValue else { return false }
    position += 1
    skipSpace()
    return true
  }

  private mutating func object() throws(Failure) -> [(name: String, value: Value)] {
    guard skip("{") else { throw failure("expected {") }
    var members: [(name: String, value: Value)] = []
    if !skip("}") {
      repeat {
        let name = String(decoding: try string(), as: UTF8.self)
        guard skip(":") else { throw failure("expected :") }
        members.append((name, try value()))
      } while skip(",")
      guard skip("}") else { throw failure("expected , or }") }
    }
    guard position == text.count else { throw failure("expected the end of the line") }
    return members
  }

  private mutating func value() throws(Failure) -> Value {
    switch next {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "-"), (0x30...0x39)?: return .number(try number())
    default:
      let word = Array("null".utf8)
      guard text[position...].starts(with: word) else {
        throw failure("expected a string, a number or null")
      }
      position += word.count
      return .null
    }
  }

  // MARK: Numbers

  private mutating func number() throws(Failure) -> [UInt8] {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    if next == UInt8(ascii: "0") { position += 1 } else { try digits() }
    if next == UInt8(ascii: ".") {
      position += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
    return Array(text[start..<position])
  }

  private mutating func digits() throws(Failure) {
    let count = text[position...].prefix { (0x30...0x39).contains($0) }.count
    if count == 0 { throw failure("expected a digit") }
    position += count
  }

  // MARK: Strings

  private mutating func string() throws(Failure) -> [UInt8] {
    guard next == UInt8(ascii: "\"") else { throw failure("expected a string") }
    position += 1
    var bytes: [UInt8] = []
    while true {
      let plain = text[position...].prefix { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }
      bytes += plain
      position += plain.count
      switch next {
      case UInt8(ascii: "\""):
        position += 1
        return bytes
      case UInt8(ascii: "\\"):
        position += 1
        bytes += try escape()
      case nil: throw failure("the string has no end")
      default: throw failure("a control character in a string must be escaped")
      }
    }
  }

  /// The UTF-8 of the character after a backslash.
  private mutating func escape() throws(Failure) -> [UInt8] {
    switch next {
    case UInt8(ascii: "u"): break
    case nil: throw failure("the string has no end")
    case let letter?:
      guard let meaning = Self.meaning(ofEscape: letter) else { throw failure("unknown escape") }
      position += 1
      return [meaning]
    }
    position += 1
    var units = [try unit()]
    if UTF16.isLeadSurrogate(units[0]), text[position...].starts(with: [0x5C, 0x75]) {
      position += 2
      units.append(try unit())
    }
    guard let character = String(validating: units, as: UTF16.self) else {
      throw failure("a surrogate must be half of a pair")
    }
    return Array(character.utf8)
  }

  private static func meaning(ofEscape letter: UInt8) -> UInt8? {
    switch Character(Unicode.Scalar(letter)) {
    case "\"", "\\", "/": letter
    case "b": 0x08
    case "f": 0x0C
    case "n": 0x0A
    case "r": 0x0D
    case "t": 0x09
    default: nil
    }
  }

  /// The code unit of four hexadecimal digits.
  private mutating func unit() throws(Failure) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = next.flatMap(hexadecimalValue) else {
        throw failure("expected four hexadecimal digits after \\u")
      }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }
}
