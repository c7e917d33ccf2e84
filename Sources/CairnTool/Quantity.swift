/// Times and sizes on the command line. The units that commands print can be given back.
package enum Quantity {
  /// The units of times, in milliseconds.
  private static let times: [String: Int64] = [
    "": 1000, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
    "w": 604_800_000,
  ]
  /// The units of sizes: powers of 1024. `GB` is missing, because its meaning is ambiguous.
  private static let sizes: [String: Int64] = {
    var units: [String: Int64] = ["": 1, "B": 1, "byte": 1, "bytes": 1]
    for (index, letter) in ["K", "M", "G", "T", "P"].enumerated() {
      for name in [letter, letter.lowercased(), letter + "iB"] {
        units[name] = 1 << (10 * (index + 1))
      }
    }
    return units
  }()

  /// How the help describes the values `TIME` and `SIZE` of options.
  static let forms: [(name: String, form: String)] = [
    ("TIME", "TIME is a number of seconds, or numbers with units: 250ms, 90s, 15m, 1h30m, 7d, 2w."),
    (
      "SIZE",
      "SIZE is a number of bytes, or a number with a unit, a power of 1024: 500K, 1.5M, 2GiB."
    ),
  ]

  /// What `duration` reads, in words.
  static let durationKind = "a time above 0 and below 292 million years, such as 90, 0.5, 12h or 7d"

  /// What `byteCount` reads, in words.
  static let byteCountKind = "a size, such as 5000, 500K, 1.5M or 2GiB"

  /// Reads a time such as `90`, `0.25`, `1h30m` or `2 h 5 min`. `nil` for anything else, for zero,
  /// and for times beyond the range of timestamps. Signs and exponents are not allowed.
  package static func duration(_ text: [UInt8]) -> Duration? {
    guard let sum = sum(text, times), sum > .zero else { return nil }
    return sum / 1000
  }

  /// Reads a size such as `5000`, `500K`, `1.5m` or `12.3 MiB`, rounded down to bytes.
  package static func byteCount(_ text: [UInt8]) -> Int? {
    sum(text, sizes).map { Int($0.components.seconds) }
  }

  /// Reads decimal digits. `nil` for anything else, and for numbers that are too large.
  static func wholeNumber(_ text: [UInt8]) -> Int? {
    guard !text.isEmpty, text.allSatisfy(isDigit) else { return nil }
    return Int(String(decoding: text, as: UTF8.self))
  }

  /// What `positiveNumber` reads, in words.
  static let positiveNumberKind = "a whole number above 0"

  /// Reads a whole number above 0.
  static func positiveNumber(_ text: [UInt8]) -> Int? {
    wholeNumber(text).flatMap { $0 > 0 ? $0 : nil }
  }

  /// Adds numbers, each with its unit. A number without a unit stands alone. Spaces may separate the
  /// parts. The sum is at most `Int64.max`, as a number of seconds that stand for the smallest unit.
  private static func sum(_ text: [UInt8], _ units: [String: Int64]) -> Duration? {
    let space = UInt8(ascii: " ")
    let limit = Duration.seconds(Int64.max)
    if text.last == space { return nil }
    var sum = Duration.zero
    var rest = text[...]
    repeat {
      let digits = rest.prefix { isDigit($0) || $0 == UInt8(ascii: ".") }
      rest = rest.dropFirst(digits.count).drop { $0 == space }
      let name = rest.prefix { !isDigit($0) && $0 != space }
      rest = rest.dropFirst(name.count).drop { $0 == space }
      guard let number = number(digits), let unit = units[String(decoding: name, as: UTF8.self)],
        !name.isEmpty || digits.count == text.count, number <= limit / unit
      else { return nil }
      sum += number * unit
      if sum > limit { return nil }
    } while !rest.isEmpty
    return sum
  }

  /// Reads a decimal number, as a number of seconds.
  private static func number(_ text: ArraySlice<UInt8>) -> Duration? {
    let parts = text.split(
      separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.contains(where: { !$0.isEmpty }) else { return nil }
    let whole = parts[0].isEmpty ? 0 : wholeNumber(Array(parts[0]))
    guard let whole else { return nil }
    var attoseconds: Int64 = 0
    var unit: Int64 = 100_000_000_000_000_000
    for digit in parts.dropFirst().joined() {
      guard isDigit(digit) else { return nil }
      attoseconds += Int64(digit - UInt8(ascii: "0")) * unit
      unit /= 10
    }
    return Duration(secondsComponent: Int64(whole), attosecondsComponent: attoseconds)
  }

  private static func isDigit(_ character: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
  }
}
