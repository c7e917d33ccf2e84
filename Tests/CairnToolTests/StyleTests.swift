import Cairn
import Testing

@Suite("Colour and bold")
struct StyleTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    try cairn("put", store, "key", "value")
  }

  private static let terminal = ["TERM=xterm-256color"]
  private static let error = "\u{1B}[1;31mcairn: get:\u{1B}[0m none: no such key"

  /// Options, environment, and whether there is colour.
  typealias Case = ([String], [String], Bool)

  private static let onTerminal: [Case] = [
    ([], terminal, true), ([], [], false), ([], ["TERM=dumb"], false),
    ([], terminal + ["NO_COLOR=1"], false), ([], terminal + ["NO_COLOR="], true),
    ([], terminal + ["CLICOLOR=0"], false), ([], ["TERM=dumb", "CLICOLOR_FORCE=1"], true),
    ([], ["CLICOLOR_FORCE=0", "TERM=dumb"], false), (["--color", "never"], terminal, false),
    (["--color=always"], terminal + ["NO_COLOR=1"], true), (["--color", "auto"], terminal, true),
  ]

  @Test(arguments: onTerminal)
  func `a terminal gets it if it wants it`(
    options: [String], environment: [String], isColored: Bool
  ) throws {
    let (text, _) = try PseudoTerminal(columns: 80).run(
      ["get", store, "none"] + options, environment: environment)
    #expect(text == (isColored ? Self.error : "cairn: get: none: no such key") + "\r\n")
  }

  private static let inFile: [Case] = [
    ([], terminal, false), ([], terminal + ["CLICOLOR_FORCE=1"], true),
    ([], ["CLICOLOR_FORCE=1", "NO_COLOR=1"], false), (["--color=always"], [], true),
    (["--colour=always"], [], true),
  ]

  @Test(arguments: inFile)
  func `a file gets it only if it is forced to`(
    options: [String], environment: [String], isColored: Bool
  ) throws {
    let outcome = try ChildProcess.run(
      Command.path, (["get", store, "none"] + options).map { Array($0.utf8) },
      environment: environment)
    #expect(outcome.errors == (isColored ? Self.error : "cairn: get: none: no such key") + "\n")
  }

  @Test func `headings, warnings and bars stand out`() throws {
    func shown(_ words: String...) throws -> String {
      try PseudoTerminal(columns: 80).run(words, environment: Self.terminal).text
    }
    #expect(try shown("help").hasPrefix("\u{1B}[1musage:\u{1B}[0m cairn COMMAND"))
    #expect(try shown("keys", store, "--long").hasPrefix("\u{1B}[1m      bytes  written "))
    let stats = try shown("stats", store, "--histograms")
    #expect(stats.contains("\u{1B}[1mvalue size  keys\u{1B}[0m"))
    #expect(stats.contains("  100 %  \u{1B}[32m####"))
    let open = try Store(path: directory("live"))
    try open.setValue([UInt8](repeating: 1, count: 100_000), forKey: "key")
    #expect(try shown("top", directory("live"), "--count", "1").contains("  \u{1B}[32m####"))
    #expect(
      try shown("stats", directory("live")).hasPrefix("\u{1B}[33mcairn: stats:\u{1B}[0m process "))
    try open.close()
  }

  @Test func `keys and values bring no escapes of their own`() throws {
    let odd = "k\u{1B}[31mred\u{9B}32m"
    let path = directory(odd)
    try cairn("put", path, odd + "/a", odd)
    try cairn("put", path, odd + "/b", odd)
    for arguments in [
      ["keys", path], ["keys", path, "--long"], ["keys", path, "--tree"],
      ["info", path, odd + "/a"],
      ["stats", path, "--histograms"], ["top", path, "--count", "1"], ["get", path, odd],
      ["get", path, odd + "/a"], ["verify", path], ["put", path, odd, odd, "--" + odd], [odd],
    ] {
      let (text, _) = try PseudoTerminal(columns: 80).run(
        arguments, environment: Self.terminal)
      // What the command uses: styles, and the page of `top`.
      let own = #/\u{1B}\[(1|1;31|33|32|2|0)m|\u{1B}\[(\?1049[hl]|\?25[hl]|H|K|J)/#
      let rest = text.replacing(own, with: "")
      #expect(!rest.contains("\u{1B}") && !rest.contains("\u{9B}"), "\(arguments)")
    }
  }
}
