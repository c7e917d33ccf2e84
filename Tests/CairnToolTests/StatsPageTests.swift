import Cairn
import CairnEssentials
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

  /// What `du` reports about the store.
  private func diskUsage() throws -> Int {
    let arguments = ["-s", "--block-size=1", store].map { Array($0.utf8) }
    let outcome = try ChildProcess.run("/usr/bin/du", arguments)
    return try #require(Int(outcome.text.prefix { $0.isNumber }))
  }

  /// The whole percentages on a page, and whether some are below one.
  private func percents(_ lines: [String]) -> (shown: Int, isRounded: Bool) {
    var sum = 0
    var isRounded = false
    for line in lines {
      let words = line.split(separator: " ")
      for (word, next) in zip(words, words.dropFirst()) where next == "%" {
        isRounded = isRounded || word == "<1"
        sum += Int(word) ?? 0
      }
    }
    return (sum, isRounded)
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

  @Test func `shares add up to 100`() throws {
    for (live, dead) in [(3, 1), (1, 3), (1, 0), (20, 20), (37, 11)] {
      let path = directory("store \(live) \(dead)")
      let open = try Store(path: path)
      let value = [UInt8](repeating: 1, count: 20_000)
      for number in 0..<live + dead { try open.setValue(value, forKey: "key \(number)") }
      for number in 0..<dead { _ = try open.removeValue(forKey: "key \(number)") }
      try open.close()
      let lines = try cairn("stats", path).lines.prefix { !$0.isEmpty }
      let (shown, isRounded) = percents(Array(lines))
      #expect(isRounded ? (99...100).contains(shown) : shown == 100, "\(lines)")
    }
  }

  @Test func `segments without dead bytes are counted, not listed`() throws {
    try manySegments(store)
    let sound = try cairn("stats", store)
    #expect(!sound.text.contains("\nsegment "))
    try removeMany(store, count: 3)
    let page = try cairn("stats", store).lines
    let start = try #require(page.firstIndex { $0.hasPrefix("segment ") })
    let rows = page[(start + 1)...].prefix { $0.first?.isNumber == true }
    #expect((1...6).contains(rows.count), "\(page)")
    #expect(!rows.contains { $0.contains("<1 %") }, "\(page)")
    #expect(
      page[start + 1 + rows.count].hasSuffix(
        " others with almost no dead bytes; --json lists all"))
  }

  @Test func `the hints can be pasted`() throws {
    try manySegments(store)
    try removeMany(store, count: 40)
    let text = try cairn("stats", store).text
    #expect(text.contains("\ncairn compact \(store) reclaims about 38."))
    #expect(text.contains("\n1 key has expired: cairn trim \(store) --expired removes "))
  }

  @Test func `a path with spaces is quoted in hints`() throws {
    let path = directory("my store's")
    try manySegments(path)
    try removeMany(path, count: 40)
    #expect(
      try cairn("stats", path).text.contains(
        "\ncairn compact '\(directory("my store"))'\\''s' reclaims about 38."))
  }
}
