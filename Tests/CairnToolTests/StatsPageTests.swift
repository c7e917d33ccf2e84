import Cairn
import FoundationEssentials
import Testing

@Suite("The page of stats")
struct StatsPageTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  private struct Report: Decodable {
    let onDiskBytes, otherBytes, allocatedBytes: Int?
    let bytesBefore, bytesAfter: Int?
  }

  private func report(_ words: String...) throws -> Report {
    let outcome = try cairn(bytes: words.map { Array($0.utf8) })
    #expect(outcome.status == 0)
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  /// What `du` says of the store.
  private func diskUsage() throws -> Int {
    let arguments = ["-s", "--block-size=1", store].map { Array($0.utf8) }
    let outcome = try ChildProcess.run("/usr/bin/du", arguments)
    return try #require(Int(outcome.text.prefix { $0.isNumber }))
  }

  @Test func `on disk is every file of the store`() throws {
    for number in 0..<20 { try cairn("put", store, "key \(number)", "value") }
    let statistics = try report("stats", store, "--json")
    let onDisk = try #require(statistics.onDiskBytes)
    #expect(onDisk == (try diskUsage()))
    let segments = try #require(statistics.allocatedBytes)
    #expect(try #require(statistics.otherBytes) == onDisk - segments)
    let lines = try cairn("stats", store).lines
    #expect(lines.contains { $0.hasPrefix("other ") })
    #expect(lines.contains { $0.hasPrefix("on disk ") && $0.contains(" other files") })
  }

  @Test func `compact reports what stats does`() throws {
    try manySegments(store)
    try removeMany(store, count: 40)
    let before = try #require(try report("stats", store, "--json").onDiskBytes)
    let compaction = try report("compact", store, "--json")
    let after = try #require(try report("stats", store, "--json").onDiskBytes)
    #expect(compaction.bytesBefore == before)
    #expect(compaction.bytesAfter == after)
    #expect(after == (try diskUsage()))
  }
}
