import CairnTool
import Testing

@Suite("keys can print a tree, or only a few keys")
struct KeyTreeTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  private func lines(_ keys: [String], limit: Int? = nil) -> [String] {
    let sorted = keys.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
    var lines: [String] = []
    KeyTree(keys: sorted, limit: limit).forEachLine { line in
      lines.append(
        String(repeating: "  ", count: line.depth)
          + (line.name.isEmpty ? "+\(line.count)" : String(decoding: line.name, as: UTF8.self))
          + (line.count > 1 && !line.name.isEmpty ? " \(line.count)" : ""))
    }
    return lines
  }

  @Test func `folders hold the keys below them`() {
    #expect(lines([]) == [])
    #expect(lines(["a"]) == ["a"])
    #expect(lines(["b/2", "a", "b/1", "c"]) == ["a", "b/ 2", "  1", "  2", "c"])
    // A key with the name of a folder, and a folder's own key.
    #expect(lines(["a", "a/", "a/b", "a!"]) == ["a", "a!", "a/ 2", "  b"])
    // Nested folders with no other contents share a line, and a folder of one key is the key.
    #expect(lines(["a/b/c/1", "a/b/c/2"]) == ["a/b/c/ 2", "  1", "  2"])
    #expect(lines(["a/b/c", "d"]) == ["a/b/c", "d"])
    #expect(lines(["a/b/1", "a/b/2", "a/c"]) == ["a/ 3", "  b/ 2", "    1", "    2", "  c"])
    #expect(lines(["/", "//", "///x"]) == ["/ 3", "  / 2", "    /x"])
  }

  @Test func `a folder shows as many names as it may`() {
    let keys = (1...5).flatMap { folder in (1...4).map { "f\(folder)/\($0)" } }
    #expect(
      lines(keys, limit: 2)
        == ["f1/ 4", "  1", "  2", "  +2", "f2/ 4", "  1", "  2", "  +2", "+3"])
    #expect(lines(keys, limit: 5).count == 25)
  }

  @Test func `no depth is too deep`() {
    let names = (1...5000).map { String(repeating: "/", count: $0) }
    #expect(lines(names).count == 5000)
  }

  @Test func `the command shows it`() throws {
    for key in ["2024/lake.jpg", "2024/hills.jpg", "2025/a\u{1B}b", "notes"] {
      try cairn("put", store, key, "value")
    }
    #expect(
      try cairn("keys", store, "--tree").text
        == "2024/  (2 keys)\n  hills.jpg\n  lake.jpg\n2025/a\\x1Bb\nnotes\n")
    #expect(
      try cairn("keys", store, "--tree", "--limit=1").text
        == "2024/  (2 keys)\n  hills.jpg\n  (1 more)\n(2 more)\n")
    #expect(try cairn("keys", store, "--tree", "--prefix", "2024/").lines.count == 3)
  }

  @Test func `a limit shows the first keys, and says how many more there are`() throws {
    for key in ["c", "a", "b"] { try cairn("put", store, key, "value") }
    let outcome = try cairn("keys", store, "--limit", "2")
    #expect(outcome.lines == ["a", "b"])
    #expect(outcome.errors == "cairn: keys: 1 more key\n")
    #expect(outcome.status == 0)
    #expect(try cairn("keys", store, "--limit", "1", "--json").text.contains(#""key": "a""#))
    #expect(try cairn("keys", store, "--limit", "3").errors.isEmpty)
    #expect(try cairn("keys", store, "--long", "--limit", "1").lines.count == 1)
  }

  @Test func `a terminal gets a header above the long form`() throws {
    try cairn("put", store, "a", "four")
    try cairn("put", store, "b", "", "--lifetime", "1000")
    let lines = try PseudoTerminal(columns: 90).cairn("keys", store, "--long")
      .split(separator: "\r\n")
    #expect(lines.count == 3)
    #expect(lines[0] == "      bytes  written               expires                   key")
    let (header, row) = (Array(lines[0]), Array(lines[1]))
    for (title, cell) in [("written", "20"), ("expires", "-"), ("key", "a")] {
      let column = try #require(String(header).firstRange(of: title)).lowerBound
      let offset = String(header).distance(from: String(header).startIndex, to: column)
      #expect(String(row[offset...]).hasPrefix(cell), "\(title)")
    }
    let narrow = try PseudoTerminal(columns: 40).cairn("keys", store, "--long")
      .split(separator: "\r\n")
    #expect(narrow.last == "    b" && narrow.allSatisfy { $0.count <= 40 })
  }
}
