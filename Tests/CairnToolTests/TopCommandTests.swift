import Cairn
import CairnEssentials
import CairnLibC
import Dispatch
import Synchronization
import Testing

@Suite("The live page of a store")
struct TopCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws { directory = try TemporaryDirectory() }

  private struct Sample: Decodable {
    struct Segment: Decodable {
      let id, liveBytes, deadBytes, bytes: Int
      let sealed: Bool
    }

    let time: String
    let keys, liveBytes, deadBytes, logBytes, onDiskBytes, lastVersion: Int
    let writesPerSecond, checkpointAgeSeconds, processID: Int?
    let segmentList: [Segment]
  }

  private func samples(_ words: String...) throws -> [Sample] {
    let outcome = try cairn(
      bytes: (["top", store, "--json", "--interval", "0.1"] + words).map { Array($0.utf8) })
    #expect(outcome.status == 0, "\(outcome.errors)")
    return try outcome.lines.map { try JSONDecoder().decode(Sample.self, from: Data($0.utf8)) }
  }

  /// An open store of segments, some of which are partly dead.
  private func openStore() throws -> Store {
    var configuration = StoreConfiguration()
    configuration.segmentByteLimit = 256 << 10
    configuration.durability = .process
    configuration.log = .silent
    // Dead bytes are not reclaimed.
    configuration.deadByteFloor = 1 << 40
    let store = try Store(path: store, configuration: configuration)
    // Half of each segment is dead, so that no segment is removed as a whole.
    for number in Array(0..<600) + stride(from: 0, to: 600, by: 2) {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key \(number)")
    }
    return store
  }

  @Test func `it shows what another process writes meanwhile`() throws {
    let open = try openStore()
    let isOver = Atomic(false)
    let hasBegun = DispatchSemaphore(value: 0)
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) {
      var number = 0
      while !isOver.load(ordering: .acquiring) {
        do { try open.setValue("value", forKey: "new \(number % 300)") } catch {
          Issue.record("\(error)")
        }
        number += 1
        if number == 1 { hasBegun.signal() }
      }
    }
    defer { group.wait() }
    defer { isOver.store(true, ordering: .releasing) }
    hasBegun.wait()
    let found = try samples("--count", "8")
    #expect(found.count == 8)
    #expect(found[0].writesPerSecond == nil)
    #expect(found[1...].contains { ($0.writesPerSecond ?? 0) > 0 })
    #expect(zip(found, found.dropFirst()).allSatisfy { $0.lastVersion <= $1.lastVersion })
    #expect(found[0].lastVersion > 900 && found[0].lastVersion < found[7].lastVersion)
    for sample in found {
      #expect((600...900).contains(sample.keys))
      #expect(sample.processID == Int(getpid()))
      #expect(sample.segmentList.count > 1)
      #expect(sample.segmentList.reduce(0) { $0 + $1.bytes } == sample.logBytes)
      #expect(sample.segmentList.reduce(0) { $0 + $1.liveBytes } == sample.liveBytes)
      #expect(sample.segmentList.reduce(0) { $0 + $1.deadBytes } == sample.deadBytes)
      #expect(sample.deadBytes > 300_000 && sample.onDiskBytes > 0)
      #expect(sample.time.hasPrefix("2") && sample.time.hasSuffix("Z"))
    }
  }

  @Test func `a store that nobody has open stands still, with the age of its checkpoint`() throws {
    let open = try openStore()
    try open.close()
    let found = try samples("--count", "2")
    #expect(found.map(\.writesPerSecond) == [nil, 0])
    #expect(found.allSatisfy { $0.processID == nil && $0.keys == 600 })
    #expect(found.allSatisfy { (0..<300).contains($0.checkpointAgeSeconds ?? -1) })
    // Nothing was locked, and nothing written.
    #expect(try cairn("put", store, "key", "value").status == 0)
    let outcome = try cairn("top", store, "--count", "1")
    #expect(
      outcome.text.wholeMatch(
        of: /601 keys, \S+ KiB live, \S+ KiB dead, log \S+ KiB, - writes\/s, checkpoint \d+ s old\n/
      )
        != nil, "\(outcome.text)")
  }

  @Test func `without a store it says so`() throws {
    let outcome = try cairn("top", store)
    #expect(outcome.status == 5)
    #expect(outcome.errors.hasPrefix("cairn: top: \(store): there is no store at this path"))
    #expect(!directory.exists("store"))
  }

  @Test(arguments: [40, 60, 80, 200])
  func `a page fits the terminal, and its bars are as wide`(columns: Int) throws {
    let open = try openStore()
    let (text, status) = try PseudoTerminal(columns: columns).run(
      ["top", store, "--count", "2", "--interval", "0.05"])
    #expect(status == 0)
    let frames = text.split(separator: "\u{1B}[H", omittingEmptySubsequences: false)
    #expect(frames.count == 3)
    #expect(frames[0] == "\u{1B}[?1049h\u{1B}[?25l")
    let end = try #require(frames[2].firstRange(of: "\u{1B}[?25h\u{1B}[?1049l"))
    #expect(frames[1].hasSuffix("\u{1B}[J") && frames[2][..<end.lowerBound].hasSuffix("\u{1B}[J"))
    // The last page stays.
    let lines = frames[2][end.upperBound...].split(separator: "\r\n").map(String.init)
    let drawn = frames[2][..<end.lowerBound].split(separator: "\u{1B}[K\r\n").map(String.init)
    #expect(drawn.dropLast() == lines[...])
    #expect(lines.allSatisfy { $0.count < columns && !$0.contains("\u{1B}") })
    for label in ["keys", "live", "dead", "log", "on disk", "writes", "checkpoint"] {
      #expect(lines.contains { $0.hasPrefix(label + " ") }, "\(label)")
    }
    #expect(lines[1].hasPrefix("open in process \(getpid()) (".prefix(columns - 1)))
    let bars = lines.filter { $0.contains("#") || $0.contains("--") }
    #expect(bars.count == (try open.statistics()).segmentCount)
    // The longest segment has the whole width.
    #expect(bars.map(\.count).max() ?? 0 >= columns - 2)
    #expect(bars.contains { $0.contains("-") && $0.contains("#") })
    try open.close()
  }

  @Test func `an interruption gives the terminal its screen back`() throws {
    let open = try openStore()
    let (text, status) = try PseudoTerminal(columns: 80).run(
      ["top", store, "--interval", "1000"], interruptedWhen: { $0.contains("\u{1B}[J") })
    #expect(status & 0x7F == SIGINT)
    let end = try #require(text.firstRange(of: "\u{1B}[J\u{1B}[?25h\u{1B}[?1049l"))
    #expect(text[end.upperBound...].hasPrefix(store.prefix(79)))
    #expect(!text[end.upperBound...].contains("\u{1B}"))
    try open.close()
  }
}
