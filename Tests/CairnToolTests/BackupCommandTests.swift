import CairnEssentials
import Testing

@Suite("backup")
struct BackupCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }
  var copy: String { directory("copy") }

  init() throws {
    directory = try TemporaryDirectory()
    for key in ["a", "b", "c"] { try cairn("put", store, key, "value of \(key)") }
    try cairn("delete", store, "b")
  }

  private struct Report: Decodable, Equatable {
    struct Damage: Decodable, Equatable {
      let key: String
    }
    let entries, segments: Int
    let damagedValues: [Damage]
  }

  @Test func `the copy holds the same, and the store is as it was`() throws {
    let outcome = try cairn("backup", store, copy, "--json")
    #expect(outcome.status == 0)
    #expect(outcome.errors.isEmpty)
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
    #expect(report == Report(entries: 2, segments: 1, damagedValues: []))
    for path in [store, copy] {
      #expect(try cairn("keys", path).lines == ["a", "c"])
      #expect(try cairn("get", path, "c").text == "value of c")
      #expect(try cairn("verify", path).status == 0)
    }
    try cairn("put", copy, "d", "only here")
    #expect(try cairn("get", store, "d").status == 1)
  }

  @Test func `an earlier backup is renewed, and nothing else is written over`() throws {
    #expect(try cairn("backup", store, copy).status == 0)
    let outcome = try cairn("backup", store, copy)
    #expect(outcome.status == 0 && outcome.lines == ["the backup has 2 entries; copied 0 bytes"])
    let other = directory("other")
    try cairn("put", other, "b", "value")
    #expect(try cairn("backup", store, other).status == 5)
    #expect(try cairn("backup", store, store + "/inside").status == 5)
    #expect(try cairn("backup", directory("none"), copy).status == 5)
    #expect(try cairn("keys", copy).lines == ["a", "c"])
  }

  @Test func `a damaged value exits 3 and costs its key alone`() throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/" + name)
      guard let place = bytes.firstRange(of: Array("value of a".utf8)) else { continue }
      bytes[place.lowerBound] ^= 1
      try directory.makeFile("store/" + name, bytes)
    }
    let outcome = try cairn("backup", store, copy)
    #expect(outcome.status == 3)
    #expect(outcome.lines[0].hasPrefix("damaged: seg-"))
    #expect(outcome.lines[0].hasSuffix("; key a"))
    let other = try cairn("backup", store, directory("other"), "--json")
    let report = try JSONDecoder().decode(Report.self, from: Data(other.output))
    #expect(report.damagedValues == [Report.Damage(key: "a")])
    #expect(try cairn("get", copy, "a").status == 3)
    #expect(try cairn("get", copy, "c").text == "value of c")
  }
}
