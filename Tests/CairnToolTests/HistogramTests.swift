import Cairn
import CairnEssentials
import Testing

@Suite("Histograms of stats")
struct HistogramTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    let open = try Store(path: store)
    for (count, byteCount) in [(3, 0), (2, 63), (1, 64), (12, 5000), (1, 70_000)] {
      for number in 0..<count {
        try open.setValue([UInt8](repeating: 1, count: byteCount), forKey: "\(byteCount) \(number)")
      }
    }
    try open.close()
  }

  private struct Report: Decodable {
    struct Range: Decodable {
      let below: Int?
      let keys: Int
    }
    let valueSizes, ages: [Range]?
  }

  private func report(_ options: String...) throws -> Report {
    let words = ["stats", store, "--json"] + options
    let outcome = try cairn(bytes: words.map { Array($0.utf8) })
    #expect(outcome.status == 0)
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  @Test func `every key is counted by its size and its age`() throws {
    let report = try report("--histograms")
    let sizes = try #require(report.valueSizes)
    #expect(sizes.map(\.below) == (3...14).map { 1 << (2 * $0) } + [nil])
    #expect(sizes.filter { $0.keys > 0 }.map(\.below) == [64, 256, 16_384, 262_144])
    #expect(sizes.filter { $0.keys > 0 }.map(\.keys) == [5, 1, 12, 1])
    let ages = try #require(report.ages)
    #expect(ages.map(\.below) == [60, 3600, 86_400, 604_800, 2_592_000, 31_536_000, nil])
    #expect(ages.reduce(0) { $0 + $1.keys } == 19 && ages[2...].allSatisfy { $0.keys == 0 })
    #expect(try self.report().valueSizes == nil)
  }

  @Test func `a page has a bar for each range, the longest for the most keys`() throws {
    let lines = try cairn("stats", store, "--histograms").text
      .split(separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0.hasPrefix("value size") })
    let rows = lines[(start + 1)...].prefix { !$0.isEmpty }
    let labels = [
      "below 64 B", "below 256 B", "below 1 KiB", "below 4 KiB", "below 16 KiB", "below 64 KiB",
      "below 256 KiB",
    ]
    #expect(zip(rows, labels).allSatisfy { $0.hasPrefix($1 + " ") } && rows.count == labels.count)
    let bars = rows.map { row in row.count { $0 == "#" } }
    #expect(bars.map { $0 > 0 } == [true, true, false, false, true, false, true])
    #expect(bars.max() == bars[4] && bars[4] >= 40 && abs(bars[0] * 12 - bars[4] * 5) <= 12)
    #expect(rows.allSatisfy { $0.count <= 80 && $0.contains(" %") })
    #expect(lines.contains { $0.hasPrefix("age ") })
    #expect(!(try cairn("stats", store).text.contains("value size")))
  }

  @Test func `damage is told, and the rest is counted`() throws {
    try damagedKey()
    let outcome = try cairn("stats", store, "--histograms", "--json")
    #expect(outcome.status == 3)
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
    #expect(report.valueSizes?.reduce(0) { $0 + $1.keys } == 18)
  }

  /// Changes a byte of the key of one record.
  private func damagedKey() throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/\(name)")
      guard let place = bytes.firstRange(of: Array("70000 0".utf8)) else { continue }
      bytes[place.lowerBound] = 0
      try directory.makeFile("store/\(name)", bytes)
    }
  }
}
