import FuzzSupport
import Synchronization
import Testing

@testable import CairnStore

@Suite("Back-pressure: overwrites wait for compaction, and nothing else does")
struct BackPressureTests {
  let directory: TemporaryDirectory
  let queue = ManualBackgroundQueue()
  let writer = Writer()

  init() throws { directory = try TemporaryDirectory() }

  /// What the test observes of a writer.
  final class Writer: Sendable {
    let sleepCount = Atomic(0)
    let isAsleep = Atomic(false)
    /// Called while the writer sleeps.
    let whileAsleep = Mutex<(@Sendable () -> Void)?>(nil)
    let messages = Mutex<[String]>([])
  }

  private var sleepCount: Int { writer.sleepCount.load(ordering: .relaxed) }

  /// Runs the passes that are due. A resting round does not count as a waiting writer.
  private func runPasses() {
    writer.isAsleep.store(true, ordering: .relaxed)
    queue.runAll()
    writer.isAsleep.store(false, ordering: .relaxed)
  }

  private func count(_ prefix: String) -> Int {
    runPasses()
    return writer.messages.withLock { $0.count { $0.hasPrefix(prefix) } }
  }

  private static let byteCount = 1000
  private static let keyCount = 200

  private func open(asideOperationCount: Int? = nil) throws -> Store {
    try Store(
      path: directory.store,
      configuration: .small {
        if let asideOperationCount { $0.asideOperationCount = asideOperationCount }
        $0.log = DiagnosticLog { [writer] message in
          writer.messages.withLock { $0.append(message.text) }
        }
      },
      environment: Environment(
        fileSystem: SystemFileSystem(), background: queue,
        pause: { [writer] _ in
          if writer.isAsleep.exchange(true, ordering: .relaxed) { return }
          defer { writer.isAsleep.store(false, ordering: .relaxed) }
          writer.sleepCount.add(1, ordering: .relaxed)
          writer.whileAsleep.withLock { $0 }?()
        }), readOnly: false)
  }

  private func write(_ store: Store, _ keys: Range<Int>, round: Int = 0) throws {
    for number in keys {
      try store.setValue(
        [UInt8](repeating: UInt8((number + round) & 255), count: Self.byteCount),
        forKey: "key \(number)")
    }
  }

  /// A store whose last pass found few dead bytes.
  private func filled() throws -> Store {
    let store = try open()
    try write(store, 0..<Self.keyCount)
    runPasses()
    #expect(sleepCount == 0)
    return store
  }

  @Test("Overwriting waits once the log exceeds its bound by half of what the bound allows")
  func waits() throws {
    let store = try filled()
    let allocated = Mutex(0)
    writer.whileAsleep.withLock {
      $0 = { [queue] in
        // Compaction runs only while the writer sleeps.
        allocated.withLock { $0 = max($0, (try? store.usage().allocatedByteCount) ?? .max) }
        queue.runAll()
      }
    }
    for round in 1...20 { try write(store, 0..<Self.keyCount, round: round) }
    #expect(sleepCount > 10)
    let live = try store.usage().liveByteCount
    #expect(allocated.withLock { $0 } <= live * 2 + 4 * 64 << 10)
    let statistics = try store.statistics()
    #expect(statistics.delayedWriteCount > 0 && statistics.writeDelay > .zero)
    #expect(count("overwriting waits for compaction") > 0)
    for number in 0..<Self.keyCount {
      #expect(
        try store.value(forKey: "key \(number)")?.first == UInt8((number + 20) & 255))
    }
    writer.whileAsleep.withLock { $0 = nil }
    try store.close()
  }

  @Test("New keys and removals do not wait")
  func neverWait() throws {
    let store = try filled()
    // More bytes are dead than are allowed, and no pass reclaims them.
    try write(store, 0..<Self.keyCount, round: 1)
    try write(store, 0..<Self.keyCount, round: 2)
    #expect(sleepCount > 0)
    let before = sleepCount
    try write(store, 1000..<1200)
    try store.write { batch in
      for number in 2000..<2200 { try batch.setValue("new", forKey: "key \(number)") }
    }
    for number in 0..<100 { try store.removeValue(forKey: "key \(number)") }
    #expect(sleepCount == before)
    try store.close()
  }

  @Test("If compaction reclaims nothing, writers continue, and this is logged once")
  func noProgress() throws {
    let store = try filled()
    // No sleep starts a pass: compaction hangs.
    for round in 1...10 { try write(store, 0..<Self.keyCount, round: round) }
    // On a fast machine, there are also a few sleeps of a millisecond, to keep to the pace.
    #expect((1000..<1100).contains(sleepCount))
    #expect(count("overwriting no longer waits") == 1)
    try store.close()
  }

  @Test("Only the next large batch waits for what a large batch has replaced")
  func largeBatches() throws {
    let store = try open(asideOperationCount: 50)
    try write(store, 0..<Self.keyCount)
    runPasses()
    writer.whileAsleep.withLock { $0 = { [queue] in queue.runAll() } }
    for round in 1...6 {
      try store.write { batch in
        for number in 0..<Self.keyCount {
          try batch.setValue(
            [UInt8](repeating: UInt8(round), count: Self.byteCount), forKey: "key \(number)")
        }
      }
      let before = sleepCount
      try write(store, 0..<5, round: round)
      #expect(sleepCount == before)
    }
    #expect(sleepCount > 0)
    #expect(try store.value(forKey: "key 100")?.first == 6)
    writer.whileAsleep.withLock { $0 = nil }
    try store.close()
  }

  @Test("A mass removal does not stop writers: as many bytes as are reclaimed may become dead")
  func massRemoval() throws {
    let store = try open()
    try write(store, 0..<2250)
    runPasses()
    for number in 0..<2250 where number % 3 != 0 { try store.removeValue(forKey: "key \(number)") }
    // A pass learns of the excess.
    repeat {
      try #require(queue.runFirst())
    } while store.engine.log.withLock {
      $0.allowance.excess == 0
    }
    writer.whileAsleep.withLock { $0 = { [queue] in _ = queue.runFirst() } }
    var number = 0
    while sleepCount == 0 {
      try #require(number < 2250)
      try write(store, number..<(number + 1), round: 1)
      number += 3
    }
    // The writer continued after one or two rounds of many.
    #expect(try store.statistics().excessByteCount > 0)
    for number in stride(from: 0, to: 2250, by: 3) {
      try write(store, number..<(number + 1), round: 1)
    }
    writer.whileAsleep.withLock { $0 = nil }
    try store.close()
  }

  @Test(
    "After a round in which much was made dead, the next one begins earlier",
    arguments: [(20_000, 100_000), (80_000, 87_456), (200_000, 50_000)])
  func earlyRound(growth: Int, expected: Int) throws {
    let store = try open()
    store.engine.log.withLock {
      $0.allowance.update(reclaimable: 0, allowed: 100_000, limit: 400_000)
      $0.allowance.beginRound()
      _ = $0.allowance.spend(growth)
      $0.allowance.update(
        reclaimable: growth, allowed: 100_000, limit: 400_000, gain: (1, .seconds(1)))
    }
    // Writers wait beyond 247,456 bytes.
    let compactor = store.engine.compactor
    #expect(compactor.excess(garbage: expected, allowed: 100_000, room: .max) == 0)
    #expect(compactor.excess(garbage: expected + 8, allowed: 100_000, room: .max) == 8)
    try store.close()
  }

  @Test("With a limit on disk space, a round begins while there is room for its copies")
  func roundInRoom() throws {
    var configuration = StoreConfiguration()
    configuration.diskByteLimit = 32 << 20
    let compactor = try Store(path: directory.store, configuration: configuration).engine.compactor
    func excess(_ garbage: Int, room: Int) -> Int {
      compactor.excess(garbage: garbage, allowed: 4 << 20, room: room)
    }
    #expect(excess(2 << 20, room: 1 << 20) <= 0)
    #expect(excess(2 << 20, room: 300_000) == 1 << 20 - 300_000)
    #expect(excess(200_000, room: 0) == 200_000)
  }

  @Test("The fewer bytes may still become dead, the longer each write waits")
  func pace() {
    var allowance = SpaceAllowance()
    func wait() -> Duration {
      var copy = allowance
      return copy.wait(afterSpending: 1000)
    }
    // The clock's origin is set at its first use.
    _ = wait()
    // Writers are slowed in the last quarter of the allowance. Before the first round, a pace of 10
    // ns per byte is assumed.
    allowance.update(reclaimable: 0, allowed: 4_000_000, limit: 4_000_000)
    #expect(!allowance.spend(3_000_000) && wait() == .microseconds(10))
    #expect(allowance.spend(900_000) && allowance.isScarce && wait() == .microseconds(100))
    #expect(allowance.spend(99_999) && wait() == .microseconds(640))
    allowance.update(
      reclaimable: 3_100_000, allowed: 4_000_000, limit: 4_000_000,
      gain: (1_000_000, .milliseconds(2)))
    #expect(allowance.spend(400_000) && wait() == .microseconds(4))
    // A round that gained nearly nothing says little about the pace. No write waits for more than a
    // tenth of a second.
    allowance.update(
      reclaimable: 3_500_000, allowed: 4_000_000, limit: 4_000_000, gain: (1, .milliseconds(2)))
    #expect(allowance.spend(1) && wait() > .microseconds(199) && wait() < .microseconds(201))
    #expect(allowance.wait(afterSpending: 1 << 40) == .milliseconds(100))
    // Waiting ends as soon as there is room.
    allowance.update(
      reclaimable: 1_000_000, allowed: 4_000_000, limit: 4_000_000,
      gain: (2_500_000, .milliseconds(25)))
    #expect(!allowance.isScarce && wait() == .microseconds(10))
    allowance.lift()
    #expect(!allowance.spend(9_000_000) && !allowance.isScarce)
  }
}
