/// How long a value lives, as the command line says it.
enum Lifetime {
  /// Seconds after which any expiry would lie beyond what a timestamp can express.
  private static let secondLimit: Int64 = 9_000_000_000_000_000

  /// Reads decimal seconds such as `90` or `0.25`. `nil` for what is no number, is not above zero
  /// or lies beyond the limit; there is no sign and no exponent.
  static func parse(_ text: [UInt8]) -> Duration? {
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
