import CommandText

/// An option of a command, and what the option does there.
struct OptionUse: Sendable {
  let option: Option
  let meaning: String

  init(_ option: Option, _ meaning: String) {
    self.option = option
    self.meaning = meaning
  }

  static let keyFormat = OptionUse(
    .keyFormat,
    """
    the form of keys: escaped, as cairn keys prints them, or base64. Without it, keys are read as they
    are. JSON has its own form
    """)
  static let wait = OptionUse(
    .wait, "wait this long for another program to close the store; without it, fail at once")

  /// The first part of the meaning, for places with little room.
  var summary: String {
    if option == .json { return "print JSON" }
    return String(meaning.prefix { !";:.".contains($0) }.replacing("\n", with: " "))
  }
}

/// Everything that the help says about a command. The parser, the help, the manual and the
/// completions all use this description.
struct CommandPage: Sendable {
  /// What the command does, on one line.
  let summary: String
  /// The operands as in the synopsis: `KEY` is required, `[KEY]` is optional, `KEY...` repeats.
  let operands: [String]
  let options: [OptionUse]
  /// How many of the first options exclude each other. One of these is required.
  let alternativeCount: Int
  /// What the command does, in the format that `Paragraphs` reads.
  let about: String
  /// Further notes, below the options.
  let notes: String
  let examples: [String]

  init(
    _ summary: String, operands: [String] = ["STORE"], about: String,
    options: [OptionUse] = [], alternativeCount: Int = 0, notes: String = "", examples: [String]
  ) {
    self.summary = summary
    self.operands = operands
    self.about = about
    self.options = options
    self.alternativeCount = alternativeCount
    self.notes = notes
    self.examples = examples
  }

  /// How many operands the command takes.
  var operandCounts: ClosedRange<Int> {
    let least = operands.count { !$0.hasPrefix("[") }
    return least...(operands.last?.contains("...") == true ? .max : operands.count)
  }

  /// The names of the operands, in order.
  var operandNames: [String] {
    operands.map { $0.replacing("...", with: "").filter { $0 != "[" && $0 != "]" } }
  }

  /// The arguments after the command's name.
  var arguments: String {
    let synopses = options.map(\.option.synopsis)
    let alternatives = synopses.prefix(alternativeCount).joined(separator: " | ")
    let others = synopses.dropFirst(alternativeCount).map { "[\($0)]" }
    let required = alternativeCount > 1 ? "(\(alternatives))" : alternatives
    return (operands + (required.isEmpty ? [] : [required]) + others).joined(separator: " ")
  }

  /// The options as a list.
  static func list(_ options: [OptionUse]) -> Paragraphs.Block {
    .list(options.map { ($0.option.synopsis, $0.meaning) })
  }

  /// Everything below the synopsis.
  var blocks: [Paragraphs.Block] {
    let names = options.compactMap(\.option.valueName)
    let forms = Quantity.forms.filter { names.contains($0.name) }.map(\.form)
    return Paragraphs(about).blocks + (options.isEmpty ? [] : [Self.list(options)])
      + forms.map { .text($0) } + Paragraphs(notes).blocks + [.examples(examples)]
  }
}
