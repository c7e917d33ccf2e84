import FoundationEssentials
import Testing

@Suite("What verify and salvage say of a damaged value")
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

  private func damage(_ value: [UInt8]) throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    var count = 0
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/" + name)
      guard let place = bytes.firstRange(of: value) else { continue }
      bytes.replaceSubrange(place.prefix(4), with: [1, 2, 3, 4])
      try directory.makeFile("store/" + name, bytes)
      count += 1
    }
    try #require(count == 1)
  }

  private struct Place: Decodable {
    let cause: String
    let key: String?
    let keyBase64: Data?
  }

  private struct Report: Decodable {
    let records: Int?
    let entries: Int?
    let errors, losses: [Place]?
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
    let errors = try #require(try report("verify", store, "--json").errors)
    #expect(errors.map(\.key) == ["b\u{1B}"])
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
    let errors = try #require(try report("verify", store, "--json").errors)
    #expect(errors.last?.keyBase64 == Data(key))
    let losses = try #require(try report("salvage", store, directory("out"), "--json").losses)
    #expect(losses.contains { $0.keyBase64 == Data(key) })
  }
}
