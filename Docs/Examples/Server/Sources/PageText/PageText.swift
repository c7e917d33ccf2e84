/// The text of a page: everything follows from its first line, so that whoever gets it can tell whether it is
/// whole.
public struct PageText: Sendable, Hashable {
  public var number: Int
  /// When it was made, in milliseconds since 1970.
  public var made: Int64
  /// The process that made it.
  public var process: Int32
  /// How many this process had made by then.
  public var ordinal: Int

  public init(number: Int, made: Int64, process: Int32, ordinal: Int) {
    self.number = number
    self.made = made
    self.process = process
    self.ordinal = ordinal
  }

  /// Reads the first line of a text; `nil` where it is not that of a page.
  public init?(firstLineOf text: String) {
    let words = text.prefix { $0 != "\n" }.split(separator: " ")
    guard words.count == 8, let number = Int(words[1]), let made = Int64(words[3]),
      let process = Int32(words[5]), let ordinal = Int(words[7])
    else { return nil }
    self.init(number: number, made: made, process: process, ordinal: ordinal)
  }

  /// The whole text: from 4 to 12 KiB, depending on the number.
  public var text: String {
    let first = "page \(number) made \(made) process \(process) ordinal \(ordinal)"
    let lines = (1...(60 + number % 120)).map { "line \($0) of \(first)" }
    return ([first] + lines).joined(separator: "\n")
  }
}
