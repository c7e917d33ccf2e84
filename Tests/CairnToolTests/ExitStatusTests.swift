import Cairn
import Testing

@Suite("Exit status")
struct ExitStatusTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  @Test(arguments: [
    ["get", "key"], ["info", "key"], ["keys"], ["dump"], ["stats"], ["verify"], ["delete", "key"],
    ["export"],
    ["salvage"],
    ["trim", "--expired"],
  ])
  func `a command that makes no store exits 5 where there is none`(words: [String]) throws {
    var arguments = [words[0], store] + words.dropFirst()
    if words == ["export"] || words == ["salvage"] { arguments.append(directory("out")) }
    let outcome = try cairn(bytes: arguments.map { Array($0.utf8) })
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: \(words[0]): \(store): "))
    #expect(!directory.exists("store"))
    #expect(!directory.exists("out"))
  }

  @Test(arguments: [
    ["delete", "key"], ["put", "key", "v"], ["import"], ["salvage"], ["trim", "--count", "1"],
    ["compact"], ["increment", "key"], ["expire", "key", "--lifetime", "1h"], ["load"],
  ])
  func `a store that is open elsewhere exits 4`(words: [String]) throws {
    try directory.makeDirectory("tree")
    let open = try Store(path: store)
    try open.setValue("value", forKey: "key")
    var arguments = [words[0], store] + words.dropFirst()
    if words == ["import"] { arguments.insert(directory("tree"), at: 1) }
    if words == ["salvage"] { arguments.append(directory("out")) }
    let outcome = try cairn(
      bytes: arguments.map { Array($0.utf8) }, input: Array(#"{"key": "a", "value": "b"}"#.utf8))
    #expect(outcome.status == 4)
    #expect(outcome.errors.contains(store))
    try open.close()
  }

  @Test func `a directory of something else exits 5`() throws {
    try directory.makeDirectory("store")
    try directory.makeFile("store/notes.txt", [1])
    #expect(try cairn("get", store, "key").status == 5)
  }

  @Test func `a store without its manifest exits 3`() throws {
    try cairn("put", store, "key", "value")
    try directory.makeDirectory("part")
    try directory.makeFile("part/LOCK", [])
    try directory.makeFile("part/seg-00000001", [1, 2, 3])
    #expect(try cairn("get", directory("part"), "key").status == 3)
  }

  @Test func `a damaged value exits 3 and names file and offset`() throws {
    try damagedStore()
    let outcome = try cairn("get", store, "damaged")
    #expect(outcome.status == 3)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("cairn: get: \(store): corrupt: seg-"))
    #expect(outcome.errors.contains("at offset"))
    #expect(outcome.errors.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
    #expect(try cairn("get", store, "sound").text == "sound")
  }

  @Test func `verify finds a damaged value, exits 3 and names file and offset`() throws {
    try damagedStore()
    let outcome = try cairn("verify", store)
    #expect(outcome.status == 3)
    #expect(outcome.text.contains("seg-"))
    #expect(outcome.errors.contains("at offset"))
  }

  @Test func `export goes on after a damaged value and exits 3`() throws {
    try damagedStore()
    let outcome = try cairn("export", store, directory("out"))
    #expect(outcome.status == 3)
    #expect(outcome.errors.contains("cairn: export: damaged: "))
    #expect(outcome.errors.contains("at offset"))
    #expect(try directory.contents("out/sound") == Array("sound".utf8))
    #expect(!directory.exists("out/damaged"))
  }

  @Test func `salvage copies what is sound and exits 3`() throws {
    try damagedStore()
    let outcome = try cairn("salvage", store, directory("out"))
    #expect(outcome.status == 3)
    #expect(outcome.errors.hasPrefix("cairn: salvage: not everything could be copied: lost 1 "))
    #expect(outcome.text.contains("lost: seg-"))
    #expect(try cairn("get", directory("out"), "sound").text == "sound")
    #expect(try cairn("get", directory("out"), "damaged").status == 1)
    #expect(try cairn("verify", directory("out")).status == 0)
  }

  @Test func `errors say what to do next`() throws {
    try directory.makeDirectory("other")
    try directory.makeFile("other/notes.txt", [1])
    try damagedStore()
    #expect(
      try cairn("get", directory("none"), "k").errors.contains("load and import create a store"))
    #expect(try cairn("get", directory("other"), "k").errors.contains("give the path of a store"))
    #expect(
      try cairn("get", store, "damaged").errors.contains("cairn salvage copies the sound part"))
    #expect(try cairn("verify", store).errors.contains("cairn salvage copies the sound part"))
    let copy = try cairn("backup", store, directory("other"))
    #expect(copy.errors.contains("give a missing or empty directory"))
    for command in [["put", directory("a/b"), "k", "v"], ["export", store, directory("a/b")]]
      + ["backup", "salvage"].map({ [$0, store, directory("a/b")] })
    {
      let outcome = try cairn(bytes: command.map { Array($0.utf8) })
      #expect(outcome.errors.contains("the parent directory must exist"), "\(command)")
    }
    let open = try Store(path: directory("open"))
    #expect(try cairn("put", directory("open"), "k", "v").errors.contains("close it there first"))
    try open.close()
  }

  @Test func `a batch that lost its beginning is one error, and many errors are cut short`() throws
  {
    try directory.makeDirectory("tree")
    for number in 100..<300 { try directory.makeFile("tree/\(number)", Array("\(number)".utf8)) }
    try cairn("import", directory("tree"), store)
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    let name = try #require(names.first { $0.hasPrefix("seg-") })
    var bytes = try directory.contents("store/" + name)
    bytes[80] ^= 1
    try directory.makeFile("store/" + name, bytes)
    let one = try cairn("verify", store)
    #expect(one.status == 3)
    #expect(one.lines.count == 2, "\(one.text)")
    // Damage in every value.
    for number in 100..<300 {
      let digits = Array("\(number)\(number)".utf8)
      let place = try #require(bytes.firstRange(of: digits))
      bytes[place.upperBound - 1] ^= 1
    }
    try directory.makeFile("store/" + name, bytes)
    let many = try cairn("verify", store)
    #expect(many.lines.count == 22, "\(many.text)")
    #expect(many.lines[20].hasPrefix("and ") && many.lines[20].contains("--json lists all"))
  }

  @Test func `output that cannot be written exits 5`() throws {
    try cairn("put", store, "key", "value")
    let shell = "exec '\(Command.path)' get '\(store)' key > /dev/full"
    let outcome = try ChildProcess.run("/bin/sh", [Array("-c".utf8), Array(shell.utf8)])
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: get: standard output: "))
  }

  @Test func `output that nobody reads ends the command without a message`() throws {
    try cairn("put", store, "key", input: [UInt8](repeating: 65, count: 1_000_000))
    let shell = """
      trap '' PIPE
      { '\(Command.path)' get '\(store)' key; echo $? > '\(directory("status"))'; } | true
      """
    let outcome = try ChildProcess.run("/bin/sh", [Array("-c".utf8), Array(shell.utf8)])
    #expect(outcome.errors.isEmpty)
    #expect(try directory.contents("status") == Array("141\n".utf8))
  }

  /// Makes a store with a sound value and one with a flipped byte in the middle.
  private func damagedStore() throws {
    let value = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* $0 &+ 7) }
    try cairn("put", store, "sound", "sound")
    try cairn("put", store, "damaged", input: value)
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    let middle = Array(value[2000..<2200])
    var flips = 0
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/" + name)
      guard let place = bytes.firstRange(of: middle) else { continue }
      bytes[place.lowerBound + 100] ^= 0x10
      try directory.makeFile("store/" + name, bytes)
      flips += 1
    }
    try #require(flips == 1)
  }
}
