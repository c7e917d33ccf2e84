import CairnEssentials
import Testing

@Suite("salvage")
struct SalvageCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }
  var out: String { directory("out") }

  init() throws { directory = try TemporaryDirectory() }

  private struct Report: Decodable {
    struct Loss: Decodable {
      let file, cause: String
      let offset, end: Int
    }
    let entries, bytes, lostKeys, lostBytes, lostPlaces, tornBytes: Int
    let manifest: String
    let complete: Bool
    let losses: [Loss]
    let warnings: [String]
  }

  private func report(_ outcome: ChildProcess.Outcome) throws -> Report {
    #expect(outcome.lines.count == 1)
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  @Test func `a sound store is copied whole and exits 0`() throws {
    try cairn("put", store, "a", "1")
    try cairn("put", store, "b", "2")
    try cairn("delete", store, "a")
    let outcome = try cairn("salvage", store, out)
    #expect(outcome.status == 0)
    #expect(outcome.errors.isEmpty)
    #expect(outcome.text.hasPrefix("salvaged 1 entry, 2 bytes; nothing was lost"))
    #expect(try cairn("keys", out).lines == ["b"])
    #expect(try cairn("get", out, "b").text == "2")
  }

  @Test func `as JSON the report has every number`() throws {
    try cairn("put", store, "a", "1")
    let outcome = try cairn("salvage", store, out, "--json")
    #expect(outcome.status == 0)
    let report = try report(outcome)
    #expect(report.entries == 1 && report.bytes == 2 && report.complete)
    #expect(report.manifest == "used" && report.losses.isEmpty && report.warnings.isEmpty)
  }

  @Test func `a store without its manifest is salvaged, with warnings, and exits 3`() throws {
    try cairn("put", store, "a", "1")
    _ = try ChildProcess.run("/bin/rm", [Array("\(store)/MANIFEST".utf8)])
    let outcome = try cairn("salvage", store, out, "--json")
    #expect(outcome.status == 3)
    let report = try report(outcome)
    #expect(report.manifest == "missing" && report.entries == 1 && !report.complete)
    #expect(report.warnings == ["olderValuesMayBeBack", "removedDataMayBeBack"])
    let told = try cairn("salvage", store, directory("again")).lines.filter {
      $0.hasPrefix("warning: ")
    }
    #expect(told.count == 2 && told.last?.contains("removed entries") == true)
    #expect(try cairn("get", out, "a").text == "1")
  }

  @Test func `a destination with something in it is left alone and exits 5`() throws {
    try cairn("put", store, "a", "1")
    try directory.makeDirectory("out")
    try directory.makeFile("out/notes", [1])
    let outcome = try cairn("salvage", store, out)
    #expect(outcome.status == 5)
    #expect(
      outcome.errors
        == "cairn: salvage: \(out): not usable: it is not empty; give a missing or empty directory\n"
    )
    #expect(try directory.contents("out/notes") == [1])
  }

  @Test func `a destination inside the store is refused and not made`() throws {
    try cairn("put", store, "a", "1")
    #expect(try cairn("salvage", store, store + "/copy").status == 5)
    #expect(!directory.exists("store/copy"))
    #expect(try cairn("salvage", store, store).status == 5)
  }
}
