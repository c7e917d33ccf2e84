import Testing

@Suite("Usage")
struct UsageTests {
  @Test(arguments: [
    ["frobnicate"], ["get"], ["get", "S"], ["get", "S", ""], ["put", "S", ""],
    ["put", "", "k", "v"],
    ["put", "S", "k", "v", "extra"], ["get", "S", "k", "extra"], ["delete", "S"],
    ["delete", "S", "k", ""], ["keys"], ["stats", "S", "T"], ["import", "S"], ["export", "S"],
    ["salvage", "S"], ["salvage", "S", ""], ["salvage", "", "D"],
    ["salvage", "S", "D", "extra"],
    ["put", "S", "k", "v", "--ttl", "0"], ["put", "S", "k", "v", "--ttl", "-1"],
    ["put", "S", "k", "v", "--ttl", "1e400"], ["put", "S", "k", "v", "--ttl", "nan"],
    ["put", "S", "k", "v", "--ttl", "99999999999999999999"], ["put", "S", "k", "v", "--ttl", "."],
    ["put", "S", "k", "v", "--ttl="], ["put", "S", "k", "v", "--ttl"],
    ["put", "S", "k", "v", "--frob"], ["put", "S", "k", "-5"], ["get", "S", "k", "--long"],
    ["keys", "S", "--json=yes"], ["import", "S", "D", "--decode", "rot13"], ["help", "frobnicate"],
    ["--frob"], ["--json"], ["trim", "S"], ["trim", "S", "--count", "1", "--bytes", "1"],
    ["trim", "S", "--count", "-1"], ["trim", "S", "--bytes", "1e3"], ["trim", "S", "--count="],
    ["trim", "S", "--count", "99999999999999999999"], ["trim", "S", "--older-than", "0"],
    ["trim", "S", "--expired=1"], ["trim", "--expired"], ["trim", "S", "T", "--expired"],
    ["compact"], ["compact", "S", "T"], ["compact", "S", "--count", "1"],
    ["info", "S"], ["info", "S", ""], ["info", "S", "k", "l"],
    ["backup", "S"], ["backup", "S", "D", "E"], ["backup", "S", ""],
    ["expire"], ["expire", "S"], ["expire", "S", "k"], ["expire", "S", "--lifetime", "1h"],
    ["expire", "S", "", "--lifetime", "1h"], ["expire", "S", "k", "--lifetime", "0"],
    ["keys", "S", "--limit", "0"], ["keys", "S", "--tree", "--long"],
    ["keys", "S", "--tree", "--json"], ["keys", "S", "--tree", "--key-format=base64"],
    ["keys", "S", "--key-format", "hex"], ["get", "S", "a", "--key-format=base64"],
    ["get", "S", "a\\b", "--key-format=escaped"], ["delete", "S", "\\x4", "--key-format=escaped"],
    ["dump", "S", "--prefix", "a", "--key-format=base64"], ["put", "S", "k", "v", "--wait", "0"],
    ["increment", "S"], ["increment", "S", "k", "x"], ["increment", "S", "k", "1.5"],
    ["increment", "S", "k", "9223372036854775808"], ["dump"], ["dump", "S", "T"], ["load"],
    ["load", "S", "T"], ["verify", "S", "--rate", "0"], ["keys", "S", "--color"],
    ["get", "S", "k", "--color=on"],
    ["completions"], ["completions", "csh"], ["version", "S"],
    ["top"], ["top", "S", "T"], ["top", "S", "--count", "0"], ["top", "S", "--interval", "0"],
  ])
  func `a wrong command line exits 2 with one line`(arguments: [String]) throws {
    let directory = try TemporaryDirectory()
    let named = arguments.map { $0 == "S" || $0 == "D" ? directory($0) : $0 }
    let outcome = try cairn(bytes: named.map { Array($0.utf8) })
    #expect(outcome.status == 2)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("cairn: "))
    #expect(outcome.errors.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
    #expect(!directory.exists("S"))
  }

  @Test func `an unknown option points to the help of the command`() throws {
    let outcome = try cairn("--frob", "keys", "store")
    #expect(outcome.errors == "cairn: keys: unknown option --frob; see cairn help keys\n")
  }

  @Test(arguments: [
    (["stat", "S"], "unknown command stat; did you mean cairn stats?"),
    (["verfy", "S"], "unknown command verfy; did you mean cairn verify?"),
    (["exprot", "S"], "unknown command exprot; did you mean cairn export?"),
    (["watch", "S"], "unknown command watch; did you mean cairn top?"),
    (["ls"], "unknown command ls; did you mean cairn keys?"),
    (["versoin"], "unknown command versoin; did you mean cairn version?"),
    (["ttl", "S"], "unknown command ttl; did you mean cairn expire?"),
    (["help", "imprt"], "help: unknown command imprt; did you mean cairn import?"),
    (["frobnicate"], "unknown command frobnicate; see cairn help"),
    (["keys", "S", "--lnog"], "keys: unknown option --lnog; did you mean --long?"),
    (["--pre=a", "keys", "S"], "keys: unknown option --pre=a; did you mean --prefix?"),
    (["stats", "S", "--pre"], "stats: unknown option --pre; see cairn help stats"),
    (["--colr"], "unknown option --colr; did you mean --color?"),
    (
      ["keys", "S", "--color", "red"],
      "keys: --color must be auto, always or never, not red; see cairn help keys"
    ),
    (
      ["get", "S"],
      "get: KEY is missing; usage: cairn get STORE KEY [--counter] [--key-format escaped|base64] [--json]; see cairn help get"
    ),
  ])
  func `a wrong word is told with what may be meant`(arguments: [String], message: String) throws {
    let outcome = try cairn(bytes: arguments.map { Array($0.utf8) })
    #expect(outcome.status == 2)
    #expect(outcome.errors == "cairn: \(message)\n")
  }

  @Test func `sizes and times may have units`() throws {
    let directory = try TemporaryDirectory()
    let store = directory("store")
    try cairn("put", store, "day", "v", "--ttl", "1d")
    try cairn("put", store, "week", "v", "--ttl", "1.5w")
    try cairn("put", store, "large", input: [UInt8](repeating: 1, count: 3 << 20))
    let keys = try cairn("keys", store, "--long").lines
    #expect(keys.count == 3)
    #expect(try cairn("trim", store, "--older-than", "2h").text == "removed 0 keys, 0 bytes\n")
    #expect(try cairn("trim", store, "--bytes", "4M").text == "removed 0 keys, 0 bytes\n")
    for same in ["4m", "4MiB", "4096k", "1G", "1GiB"] {
      #expect(
        try cairn("trim", store, "--bytes", same).text == "removed 0 keys, 0 bytes\n", "\(same)")
    }
    #expect(try cairn("trim", store, "--bytes", "3072K").text.hasPrefix("removed 3 keys, 3.0 MiB"))
    // The units that a command prints can be given back.
    for printed in ["3.9 MiB", "4.0 MiB", "3 MiB 512 KiB", "4096.5K", "9999999 B", "5000000 bytes"]
    {
      #expect(
        try cairn("trim", store, "--bytes", printed).text.hasPrefix("removed 0"), "\(printed)")
    }
    for printed in ["2 h 5 min", "1 d", "3 min 20 s", "1h30m", "7200000ms", "1.5w", "0.001h"] {
      #expect(try cairn("trim", store, "--older-than", printed).status == 0, "\(printed)")
    }
    for wrong in [
      "1x", "M", "99999999999999999999T", "9000000000000G", "", "4MB", "4iB", "MiB", "1M5", "4 ",
      " 4", "1.2.3", ".", "8191P 8191P", "8192P",
    ] {
      #expect(try cairn("trim", store, "--bytes", wrong).status == 2, "\(wrong)")
    }
    for wrong in [
      "d", "0d", "9000000000000000w", "1dd", "1d ", "1h30", "30 1h", "1H", "9223372036854776s",
      "9223372036854775s 9223372036854775s",
    ] {
      #expect(try cairn("trim", store, "--older-than", wrong).status == 2, "\(wrong)")
    }
  }

  @Test func `without a command, the usage is on standard error`() throws {
    let outcome = try cairn()
    #expect(outcome.status == 2)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("usage: cairn "))
  }

  @Test(arguments: [["help"], ["--help"], ["-h"], ["help", "--help"]])
  func `help is on standard output`(arguments: [String]) throws {
    let outcome = try cairn(bytes: arguments.map { Array($0.utf8) })
    #expect(outcome.status == 0)
    #expect(outcome.text.hasPrefix("usage: cairn "))
    #expect(outcome.errors.isEmpty)
  }

  @Test(arguments: Command.names)
  func `every command explains itself`(command: String) throws {
    let outcome = try cairn("help", command)
    #expect(outcome.status == 0)
    #expect(outcome.text.hasPrefix("usage: cairn \(command) "))
    #expect(try cairn(command, "--help").output == outcome.output)
  }

  @Test func `the version is told`() throws {
    let outcome = try cairn("--version")
    #expect(outcome.status == 0)
    #expect(outcome.text == "cairn 0.1.0\n")
    #expect(try cairn("-V").text == outcome.text)
    let lines = try cairn("version").lines
    #expect(lines == ["cairn 0.1.0", "writes file format 1.0", "reads file formats 1.x"])
    #expect(
      try cairn("version", "--json").text
        == #"{"version": "0.1.0", "writesFormat": "1.0", "readsFormats": ["1.x"]}"# + "\n")
  }

  @Test func `the version is the newest of the changelog, and in the statistics`() throws {
    let version = try #require(try cairn("--version").text.split(separator: "\n").first).dropFirst(
      6)
    let files = try TemporaryDirectory()
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let changes = try ChildProcess.run("/bin/cat", [Array("/\(root)/CHANGELOG.md".utf8)]).lines
    let newest = try #require(changes.first { $0.hasPrefix("## ") })
    #expect(newest.hasPrefix("## \(version),") || newest == "## \(version)", "\(newest)")
    try cairn("put", files("store"), "key", "value")
    #expect(
      try cairn("stats", files("store"), "--json").text.contains(#""cairnVersion": "\#(version)""#))
    #expect(try cairn("stats", files("store")).lines.contains("cairn       \(version)"))
  }

  @Test func `the overview has every command`() throws {
    let commands = try cairn("help").text.split(separator: "A first try")[0].matches(
      of: /\n  ([a-z]+)/)
    #expect(commands.map { String($0.1) } == Command.names)
  }
}
