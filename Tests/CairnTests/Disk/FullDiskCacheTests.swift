import Cairn
import CairnRepair
import FuzzSupport
import Synchronization
import Testing

/// A clock that can be ten years ahead for a while.
private final class JumpingClock: WallClock {
  let isAhead = Atomic(false)

  func now() -> Timestamp {
    let years = isAhead.load(ordering: .relaxed) ? 10 : 0
    return SystemClock().now().advanced(by: .seconds(years * 365 * 86_400))
  }

  func elapsed() -> Duration? { SystemClock().elapsed() }
}

/// A full disk with a cache on it.
@Suite(
  "A cache on a full disk",
  .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
struct FullDiskCacheTests {
  private func open(
    _ disk: TinyDisk, segmentByteLimit: Int = 1 << 20, clock: any WallClock = SystemClock(),
    observer: (@Sendable (RemovalEvent) -> Void)? = nil
  ) throws -> DiskCache<Int, [UInt8]> {
    var configuration = DiskCacheConfiguration()
    configuration.store.segmentByteLimit = segmentByteLimit
    configuration.store.removalObserver = observer
    configuration.store.log = .silent
    configuration.store.clock = clock
    return try .open(.path(disk.path + "/cache"), configuration: configuration)
  }

  private func value(_ number: Int, _ byteCount: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(number & 255), count: byteCount)
  }

  @Test(
    "The cache keeps working: no write fails, and each value is found",
    arguments: [64 << 10, 1 << 20, 64 << 20], [1000, 50_000])
  func goesOn(segmentByteLimit: Int, valueByteCount: Int) throws {
    let disk = try TinyDisk(byteCount: 12 << 20)
    let evicted = Atomic(0)
    let cache = try open(disk, segmentByteLimit: segmentByteLimit) { event in
      if case .entry(_, _, .evicted(.freeDiskSpace)) = event {
        evicted.wrappingAdd(1, ordering: .relaxed)
      }
    }
    let count = (20 << 20) / (valueByteCount + 60)
    for number in 0..<count {
      try cache.setValue(value(number, valueByteCount), forKey: number)
      if number % 16 == 0 {
        #expect(try cache.value(forKey: number)?.first == UInt8(number & 255))
      }
    }
    let left = try cache.count()
    #expect(left * (valueByteCount + 60) > 4 << 20)
    #expect(evicted.load(ordering: .relaxed) == count - left)
    try cache.close()
    #expect(try Store.verify(path: disk.path + "/cache").errors == [])
    let again = try open(disk)
    #expect(try again.count() == left)
    #expect(try again.value(forKey: count - 1) == value(count - 1, valueByteCount))
  }

  @Test("Segments that are read stay, others go")
  func coldestFirst() throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    let cache = try open(disk, segmentByteLimit: 256 << 10)
    // Two segments, and the space next to the last of them.
    let hot = 0..<600
    for number in 0..<14_000 {
      try cache.setValue(value(number, 1000), forKey: number)
      _ = try cache.value(forKey: number % hot.count)
    }
    #expect(try hot.count { try cache.contains($0) } >= 400)
    #expect(try !cache.contains(1000))
  }

  @Test(
    "If others fill the disk, or a value is larger than a tenth of the cache, nothing is evicted")
  func boundedLoss() throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    let cache = try open(disk)
    for number in 0..<1000 { try cache.setValue(value(number, 3000), forKey: number) }
    try disk.fill()
    for _ in 0..<10 {
      let error = #expect(throws: StoreError.self) {
        try cache.setValue(value(0, 2 << 20), forKey: -1)
      }
      guard case .noSpace = error else {
        return #expect(Bool(false), "\(String(describing: error))")
      }
    }
    #expect(try cache.count() == 1000)
  }

  @Test("One write evicts at most a tenth, and none follows at once if others took the room")
  func tenth() throws {
    let disk = try TinyDisk(byteCount: 40 << 20)
    // After calling the observers, the write checks for room again.
    let cache = try open(disk) { _ in try? disk.fill() }
    for number in 0..<8000 { try cache.setValue(value(number, 3000), forKey: number) }
    try disk.fill()
    var failureCount = 0
    // The first entries are evicted although the log has room.
    for number in 0..<800 where failureCount < 50 {
      let before = try cache.count()
      do { try cache.setValue(value(number, 3000), forKey: -1 - number) } catch {
        guard case .noSpace = error else { throw error }
        failureCount += 1
      }
      #expect(try cache.count() >= before - before / 10)
    }
    #expect(failureCount == 50)
    // One attempt every ten seconds.
    #expect(try cache.count() > 7000)
  }

  @Test("A clock that was years ahead for a moment does not stop later evictions")
  func clockAhead() throws {
    let disk = try TinyDisk(byteCount: 12 << 20)
    let clock = JumpingClock()
    let othersTakeRoom = Atomic(true)
    let cache = try open(disk, clock: clock) { _ in
      if othersTakeRoom.load(ordering: .relaxed) { try? disk.fill() }
    }
    for number in 0..<1500 { try cache.setValue(value(number, 3000), forKey: number) }
    try disk.fill()
    clock.isAhead.store(true, ordering: .relaxed)
    var failure: (any Error)?
    for number in 0..<800 where failure == nil {
      do { try cache.setValue(value(number, 3000), forKey: -1 - number) } catch { failure = error }
    }
    guard case .noSpace? = failure as? StoreError else {
      return #expect(Bool(false), "\(String(describing: failure))")
    }
    clock.isAhead.store(false, ordering: .relaxed)
    othersTakeRoom.store(false, ordering: .relaxed)
    for number in 0..<50 { try cache.setValue(value(number, 3000), forKey: 2000 + number) }
    #expect(try cache.contains(2049))
  }

  @Test("An observer may write, even outside the log", .timeLimit(.minutes(30)))
  func observerWrites() throws {
    let disk = try TinyDisk(byteCount: 6 << 20)
    let cache = Mutex<DiskCache<Int, [UInt8]>?>(nil)
    let isFirst = Atomic(true)
    let opened = try open(disk, segmentByteLimit: 64 << 10) { event in
      guard case .entry(_, _, .evicted) = event, isFirst.exchange(false, ordering: .relaxed)
      else { return }
      _ = try? cache.withLock { $0 }?.setValue([UInt8](repeating: 9, count: 100_000), forKey: -1)
    }
    cache.withLock { $0 = opened }
    for number in 0..<100 { try opened.setValue(value(number, 100_000), forKey: number) }
    let wasTold = !isFirst.load(ordering: .relaxed)
    #expect(wasTold)
    #expect(try opened.value(forKey: 99) == value(99, 100_000))
    cache.withLock { $0 = nil }
    try opened.close()
  }

  @Test("A store evicts nothing")
  func store() throws {
    let disk = try TinyDisk(byteCount: 4 << 20)
    let store = try Store(path: disk.path + "/store")
    var count = 0
    do {
      while count < 10_000 {
        try store.setValue(value(count, 3000), forKey: "key \(count)", durability: .process)
        count += 1
      }
    } catch {}
    #expect(try (100..<10_000).contains(count) && store.count() == count)
  }
}
