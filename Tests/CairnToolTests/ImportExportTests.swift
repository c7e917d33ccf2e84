import Cairn
import CairnEssentials
import CairnLibC
import Testing

@Suite("import and export")
struct ImportExportTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }
  var tree: String { directory("tree") }
  var out: String { directory("out") }

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDirectory("tree")
  }

  private struct Report: Decodable {
    let files, emptyDirectories, bytes, errors: Int
    let stored, unchanged, skippedLinks, skippedSpecialFiles, encodedKeys: Int?
  }

  private func importTree(_ options: String...) throws -> Report {
    let words = ["import", tree, store, "--json"] + options
    let outcome = try cairn(bytes: words.map { Array($0.utf8) })
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  private func keys() throws -> [[UInt8]] {
    let open = try Store(readingAt: store)
    var keys: [[UInt8]] = []
    try open.forEachKey { key in
      keys.append((0..<key.byteCount).map { key[byteAt: $0] })
      return .next
    }
    try open.close()
    return keys.sorted { $0.lexicographicallyPrecedes($1) }
  }

  // MARK: - Round trips

  @Test(arguments: [
    Array("new\nline".utf8), [0xFF], [0x61, 0xC3], Array("-dash".utf8), Array("--".utf8),
    Array(" a b ".utf8), Array("back\\slash".utf8), Array("%41".utf8), Array("a+".utf8),
    Array(".hidden".utf8), Array("...".utf8), [UInt8](repeating: 0xFE, count: 255),
  ])
  func `a file of any name comes back`(name: [UInt8]) throws {
    try directory.makeFile(Array("tree/".utf8) + name, Array("contents".utf8))
    #expect(try cairn("import", tree, store).status == 0)
    #expect(try keys() == [name])
    #expect(try cairn("export", store, out).status == 0)
    #expect(try differences(tree, out).isEmpty)
  }

  @Test func `empty files and empty directories come back`() throws {
    try directory.makeFile("tree/empty", [])
    for name in ["tree/a", "tree/a/b", "tree/c"] { try directory.makeDirectory(name) }
    try cairn("import", tree, store)
    #expect(try keys() == ["a/b/", "c/", "empty"].map { Array($0.utf8) })
    try cairn("export", store, out)
    #expect(try differences(tree, out).isEmpty)
  }

  @Test func `an empty tree comes back`() throws {
    #expect(try cairn("import", tree, store).status == 0)
    #expect(try cairn("export", store, out).status == 0)
    #expect(try differences(tree, out).isEmpty)
  }

  @Test func `a tree of 300 levels comes back`() throws {
    let deep = try TemporaryDirectory()
    try deep.makeChain("d", depth: 300, leaf: [1, 2, 3])
    #expect(try cairn("import", deep.path, store).status == 0)
    #expect(try cairn("export", store, out).status == 0)
    #expect(try differences(deep.path, out).isEmpty)
  }

  @Test func `a tree deeper than a path may be long comes back with few descriptors`() throws {
    let deep = try TemporaryDirectory()
    let name = String(repeating: "d", count: 99)
    try deep.makeChain(name, depth: 400, leaf: [1, 2, 3])
    let key = Array((String(repeating: name + "/", count: 400) + "leaf").utf8)
    for command in [
      "import '\(deep.path)' '\(store)'", "export '\(store)' '\(out)'",
      "import '\(out)' '\(directory("second"))'",
    ] {
      let shell = "ulimit -n 32; exec '\(Command.path)' \(command)"
      let outcome = try ChildProcess.run("/bin/sh", [Array("-c".utf8), Array(shell.utf8)])
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
    let second = try Store(readingAt: directory("second"))
    #expect(try second.value(forKey: key) == [1, 2, 3])
    try second.close()
  }

  @Test func `large and small files come back`() throws {
    for (index, byteCount) in [1, 1000, 1 << 20, (1 << 20) - 1, 5_000_000].enumerated() {
      let contents = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
      try directory.makeFile("tree/\(index)", contents)
    }
    for index in 5..<600 { try directory.makeFile("tree/\(index)", [UInt8(index & 255)]) }
    #expect(try importTree().files == 600)
    #expect(try cairn("verify", store).status == 0)
    try cairn("export", store, out)
    #expect(try differences(tree, out).isEmpty)
  }

  // MARK: - Import

  @Test func `links and special files are skipped and counted`() throws {
    try directory.makeLink("tree/passwd", to: "/etc/passwd")
    try directory.makeLink("tree/etc", to: "/etc")
    try directory.makePipe("tree/pipe")
    try directory.makeFile("tree/file", [1])
    let report = try importTree()
    #expect(report.skippedLinks == 2)
    #expect(report.skippedSpecialFiles == 1)
    #expect(report.errors == 0)
    #expect(try keys() == [Array("file".utf8)])
  }

  @Test func `the directory itself may be given through a link`() throws {
    try directory.makeFile("tree/file", [1])
    try directory.makeLink("link", to: tree)
    try cairn("import", directory("link"), store)
    #expect(try keys() == [Array("file".utf8)])
  }

  @Test func `a second import writes only what is missing or differs`() throws {
    for name in ["a", "b", "c"] { try directory.makeFile("tree/\(name)", Array(name.utf8)) }
    #expect(try importTree().stored == 3)
    try cairn("delete", store, "a")
    try cairn("put", store, "b", "x")
    let report = try importTree()
    #expect(report.stored == 2)
    #expect(report.unchanged == 1)
    try cairn("export", store, out)
    #expect(try differences(tree, out).isEmpty)
  }

  @Test func `an import that was killed is completed by another`() throws {
    for index in 0..<1500 {
      try directory.makeFile("tree/\(index)", [UInt8](repeating: UInt8(index & 255), count: 3000))
    }
    let killed = try ChildProcess(
      Command.path, ["import", tree, store].map { Array($0.utf8) })
    let limit = ContinuousClock.now + .seconds(60)
    while !directory.exists("store/MANIFEST"), !directory.exists("store/LOCK") {
      try #require(ContinuousClock.now < limit, "no store was begun")
    }
    killed.send(SIGKILL)
    _ = try killed.wait()
    #expect(try cairn("import", tree, store).status == 0)
    #expect(try cairn("verify", store).status == 0)
    #expect(try cairn("export", store, out).status == 0)
    #expect(try differences(tree, out).isEmpty)
  }

  @Test func `a file that cannot be a value is named, and the others go on`() throws {
    try directory.makeSparseFile("tree/huge", byteCount: 1 << 30 + 1)
    try directory.makeFile("tree/small", [1])
    let outcome = try cairn("import", tree, store)
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: import: huge: "))
    #expect(try keys() == [Array("small".utf8)])
  }

  @Test func `a path that is too long for a key is named, and the others go on`() throws {
    let deep = try TemporaryDirectory()
    try deep.makeChain(String(repeating: "d", count: 250), depth: 262, leaf: [1])
    try deep.makeFile("small", [1])
    let outcome = try cairn("import", deep.path, store)
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: import: ddd"))
    #expect(outcome.errors.contains("/leaf: "))
    #expect(try keys() == [Array("small".utf8)])
  }

  @Test func `names are percent-decoded on demand`() throws {
    for name in ["http%3A%2F%2Fa%2eb", "100%", "%zz"] {
      try directory.makeFile("tree/\(name)", Array(name.utf8))
    }
    #expect(try importTree("--decode", "percent").files == 3)
    #expect(try keys() == ["%zz", "100%", "http://a.b"].map { Array($0.utf8) })
  }

  @Test func `two files that decode to one key are an error`() throws {
    try directory.makeFile("tree/a", [1])
    try directory.makeFile("tree/%61", [2])
    let outcome = try cairn("import", tree, store, "--decode", "percent")
    #expect(outcome.status == 5)
    #expect(outcome.errors.contains("cairn: import: a: "))
    #expect(try cairn("get", store, "a").output == [2])
  }

  @Test func `an empty directory and an encoded file of one key are an error`() throws {
    for name in ["tree/.cairn-encoded", "tree/a", "tree/b"] { try directory.makeDirectory(name) }
    try directory.makeFile("tree/.cairn-encoded/a%2F", [1])
    let outcome = try cairn("import", tree, store)
    #expect(outcome.status == 5)
    #expect(outcome.errors.contains("another file has the same decoded key"))
    #expect(try keys() == ["a/", "b/"].map { Array($0.utf8) })
  }

  @Test func `the store's own directory is left out`() throws {
    try directory.makeFile("tree/file", [1])
    let inner = directory("tree/inner")
    let outcome = try cairn("import", tree, inner)
    #expect(outcome.status == 0)
    #expect(outcome.errors == "cairn: import: inner: skipped: the store itself\n")
    #expect(try cairn("keys", inner).text == "file\n")
  }

  @Test func `a directory inside the store is refused`() throws {
    try cairn("put", store, "key", "value")
    #expect(try cairn("import", store, store).status == 5)
    #expect(try cairn("export", store, store + "/out").status == 5)
    #expect(try cairn("keys", store).text == "key\n")
    #expect(!directory.exists("store/out"))
  }

  @Test func `a directory that is not there makes no store`() throws {
    let outcome = try cairn("import", directory("nowhere"), store)
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: import: \(directory("nowhere")): "))
    #expect(!directory.exists("store"))
  }

  // MARK: - Export

  /// Keys that can exist in one store. At least one is not a path.
  struct OddKeys: CustomTestStringConvertible, Sendable {
    let names: [String]
    init(_ names: String...) { self.names = names }
    var testDescription: String { names.map { String($0.prefix(20)) }.joined(separator: ", ") }
  }

  @Test(arguments: [
    OddKeys("/abs"), OddKeys("../up"), OddKeys(".."), OddKeys("a", "a/b"),
    OddKeys("a", "a/b", "a/b/c"), OddKeys("x//y"), OddKeys("zero\0byte"), OddKeys("value/"),
    OddKeys(".cairn-encoded"), OddKeys(".cairn-encoded/a", ".cairn-encoded/%2E", "."),
    OddKeys(String(repeating: "x", count: 300)),
    OddKeys("x" + String(repeating: "/", count: 65_534)),
    OddKeys(String(repeating: "x", count: 400), String(repeating: "x", count: 401)),
  ])
  func `keys that are no paths are encoded and come back`(odd: OddKeys) throws {
    let keys = odd.names.map { Array($0.utf8) }
    let open = try Store(path: store)
    for key in keys { try open.setValue("value", forKey: key) }
    try open.close()
    let outcome = try cairn("export", store, out, "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
    #expect(report.files == keys.count)
    #expect(try #require(report.encodedKeys) > 0)
    let second = directory("second")
    #expect(try cairn("import", out, second).status == 0)
    let copy = try Store(readingAt: second)
    #expect(try copy.count() == keys.count)
    for key in keys { #expect(try copy.value(forKey: key) == Array("value".utf8)) }
    try copy.close()
  }

  @Test func `nothing is written outside the directory`() throws {
    let open = try Store(path: store)
    for key in ["../escaped", "/tmp/../escaped", "a/../../escaped"] {
      try open.setValue("value", forKey: key)
    }
    try open.close()
    #expect(try cairn("export", store, out).status == 0)
    #expect(!directory.exists("escaped"))
  }

  @Test func `export through a link is refused`() throws {
    try cairn("put", store, "key", "value")
    try directory.makeLink("out", to: tree)
    for path in [out, out + "/"] {
      let outcome = try cairn("export", store, path)
      #expect(outcome.status == 5)
      #expect(outcome.errors.hasPrefix("cairn: export: "))
    }
    #expect(!directory.exists("tree/key"))
  }

  @Test func `export to a directory that is not empty is refused`() throws {
    try cairn("put", store, "key", "value")
    try directory.makeFile("tree/file", [1])
    let outcome = try cairn("export", store, tree)
    #expect(outcome.status == 5)
    #expect(
      outcome.errors
        == "cairn: export: \(tree): the directory is not empty; give an empty or missing one\n")
    #expect(!directory.exists("tree/key"))
  }

  @Test func `export to an empty directory is fine`() throws {
    try cairn("put", store, "key", "value")
    #expect(try cairn("export", store, tree).status == 0)
    #expect(try directory.contents("tree/key") == Array("value".utf8))
  }

  @Test func `expired keys are not exported`() throws {
    let open = try Store(path: store)
    try open.setValue("value", forKey: "expired", lifetime: .seconds(0))
    try open.setValue("value", forKey: "live", lifetime: .seconds(1000))
    try open.close()
    #expect(try cairn("export", store, out).status == 0)
    #expect(directory.exists("out/live"))
    #expect(!directory.exists("out/expired"))
  }
}

extension RawSpan {
  /// One byte, checked.
  fileprivate subscript(byteAt offset: Int) -> UInt8 {
    // SAFETY: every value of a byte is a valid UInt8; the offset is checked by the call.
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }
}
