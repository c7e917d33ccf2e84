import CairnStore
import Foundation
import FuzzSupport
import Glibc
import Synchronization
import Testing

/// What limits, evictions and removals of all once got wrong.
@Suite("Limits, evictions and removals of all: what went wrong once")
struct RegressionTrimTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A store whose limit is one of bytes, so that few large values go at a time.
  func makeStore(byteLimit: Int) throws -> Store {
    try Store(
      directory.store,
      .small {
        $0.byteLimit = byteLimit
        $0.segmentByteLimit = 16 << 20
      })
  }

  /// Found by a review, with `FaultFuzzer`: the entries that were to go were forgotten, and the next write took those
  /// after them.
  @Test(
    "Where a read fails once, the least recently used go with the next write",
    arguments: [EIO, EMFILE])
  func failedRead(errorNumber: Int32) throws {
    let fileSystem = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.countLimit = 2000
        $0.access = .systemCalls
      }, fileSystem: fileSystem, background: ManualBackgroundQueue())
    for number in 0..<2000 { try store.setValue("v", forKey: "\(number)") }
    let failureCount = Mutex(0)
    fileSystem.setHook { event in
      guard event.call == .read else { return nil }
      return failureCount.withLock { count in
        count += 1
        return count == 1 ? errorNumber : nil
      }
    }
    _ = try? store.setValue("v", forKey: "2000")
    fileSystem.setHook(nil)
    #expect(failureCount.withLock { $0 } > 0)
    for number in 2001..<2010 { try store.setValue("v", forKey: "\(number)") }
    let numbers = try store.contents().keys.compactMap { Int($0) }.sorted()
    #expect(numbers.count <= 2000)
    #expect(numbers == Array((2010 - numbers.count)..<2010))
    try store.close()
  }

  @Test("The limit holds where all that was about to go was read")
  func allRead() throws {
    let limit = 24_000_000
    let store = try makeStore(byteLimit: limit)
    let value = [UInt8](repeating: 1, count: 12_000)
    for number in 0..<2010 { try store.setValue(value, forKey: "\(number)") }
    for _ in 0..<3 {
      for number in 0..<2010 { _ = try store.withValue(forKey: "\(number)") { $0.byteCount } }
      for number in 3000..<3020 {
        try store.setValue(value, forKey: "\(number)")
        #expect(try store.statistics().liveByteCount <= limit)
        #expect(try store.contains("\(number)"))
      }
    }
  }

  @Test("The limit holds where everything was removed and written again")
  func refilled() throws {
    let limit = 24_000_000
    let store = try makeStore(byteLimit: limit)
    let value = [UInt8](repeating: 1, count: 12_000)
    for round in 0..<2 {
      for number in 0..<2010 {
        try store.setValue(value, forKey: "\(number)")
        #expect(try store.statistics().liveByteCount <= limit)
      }
      #expect(try store.contains("2009"), "round \(round)")
      try store.removeAll()
    }
  }

  @Test("No more than 1 % goes beyond what a limit of bytes needs, however large the oldest are")
  func largeOldest() throws {
    let limit = 10_000_000
    let store = try makeStore(byteLimit: limit)
    let large = 200_000
    for number in 0..<20 {
      try store.setValue([UInt8](repeating: 1, count: large), forKey: "large \(number)")
    }
    let small = [UInt8](repeating: 1, count: 1000)
    var lowest = limit
    for number in 0..<16_000 {
      try store.setValue(small, forKey: "\(number)")
      let live = try store.statistics().liveByteCount
      #expect(live <= limit)
      if number > 6000 { lowest = min(lowest, live) }
    }
    #expect(lowest >= limit - limit / 100 - large - 100)
    // What was chosen and stayed was still the next to go.
    let left = try store.contents().keys.compactMap { Int($0) }
    #expect(try store.count() == left.count)
    #expect(left.sorted() == Array(16_000 - left.count..<16_000))
  }

  @Test("An entry of a batch that is larger than all may be is refused, not lost")
  func batchOfLargest() throws {
    let store = try makeStore(byteLimit: 10_000)
    let error = storeError {
      try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "key")
    }
    guard case .valueTooLarge(_, let largest) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    for byteCount in largest - 24...largest {
      do {
        try store.write {
          try $0.setValue([UInt8](repeating: 1, count: byteCount), forKey: "key")
        }
        #expect(try store.value(forKey: "key")?.count == byteCount)
      } catch let error as StoreError {
        guard case .valueTooLarge = error else { throw error }
      }
    }
  }

  @Test(
    "Without room for a tombstone, a write that throws noSpace has written nothing",
    arguments: [0, 20_000, 40_000, 60_000, 80_000, 100_000])
  func noRoomToEvict(filler: Int) throws {
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.countLimit = 2
        $0.segmentByteLimit = 4 << 20
      }, fileSystem: system)
    func key(_ number: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(number), count: 60_000)
    }
    try store.setValue([UInt8](repeating: 1, count: filler), forKey: "filler")
    try store.setValue("v", forKey: key(0))
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    var failureCount = 0
    for number in 1..<30 {
      let error = storeError { try store.setValue("v", forKey: key(number)) }
      #expect(try store.contains(key(number)) == (error == nil))
      // One write may have come before it was known that there is no room.
      #expect(try store.count() <= 3)
      guard let error else { continue }
      failureCount += 1
      guard case .noSpace = error else {
        Issue.record("\(error)")
        return
      }
    }
    #expect(failureCount > 0)
    system.arm(nil)
    try store.setValue("v", forKey: "after")
    #expect(try store.count() <= 2)
    #expect(try store.contains("after"))
  }

  @Test("The expired are not looked for in segments where none are left")
  func lookedForOnce() throws {
    let clock = ManualClock()
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store, .small(clock: clock) { $0.access = .systemCalls }, fileSystem: system,
      background: ManualBackgroundQueue())
    func readCount() throws -> Int {
      system.arm(nil)
      try store.removeExpired()
      return system.count(of: .read)
    }
    for number in 0..<1000 {
      try store.setValue(
        [UInt8](repeating: 1, count: 500), forKey: "\(number)",
        lifetime: .seconds(number % 10 == 0 ? 10 : 1000 + number))
    }
    #expect(try readCount() == 0)
    clock.advance(by: .seconds(10))
    // Only those that go are read.
    #expect(try readCount() <= 300)
    #expect(try store.statistics().indexedKeyCount == 900)
    #expect(try readCount() == 0)
    // What is written into the last of them is looked for.
    try store.setValue("v", forKey: "new", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    #expect(try readCount() < 300)
    #expect(try store.statistics().indexedKeyCount == 900)
    // And what was left is found when its time has come.
    clock.advance(by: .seconds(1500))
    try store.removeExpired()
    let count = try store.count()
    #expect(try store.statistics().indexedKeyCount == count)
    clock.advance(by: .seconds(1500))
    try store.removeExpired()
    #expect(try store.statistics().indexedKeyCount == 0)
  }

  @Test("Where no thread can be made, maintenance waits and writes go on")
  func noThread() throws {
    let result = try KillWriterProcess.run("thread-limit", directory.store)
    #expect(result.status == 0, "\(result.output)")
  }

  @Test("Who is told that a file could not be removed may use the store")
  func logUsesStore() throws {
    let system = FaultyFileSystem()
    let place = Mutex<Store?>(nil)
    let told = Mutex<[String]>([])
    let store = try Store(
      directory.store,
      .small {
        $0.log = DiagnosticLog { message in
          guard message.text.contains("removing"), let store = place.withLock({ $0 }) else {
            return
          }
          told.withLock { $0.append(message.text) }
          _ = try? store.statistics()
        }
      }, fileSystem: system)
    try store.setValue("v", forKey: "key")
    place.withLock { $0 = store }
    defer { place.withLock { $0 = nil } }
    system.arm(.init(call: .unlink, index: 0, errorNumber: EIO, isLasting: true))
    let remover = Background { try store.removeAll() }
    #expect(remover.finishes(within: 20))
    #expect(remover.error == nil)
    // The files of a store without syncs go in the background.
    let end = ContinuousClock.now + .seconds(100)
    while told.withLock({ $0.isEmpty }), ContinuousClock.now < end { usleep(1000) }
    #expect(told.withLock { $0.count } == 1)
    system.arm(nil)
    #expect(try store.count() == 0)
  }

  @Test(
    "A removal of what has expired while a compaction moves entries overlooks none of them later")
  func removeExpiredDuringMoves() throws {
    // A look at all that can expire tells each segment when the first lifetime among its entries ends.
    // One that was taken between two moves of a compaction told the new segment so of those that were
    // there already. Those that came after it were not looked at until then, however long ago they
    // had expired. Found by reading.
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let held = Mutex<Store?>(nil)
    let removed = Mutex<[Int]>([])
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
      pause: { _ in
        // Some of the entries have been moved.
        clock.advance(by: .seconds(10))
        guard let store = held.withLock({ $0 }), let summary = try? store.removeExpired() else {
          return
        }
        removed.withLock { $0.append(summary.count) }
      })
    let store = try Store(
      path: directory.store, configuration: .small(clock: clock), environment: environment,
      readOnly: false)
    held.withLock { $0 = store }
    for number in 0..<900 {
      let lifetime: Lifetime =
        switch number {
        case 0: .seconds(1)
        case 1: .seconds(1000)
        case 899: .seconds(100)
        default: .standard
        }
      try store.setValue("v", forKey: "key\(number)", lifetime: lifetime)
    }
    try store.removeValue(forKey: "key5")
    try store.compact()
    held.withLock { $0 = nil }
    #expect(removed.withLock { $0 } == [1])
    clock.advance(by: .seconds(200))
    #expect(try store.removeExpired().count == 1)
    #expect(try store.statistics().indexedKeyCount == store.count())
    clock.advance(by: .seconds(1000))
    #expect(try store.removeExpired().count == 1)
    #expect(try store.statistics().indexedKeyCount == 896)
    #expect(try store.auditUsage() == [])
  }

  /// The bytes of extensions die with their entries and were not counted among those that had gone: twice as
  /// many small entries went as had to.
  @Test("A trim to bytes takes no more extended entries than it has to, and says what went")
  func extended() throws {
    let store = try Store(directory.store, .small { _ in })
    for number in 10..<50 {
      try store.setValue([1], forKey: "\(number)", lifetime: .seconds(100))
      try store.extendLifetime(forKey: "\(number)", to: .seconds(200))
    }
    let before = try store.statistics().liveByteCount
    let summary = try store.trim(toBytes: before / 2)
    #expect(summary.count == 20)
    #expect(try store.count() == 20)
    #expect(try store.statistics().liveByteCount == before - summary.cost)
  }
}
