import Cairn
import CairnEssentials
import Testing

@Suite("What import reports and keeps")
struct ImportReportTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }
  var tree: String { directory("tree") }

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDirectory("tree")
  }

  @Test func `an import that finds everything there says so`() throws {
    for name in ["a", "b", "c"] { try directory.makeFile("tree/\(name)", Array(name.utf8)) }
    #expect(
      try cairn("import", tree, store).text == "imported 3 files, 3 bytes: 3 stored, 0 unchanged\n")
    #expect(
      try cairn("import", tree, store).text
        == "nothing to store, all values are already there: 3 files, 3 bytes\n")
    try directory.makeFile("tree/a", [1])
    #expect(
      try cairn("import", tree, store).text == "imported 3 files, 3 bytes: 1 stored, 2 unchanged\n")
  }

  @Test func `on a terminal, it shows how much is done`() throws {
    for number in 0..<40 {
      try directory.makeDirectory("tree/\(number)")
      for file in 0..<100 { try directory.makeFile("tree/\(number)/\(file)", [1, 2, 3]) }
    }
    let terminal = try PseudoTerminal(columns: 100)
    let text = try terminal.cairn("import", tree, store)
    let pattern = #/imported [0-9.]+ (B|KiB) of 11\.7 KiB, [0-9]+ %, [0-9.]+ (B|KiB)\/s/#
    #expect(text.contains(pattern), "\(text)")
    #expect(
      text.hasSuffix("imported 4,000 files, 11.7 KiB (12,000 bytes): 4,000 stored, 0 unchanged\r\n")
    )
  }

  @Test func `with a time, every file is stored for that long, also where it was there`() throws {
    try directory.makeFile("tree/a", [1])
    try directory.makeDirectory("tree/empty")
    try cairn("import", tree, store)
    let outcome = try cairn("import", tree, store, "--ttl", "12h")
    #expect(outcome.status == 0)
    #expect(outcome.text.contains(": 2 stored, 0 unchanged"))
    let open = try Store(readingAt: store)
    for key in ["a", "empty/"] {
      let info = try #require(try open.info(forKey: key))
      let expires = try #require(info.expires)
      let seconds = (expires.millisecondsSinceEpoch - info.written.millisecondsSinceEpoch) / 1000
      #expect((43_199...43_202).contains(seconds), "\(seconds)")
    }
    try open.close()
    // Without a time, a file stays for good.
    #expect(try cairn("import", tree, store).text.contains(": 2 stored, 0 unchanged"))
    #expect(try cairn("import", tree, store, "--ttl", "0").status == 2)
  }

  @Test func `the help says what becomes of the times of files`() throws {
    let words = try cairn("help", "import").text.split { $0.isWhitespace }.joined(separator: " ")
    #expect(words.contains("--lifetime TIME"))
    #expect(words.contains("Modification times of files are not kept"))
    #expect(words.contains("trim --older-than counts from the import"))
  }
}
