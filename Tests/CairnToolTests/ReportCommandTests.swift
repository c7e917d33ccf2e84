import CairnEssentials
import Testing

@Suite("keys, stats and verify")
struct ReportCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  @Test func `keys are in the order of their bytes`() throws {
    for key in ["b", "a!", "a", "a/b", "é", "Z"] { try cairn("put", store, key, "value") }
    #expect(try cairn("keys", store).lines == ["Z", "a", "a!", "a/b", "b", "é"])
  }

  @Test func `a prefix selects keys`() throws {
    for key in ["a", "ab", "abc", "b"] { try cairn("put", store, key, "value") }
    #expect(try cairn("keys", store, "--prefix", "ab").lines == ["ab", "abc"])
    #expect(try cairn("keys", store, "--prefix=zz").output.isEmpty)
  }

  @Test(arguments: ["9223372036854775807", "-9223372036854775808"])
  func `no length and no time of a file traps`(seconds: String) throws {
    // In memory, files may have any.
    let directory = try TemporaryDirectory(in: "/dev/shm")
    let store = directory("store")
    try cairn("put", store, "key", "value")
    for name in ["seg-a", "seg-b"] {
      try directory.makeSparseFile("store/\(name)", byteCount: .max)
    }
    try directory.makeFile("store/ckpt-a", [1])
    try directory.makeDirectory("tree")
    try directory.makeFile("tree/a", [1])
    let files = ["store/ckpt-a", "tree/a"].map { Array(directory($0).utf8) }
    let words = ["-m", "-d", "@\(seconds)"].map { Array($0.utf8) }
    try #require(try ChildProcess.run("/usr/bin/touch", words + files).status == 0)
    for command in [
      ["stats", store], ["top", store, "--count", "1"], ["top", store, "--count", "1", "--json"],
      ["compact", store], ["import", directory("tree"), store],
      ["salvage", store, directory("copy")],
    ] {
      let outcome = try cairn(bytes: command.map { Array($0.utf8) })
      #expect(outcome.status == 0, "\(command[0]): \(outcome.errors)")
    }
  }

  @Test func `a key stays on its line`() throws {
    try cairn("put", store, "back\\slash\nnew\u{9B}line", "value")
    #expect(try cairn("keys", store).text == "back\\\\slash\\x0Anew\\xC2\\x9Bline\n")
  }

  @Test func `the long form tells size, times and key`() throws {
    try cairn("put", store, "a", "four")
    try cairn("put", store, "b", "", "--ttl", "1000")
    let rows = try cairn("keys", store, "--long").lines.map { line in
      line.split(separator: "\t").map(String.init)
    }
    try #require(rows.count == 2 && rows.allSatisfy { $0.count == 4 })
    #expect(rows[0][0] == "4" && rows[0][2] == "-" && rows[0][3] == "a")
    #expect(rows[1][0] == "0" && rows[1][3] == "b")
    let written = try Date(rows[1][1], strategy: .iso8601)
    let expires = try Date(
      rows[1][2].count > 20 ? String(rows[1][2].prefix(19)) + "Z" : rows[1][2], strategy: .iso8601)
    #expect(abs(written.timeIntervalSinceNow) < 60)
    #expect(abs(expires.timeIntervalSince(written) - 1000) <= 2)
  }

  private struct Key: Decodable {
    let key: String?
    let keyBase64: Data?
    let valueBytes: Int
    let written: String
    let expires: String?
  }

  @Test func `keys as JSON hold every key`() throws {
    let odd: [UInt8] = [0x66, 0xFF]
    try cairn("put", store, "quote\"\\\u{1}\n", "four")
    try cairn(bytes: [Array("put".utf8), Array(store.utf8), odd, Array("v".utf8)])
    try cairn("put", store, "z", "v", "--ttl", "1000")
    let outcome = try cairn("keys", store, "--json")
    let keys = try JSONDecoder().decode([Key].self, from: Data(outcome.output))
    try #require(keys.count == 3)
    #expect(keys[0].keyBase64 == Data(odd))
    #expect(keys[1].key == "quote\"\\\u{1}\n" && keys[1].valueBytes == 4)
    #expect(keys[1].expires == nil && keys[2].expires != nil)
  }

  @Test func `keys of an empty store are an empty array`() throws {
    try cairn("put", store, "key", "value")
    try cairn("delete", store, "key")
    let outcome = try cairn("keys", store, "--json")
    #expect(try JSONDecoder().decode([Key].self, from: Data(outcome.output)).isEmpty)
  }

  private struct Statistics: Decodable {
    struct Recovery: Decodable {
      let source: String
      let clean: Bool
      let recordsReplayed, tornBytes: Int
      let damagedValues: [Damage]
      let quarantinedFiles: [String]
    }
    let keys, liveBytes, deadBytes, allocatedBytes, segments, tombstones, indexBytes: Int
    let formatVersion: String
    let recovery: Recovery
  }

  private struct Damage: Decodable {
    let file: String
    let offset: Int
    let cause: String
  }

  @Test func `statistics as JSON have every number`() throws {
    try cairn("put", store, "a", "value")
    try cairn("put", store, "b", "value")
    let outcome = try cairn("stats", store, "--json")
    #expect(outcome.status == 0)
    let statistics = try JSONDecoder().decode(Statistics.self, from: Data(outcome.output))
    #expect(statistics.keys == 2)
    #expect(statistics.recovery.clean)
    #expect(statistics.recovery.tornBytes == 0)
    #expect(outcome.lines.count == 1)
  }

  @Test func `statistics for a person name what they count`() throws {
    try cairn("put", store, "a", "value")
    let outcome = try cairn("stats", store)
    #expect(outcome.status == 0)
    for label in ["keys", "live", "dead", "spare", "on disk", "tombstones", "format", "last open"] {
      #expect(outcome.lines.contains { $0.hasPrefix(label + " ") })
    }
    #expect(!outcome.text.contains("cairn compact"))
  }

  @Test func `statistics say what to do about dead bytes and expired keys`() throws {
    try manySegments(store)
    try removeMany(store, count: 40)
    let outcome = try cairn("stats", store)
    #expect(outcome.text.contains("\ncairn compact \(store) reclaims about 38."))
    #expect(outcome.text.contains("\n1 key has expired: cairn trim \(store) --expired removes "))
    #expect(outcome.text.contains("more with fewer dead bytes; --json lists all"))
    #expect(outcome.lines.count < 30)
    #expect(try cairn("compact", store).text.contains(" segments removed, "))
    #expect(!(try cairn("stats", store).text.contains("cairn compact")))
    #expect(try cairn("compact", store).text.hasPrefix("nothing to reclaim"))
    // Last, because a removal may reclaim space in the background before it closes.
    #expect(try cairn("trim", store, "--expired").text.hasPrefix("removed 1 key, "))
  }

  private struct Verification: Decodable {
    let records, bytes, tornBytes: Int
    let damage: [Damage]
  }

  @Test func `verify of a sound store finds no damage`() throws {
    try cairn("put", store, "a", "value")
    let outcome = try cairn("verify", store, "--json")
    #expect(outcome.status == 0)
    let verification = try JSONDecoder().decode(Verification.self, from: Data(outcome.output))
    #expect(verification.records == 1)
    #expect(verification.damage.isEmpty)
    #expect(try cairn("verify", store).status == 0)
  }
}
