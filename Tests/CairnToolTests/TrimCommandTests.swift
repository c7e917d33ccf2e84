import Cairn
import CairnEssentials
import FuzzSupport
import Testing

@Suite("trim")
struct TrimCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    for key in ["c", "a", "b"] { try cairn("put", store, key, "value") }
  }

  // The records: 32 bytes, and 8 more after a sync.
  private struct Report: Decodable, Equatable {
    let removed, removedBytes, damaged: Int
  }

  private func report(_ outcome: ChildProcess.Outcome) throws -> Report {
    #expect(outcome.status == 0)
    #expect(outcome.errors.isEmpty)
    return try JSONDecoder().decode(Report.self, from: Data(outcome.output))
  }

  @Test func `to a count, the first written go`() throws {
    let outcome = try cairn("trim", store, "--count", "2", "--json")
    #expect(try report(outcome) == Report(removed: 1, removedBytes: 32, damaged: 0))
    #expect(try cairn("keys", store).lines == ["a", "b"])
  }

  @Test(.enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func `where the disk is nearly full, what is advised says so`() throws {
    let disk = try TinyDisk(byteCount: 30 << 20)
    let full = disk.path + "/store"
    let value = [UInt8](repeating: 1, count: 1_500_000)
    for number in 0..<10 { try cairn("put", full, "key\(number)", input: value) }
    #expect(
      try cairn("trim", full, "--count", "3").text
        .hasSuffix(
          "; the disk is nearly full: see cairn help compact\n"))
    // Dead values that are spread over all segments stay until a compaction copies the others.
    do {
      let store = try Store(path: full)
      for number in 0..<300 { try store.setValue(value.prefix(20_000), forKey: "small\(number)") }
      for number in 0..<150 { try store.removeValue(forKey: "small\(number * 2)") }
      try store.close()
    }
    #expect(
      try cairn("stats", full).text
        .hasSuffix(" The disk is nearly full: see cairn help compact.\n"))
    for number in 0..<3 { try cairn("put", store, "large\(number)", input: value) }
    #expect(
      try cairn("trim", store, "--count", "1").text.hasSuffix(
        "; cairn compact reclaims the space\n"))
  }

  @Test func `to a size`() throws {
    #expect(
      try cairn("trim", store, "--bytes=40").text
        == "removed 2 keys, 72 bytes\n")
    #expect(try cairn("keys", store).lines == ["b"])
    #expect(try report(cairn("trim", store, "--bytes", "0", "--json")).removed == 1)
    #expect(try report(cairn("trim", store, "--bytes", "0", "--json")).removed == 0)
  }

  @Test func `in the order of use, as the library has it`() throws {
    var configuration = StoreConfiguration()
    // The close writes a checkpoint, which keeps the times of reads.
    configuration.checkpointRecordThreshold = 0
    let open = try Store(path: store, configuration: configuration)
    #expect(try open.value(forKey: "c") != nil)
    try open.setValue("value", forKey: "d")
    try open.close()
    #expect(try report(cairn("trim", store, "--count", "2", "--json")).removed == 2)
    #expect(try cairn("keys", store).lines == ["c", "d"])
    #expect(try report(cairn("trim", store, "--count=1", "--order=lru", "--json")).removed == 1)
    #expect(try cairn("keys", store).lines == ["d"])
  }

  @Test(arguments: ["--count=3", "--bytes=500"])
  func `the largest first`(goal: String) throws {
    try cairn("put", store, "large", input: [UInt8](repeating: 1, count: 1000))
    try cairn("put", store, "last", "value")
    try cairn("delete", store, "a")
    #expect(try report(cairn("trim", store, goal, "--order", "largest", "--json")).removed == 1)
    #expect(try cairn("keys", store).lines == ["b", "c", "last"])
  }

  @Test func `an order is one of two, and of a trim to a number or a size`() throws {
    let wrong = try cairn("trim", store, "--count", "2", "--order", "oldest")
    #expect(wrong.status == 2)
    #expect(wrong.errors.contains("--order must be lru or largest, not oldest"))
    for goal in ["--older-than=1d", "--expired"] {
      let outcome = try cairn("trim", store, goal, "--order", "lru")
      #expect(outcome.status == 2)
      #expect(outcome.errors.contains("--order needs --count or --bytes"))
    }
    #expect(try cairn("keys", store).lines == ["a", "b", "c"])
  }

  @Test func `one goal is needed, and no more than one`() throws {
    let two = try cairn("trim", store, "--count", "10", "--bytes", "5")
    #expect(two.status == 2)
    #expect(
      two.errors
        == "cairn: trim: only one of --count and --bytes may be given; see cairn help trim\n")
    let none = try cairn("trim", store)
    #expect(
      none.errors.contains(
        "one of --count, --bytes, --older-than, --unused-for and --expired is needed"))
  }

  @Test func `by age`() throws {
    #expect(try report(cairn("trim", store, "--older-than", "1000", "--json")).removed == 0)
    // Times of writing are accurate to the second.
    var removed = 0
    for _ in 0..<10_000 where removed == 0 {
      removed = try report(cairn("trim", store, "--older-than=0.5", "--json")).removed
    }
    #expect(removed > 0)
  }

  /// Reads `b` and writes another key. The close then writes a checkpoint, which keeps the times of
  /// accesses.
  private func readB() throws {
    var configuration = StoreConfiguration()
    configuration.checkpointRecordThreshold = 0
    let open = try Store(path: store, configuration: configuration)
    #expect(try open.value(forKey: "b") != nil)
    try open.setValue("new", forKey: "new")
    try open.close()
  }

  @Test func `what was read lately is old, but not unused`() async throws {
    try readB()
    try await Task.sleep(for: .seconds(3))
    try readB()
    #expect(try report(cairn("trim", store, "--unused-for", "1.5", "--json")).removed == 2)
    #expect(try cairn("keys", store).lines == ["b", "new"])
    #expect(try report(cairn("trim", store, "--older-than", "1.5", "--json")).removed == 1)
    #expect(try cairn("keys", store).lines == ["new"])
  }

  @Test func `what has expired`() throws {
    #expect(try report(cairn("trim", store, "--expired", "--json")).removed == 0)
    try cairn("put", store, "short", "value", "--ttl", "0.001")
    #expect(try report(cairn("trim", store, "--expired", "--json")).removed == 1)
    #expect(try cairn("keys", store).lines == ["a", "b", "c"])
  }

  @Test func `a damaged value goes as any other`() throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      var bytes = try directory.contents("store/" + name)
      guard let place = bytes.firstRange(of: Array("avalue".utf8)) else { continue }
      bytes[place.lowerBound + 1] ^= 1
      try directory.makeFile("store/" + name, bytes)
    }
    let outcome = try cairn("trim", store, "--count", "0", "--json")
    #expect(try report(outcome) == Report(removed: 3, removedBytes: 112, damaged: 0))
  }
}
