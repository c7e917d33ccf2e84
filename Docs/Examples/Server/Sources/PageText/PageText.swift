/// The text of a page. The first line determines the rest, so a client can check that a page is
/// complete.
public struct PageText: Sendable, Hashable {
  public var number: Int
  /// The time at which the page was computed, in milliseconds since 1970.
  public var made: Int64
  /// The process that computed the page.
  public var process: Int32
  /// The number of pages that this process had computed, including this one.
  public var ordinal: Int

  public init(number: Int, made: Int64, process: Int32, ordinal: Int) {
    self.number = number
    self.made = made
    self.process = process
    self.ordinal = ordinal
  }

  /// Parses the first line of a text. Returns `nil` if it is not the first line of a page.
  public init?(firstLineOf text: String) {
    let words = text.prefix { $0 != "\n" }.split(separator: " ")
    guard words.count == 8, let number = Int(words[1]), let made = Int64(words[3]),
      let process = Int32(words[5]), let ordinal = Int(words[7])
    else { return nil }
    self.init(number: number, made: made, process: process, ordinal: ordinal)
  }

  /// The whole text: 4 to 12 KiB, depending on the number.
  public var text: String {
    let first = "page \(number) made \(made) process \(process) ordinal \(ordinal)"
    let lines = (1...(60 + number % 120)).map { "line \($0) of \(first)" }
    return ([first] + lines).joined(separator: "\n")
  }
}
