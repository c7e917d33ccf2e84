import Cairn
import CommandText
import Testing

@Suite("The width of text")
struct WidthTests {
  static let widths = [40, 60, 80, 120]

  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  /// The lines that a terminal received. All of them fit: only a word can be longer than a line.
  private func lines(_ text: String, columns: Int) -> [String] {
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    for line in lines where line.count > columns {
      #expect(!line.trimmingPrefix { $0 == " " }.contains(" "), "\(columns) columns: \(line)")
    }
    return lines
  }

  @Test(arguments: widths, [[]] + Command.names.map { [$0] })
  func `help fits every width, and says the same`(columns: Int, command: [String]) throws {
    let (text, status) = try PseudoTerminal(columns: columns).run(["help"] + command)
    #expect(status == 0)
    let shown = lines(text, columns: columns)
    // The room is used, but lines stay short enough to read.
    let width = shown.filter { $0.count <= columns }.map(\.count).max() ?? 0
    #expect((min(columns, 60) - 20...min(columns, 100)).contains(width))
    let piped = try cairn(bytes: (["help"] + command).map { Array($0.utf8) })
    #expect(piped.lines.allSatisfy { $0.count <= 80 })
    #expect(piped.text.contains("\n  $ cairn "))
    // If a command is broken, its line ends in a backslash.
    #expect(
      words(text.replacing(" \\\r\n", with: "\n"))
        == words(piped.text.replacing(" \\\n", with: "\n")))
  }

  @Test(arguments: widths)
  func `errors are broken between words`(columns: Int) throws {
    for arguments in [
      ["get", store], ["keys", store, "--limit", "many"], ["stats", directory("nowhere")],
      ["trim", store], ["frobnicate"], ["get", directory("no [where at all"), "key"],
    ] {
      let (text, _) = try PseudoTerminal(columns: columns).run(arguments)
      let shown = lines(text, columns: columns)
      #expect(shown[0].hasPrefix("cairn:"))
      #expect(shown.dropFirst().dropLast().allSatisfy { $0.hasPrefix("  ") })
      let piped = try cairn(bytes: arguments.map { Array($0.utf8) })
      #expect(piped.errors.split(separator: "\n").count == 1)
      #expect(words(text) == words(piped.errors))
    }
  }

  @Test(arguments: widths)
  func `reports are broken between words`(columns: Int) throws {
    try manySegments(store)
    try removeMany(store, count: 17)
    try directory.makeDirectory("tree")
    try directory.makeFile("tree/file", [1])
    for arguments in [
      ["stats", store], ["stats", store, "--histograms"], ["info", store, "key 40"],
      ["verify", store], ["version"],
      ["export", store, directory("out")], ["import", directory("tree"), store],
      ["backup", store, directory("copy")], ["salvage", store, directory("saved")],
      ["trim", store, "--expired"], ["compact", store], ["keys", store, "--long", "--limit", "2"],
      ["keys", store, "--tree"],
    ] {
      let (text, status) = try PseudoTerminal(columns: columns).run(arguments)
      #expect(status == 0, "\(arguments): \(text)")
      let last = text.split(separator: "\r\u{1B}[K", omittingEmptySubsequences: false).last ?? ""
      _ = lines(String(last), columns: columns)
    }
  }

  @Test func `a line is broken where words end`() {
    #expect(broken("one two three", width: 13) == ["one two three"])
    #expect(broken("one two three", width: 12) == ["one two", "  three"])
    #expect(broken("one two three", width: 7) == ["one two", "  three"])
    #expect(broken("one two three", width: 6) == ["one", "  two", "  three"])
    #expect(broken("a b c d e", width: 5, indent: 2, mark: " \\") == ["a b \\", "  c \\", "  d e"])
    #expect(
      broken("key      value with words", width: 20, indent: 9) == [
        "key      value with", "         words",
      ])
    #expect(broken("immeasurable words", width: 5) == ["immeasurable", "  words"])
    #expect(broken("  indented", width: 4) == ["  indented"])
    #expect(broken("", width: 4) == [""])
    #expect(broken("word    ", width: 4) == ["word"])
  }
}
