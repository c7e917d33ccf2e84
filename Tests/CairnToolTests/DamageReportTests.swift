import CairnEssentials
import CairnLibC
import Testing

@Suite("What verify and salvage report about a damaged value")
struct DamageReportTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  /// Makes a store of three values and overwrites four bytes of one.
  init() throws {
    directory = try TemporaryDirectory()
    for name in ["a", "b\u{1B}", "c"] {
      try cairn("put", store, name, "a value of \(name)")
    }
    try damage(Array("a value of b\u{1B}".utf8))
  }

  /// Overwrites some bytes that occur once in all segments.
  private func damage(
    _ value: [UInt8], in store: String = "store", count length: Int = 4
  ) throws {
    let names = try ChildProcess.run("/bin/ls", [Array(directory(store).utf8)]).lines
    var count = 0
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("\(store)/\(name)")
      guard let place = bytes.firstRange(of: value) else { continue }
      bytes.replaceSubrange(place.prefix(length), with: [1, 2, 3, 4].prefix(length))
      try directory.makeFile("\(store)/\(name)", bytes)
      count += 1
    }
    try #require(count == 1)
  }

  private struct Place: Decodable {
    let cause: String
    let key: String?
    let keyBase64: Data?
    let keyCount: Int?
    let keys: [Key]?
  }

  private struct Key: Decodable {
    let key: String?
    let keyBase64: Data?
  }

  private struct Report: Decodable {
    let records: Int?
    let entries: Int?
    let damage, losses: [Place]?
  }

  private func report(_ words: String...) throws -> Report {
    let outcome = try cairn(bytes: words.map { Array($0.utf8) })
    #expect(outcome.status == 3)
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  @Test func `verify counts as sound what get and salvage find sound`() throws {
    #expect(try report("verify", store, "--json").records == 2)
    #expect(try cairn("verify", store).text.contains("\n2 sound records, "))
    #expect(try report("salvage", store, directory("out"), "--json").entries == 2)
  }

  @Test func `verify names the key of a damaged value`() throws {
    #expect(try cairn("verify", store).lines[0].hasSuffix("; key b\\x1B"))
    let damage = try #require(try report("verify", store, "--json").damage)
    #expect(damage.map { $0.keys?.map(\.key) } == [["b\u{1B}"]])
  }

  @Test func `verify says whether a damaged value still counts`() throws {
    #expect(try report("verify", store, "--json").damage?.map(\.keyCount) == [1])
    try cairn("put", store, "b\u{1B}", "another value")
    let verified = try cairn("verify", store)
    #expect(verified.status == 3)
    #expect(verified.lines[0].hasSuffix("; key b\\x1B, which was rewritten or removed since"))
    #expect(verified.errors.contains("no value is lost"))
    #expect(try report("verify", store, "--json").damage?.map(\.keyCount) == [0])
    try cairn("compact", store)
    #expect(try cairn("verify", store).status == 0)
  }

  @Test func `salvage names the key of a damaged value`() throws {
    #expect(try cairn("salvage", store, directory("out")).lines[0].hasSuffix("; key b\\x1B"))
    let report = try report("salvage", store, directory("other"), "--json")
    #expect(try #require(report.losses).map(\.key) == ["b\u{1B}"])
  }

  @Test func `a key that is not UTF-8 is base64 in JSON`() throws {
    let key: [UInt8] = [0x66, 0xFF]
    try cairn(bytes: [Array("put".utf8), Array(store.utf8), key, Array("another value".utf8)])
    try damage(Array("another value".utf8))
    let damage = try #require(try report("verify", store, "--json").damage)
    #expect(damage.last?.keys?.map(\.keyBase64) == [Data(key)])
    let losses = try #require(try report("salvage", store, directory("out"), "--json").losses)
    #expect(losses.contains { $0.keyBase64 == Data(key) })
  }

  @Test func `what is sound is listed, counted and exported where a record does not tell its key`()
    throws
  {
    // Enough for the close to make a checkpoint: no open then reads the records.
    try directory.makeDirectory("in")
    for number in 0..<30 { try directory.makeFile("in/\(number)", Array("value \(number).".utf8)) }
    let store = directory("other")
    try cairn("import", directory("in"), store)
    try damage(Array("7value 7.".utf8), in: "other", count: 1)
    let keys = try cairn("keys", store)
    #expect(keys.status == 3)
    let whole = (0..<30).filter { $0 != 7 }.map { "\($0)" }.sorted()
    #expect(keys.lines.sorted() == whole)
    #expect(keys.errors.contains("corrupt: seg-"))
    let stats = try cairn("stats", store)
    #expect(stats.status == 0)
    #expect(stats.text.hasPrefix("keys              30 "))
    let export = try cairn("export", store, directory("tree"))
    #expect(export.status == 3)
    #expect(try directory.contents("tree/8") == Array("value 8.".utf8))
    #expect(export.text.contains("exported 29 files") && export.text.contains("1 error"))
    // Once the key is removed, the store is sound again.
    #expect(try cairn("delete", store, "7").status == 0)
    #expect(try cairn("keys", store).status == 0)
  }

  @Test func `a key comes back from an export that misses the keys below it`() throws {
    let (store, copy) = (directory("other"), directory("copy"))
    for key in ["a", "a/b", "a/b/c", "d", "d/e", "f", "f/g"] {
      try cairn("put", store, key, "a value of \(key).")
    }
    for key in ["a/b/c", "d/e"] { try damage(Array("a value of \(key).".utf8), in: "other") }
    let export = try cairn("export", store, directory("tree"))
    #expect(export.status == 3)
    #expect(export.text.contains("exported 5 files") && export.text.contains("2 errors"))
    #expect(export.text.contains("2 keys encoded"))
    for key in ["a/b", "d"] {
      #expect(try directory.contents("tree/" + key) == Array("a value of \(key).".utf8))
    }
    #expect(try cairn("import", directory("tree"), copy).status == 0)
    #expect(try cairn("keys", copy).lines.sorted() == ["a", "a/b", "d", "f", "f/g"])
    for key in ["a", "f"] { #expect(try cairn("get", copy, key).text == "a value of \(key).") }
  }

  @Test func `a damaged checkpoint is no reason for a salvage`() throws {
    try directory.makeDirectory("in")
    for number in 0..<30 { try directory.makeFile("in/\(number)", [UInt8(number)]) }
    let store = directory("other")
    try cairn("import", directory("in"), store)
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    let name = try #require(names.first { $0.hasPrefix("ckpt-") })
    var bytes = try directory.contents("other/" + name)
    bytes[100] ^= 1
    try directory.makeFile("other/" + name, bytes)
    let outcome = try cairn("verify", store)
    #expect(outcome.status == 3)
    #expect(outcome.errors.contains("only the checkpoint is damaged: no value is lost"))
    #expect(!outcome.errors.contains("salvage"))
    try cairn("put", store, "new", "value")
    #expect(try cairn("verify", store).status == 0)
  }

  @Test func `salvage does not count what nobody can know`() throws {
    let name = try #require(
      ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines.first { $0.hasPrefix("seg-") })
    try directory.makeFile("store/" + name, [])
    let outcome = try cairn("salvage", store, directory("out"))
    #expect(outcome.status == 3)
    #expect(!outcome.text.contains("0 known keys"))
    try cairn("put", directory("whole"), "a", "1")
    try directory.makeFile("whole/MANIFEST", [1, 2, 3])
    let whole = try cairn("salvage", directory("whole"), directory("copy"))
    #expect(whole.status == 3)
    #expect(whole.text.contains("salvaged 1 entry"))
    #expect(whole.text.contains("no known data was lost"))
  }

  @Test func `who lacks only LOCK is told how to put it back`() throws {
    _ = try ChildProcess.run("/bin/rm", [Array(directory("store/LOCK").utf8)])
    #expect(try cairn("verify", store).errors.contains("touch \(store)/LOCK"))
    try directory.makeFile("store/LOCK", [])
    #expect(try cairn("get", store, "a").status == 0)
  }
}
