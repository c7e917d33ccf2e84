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
    ["put", "S", "k", "v", "--frob"], ["put", "S", "k", "-5"], ["get", "S", "k", "--json"],
    ["keys", "S", "--json=yes"], ["import", "S", "D", "--decode", "rot13"], ["help", "frobnicate"],
    ["--frob"], ["--json"], ["trim", "S"], ["trim", "S", "--count", "1", "--bytes", "1"],
    ["trim", "S", "--count", "-1"], ["trim", "S", "--bytes", "1e3"], ["trim", "S", "--count="],
    ["trim", "S", "--count", "99999999999999999999"], ["trim", "S", "--older-than", "0"],
    ["trim", "S", "--expired=1"], ["trim", "--expired"], ["trim", "S", "T", "--expired"],
    ["compact"], ["compact", "S", "T"], ["compact", "S", "--count", "1"],
    ["backup", "S"], ["backup", "S", "D", "E"], ["backup", "S", ""],
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

  @Test(arguments: [
    "put", "get", "delete", "keys", "stats", "verify", "salvage", "trim", "compact", "backup",
    "import", "export", "help",
  ])
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
  }
}
