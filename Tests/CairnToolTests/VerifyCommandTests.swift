import CairnEssentials
import Testing

@Suite("verify")
struct VerifyCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    for name in ["a", "b"] { try cairn("put", store, name, "a value of \(name)") }
  }

  private func damage(_ value: String) throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/\(name)")
      guard let place = bytes.firstRange(of: Array(value.utf8)) else { continue }
      bytes[place.lowerBound] ^= 1
      try directory.makeFile("store/\(name)", bytes)
    }
  }

  private struct Report: Decodable {
    struct Place: Decodable {
      struct Key: Decodable { let key: String }
      let file, cause: String
      let offset: Int
      let keyCount: Int?
      let keys: [Key]
    }
    let records, bytes, tornBytes: Int
    let damage: [Place]
  }

  @Test func `a sound store has no damage, at any rate`() throws {
    for rate in [[], ["--rate", "10M"], ["--rate=1000000"], ["--rate", "1.5 MiB"]] {
      let outcome = try cairn(bytes: (["verify", store] + rate).map { Array($0.utf8) })
      #expect(outcome.status == 0)
      #expect(outcome.text.hasPrefix("2 sound records, "))
      #expect(outcome.text.hasSuffix("read, no damage\n"))
    }
  }

  @Test func `the rate limits how fast the files are read`() throws {
    try manySegments(directory("large"))
    let start = ContinuousClock.now
    #expect(try cairn("verify", directory("large"), "--rate", "40M").status == 0)
    // 48 MB at this rate; no pause follows the last megabyte.
    #expect(ContinuousClock.now - start > .seconds(1))
  }

  @Test func `a damaged value is told with its key, and the status is 3`() throws {
    try damage("a value of b")
    let outcome = try cairn("verify", store)
    #expect(outcome.status == 3)
    #expect(outcome.lines[0].hasSuffix("the value does not match its checksum; key b"))
    #expect(outcome.errors.contains("the store is damaged: 1 place"))
    let json = try cairn("verify", store, "--json", "--rate", "10M")
    #expect(json.status == 3)
    let report = try JSONDecoder().decode(Report.self, from: Data(json.output))
    #expect(report.records == 1 && report.bytes > 0 && report.tornBytes == 0)
    #expect(report.damage.map(\.cause) == ["badValue"])
    #expect(report.damage.flatMap { $0.keys.map(\.key) } == ["b"])
    #expect(report.damage.map(\.keyCount) == [1])
  }

  @Test(arguments: ["0", "-1", "fast", ""])
  func `a rate that is none exits 2`(rate: String) throws {
    #expect(try cairn("verify", store, "--rate=\(rate)").status == 2)
  }

  @Test func `nothing is written to the store`() throws {
    let before = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    try cairn("verify", store)
    #expect(try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines == before)
  }
}
