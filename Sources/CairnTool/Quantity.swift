/// Times and sizes on the command line.
enum Quantity {
  /// With more seconds than this, an expiry would exceed the range of timestamps.
  private static let secondLimit: Int64 = 9_000_000_000_000_000
  /// What `duration` reads, in words.
  static let durationKind = "a time above 0 and below 285 million years, such as 90, 0.5, 12h or 7d"

  /// Reads a time such as `90`, `0.25`, `15m` or `7d`: a decimal number of seconds, or of the unit
  /// after it. `nil` for anything else, for zero, and beyond the limit. Signs and exponents are not
  /// allowed.
  static func duration(_ text: [UInt8]) -> Duration? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    let unit = text.last.flatMap { units[Character(Unicode.Scalar($0))] }
    guard let number = seconds(unit == nil ? text[...] : text.dropLast()),
      number <= .seconds(secondLimit / (unit ?? 1))
    else { return nil }
    return number * (unit ?? 1)
  }

  /// Reads a size in bytes such as `5000`, `500K`, `10m` or `2GiB`. Units are powers of 1024. `GB`
  /// is refused, because its meaning is ambiguous.
  static func byteCount(_ text: [UInt8]) -> Int? {
    let isSpelledOut = text.suffix(2).elementsEqual("iB".utf8)
    let text = isSpelledOut ? text.dropLast(2) : text[...]
    let unit = text.last.flatMap { last in
      ["Kk", "Mm", "Gg", "Tt"].firstIndex { $0.utf8.contains(last) }
    }
    if isSpelledOut && unit == nil { return nil }
    guard let number = wholeNumber(Array(unit == nil ? text : text.dropLast())) else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: 1 << (10 * ((unit ?? -1) + 1)))
    return overflow ? nil : product
  }

  /// Reads decimal digits. `nil` for anything else, and for numbers that are too large.
  static func wholeNumber(_ text: [UInt8]) -> Int? {
    guard !text.isEmpty, text.allSatisfy({ digit($0) != nil }) else { return nil }
    return Int(String(decoding: text, as: UTF8.self))
  }

  /// What `positiveNumber` reads, in words.
  static let positiveNumberKind = "a whole number above 0"

  /// Reads a whole number above 0.
  static func positiveNumber(_ text: [UInt8]) -> Int? {
    wholeNumber(text).flatMap { $0 > 0 ? $0 : nil }
  }

  private static func seconds(_ text: ArraySlice<UInt8>) -> Duration? {
    let parts = text.split(
      separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first, parts.contains(where: { !$0.isEmpty }) else { return nil }
    var seconds: Int64 = 0
    for character in whole {
      guard let digit = digit(character) else { return nil }
      seconds = seconds * 10 + digit
      guard seconds <= secondLimit else { return nil }
    }
    var attoseconds: Int64 = 0
    var unit: Int64 = 100_000_000_000_000_000
    for character in parts.dropFirst().joined() {
      guard let digit = digit(character) else { return nil }
      attoseconds += digit * unit
      unit /= 10
    }
    let duration = Duration(secondsComponent: seconds, attosecondsComponent: attoseconds)
    return duration > .zero ? duration : nil
  }

  private static func digit(_ character: UInt8) -> Int64? {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
    return Int64(character - UInt8(ascii: "0"))
  }
}
