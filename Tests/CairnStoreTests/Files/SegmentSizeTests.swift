import Foundation
import FuzzSupport
import Testing

@testable import CairnStore

@Suite("The sizes of segments, and of the reserve for copies of them")
struct SegmentSizeTests {
  private let scene: StoreScene

  init() throws { scene = try StoreScene() }

  private func store(limit: Int) throws -> Store {
    try Store(
      scene.path, .small { $0.segmentByteLimit = limit }, background: ManualBackgroundQueue())
  }

  /// A store whose housekeeping runs only on request.
  private static func untimed(limit: Int) -> StoreConfiguration {
    .small {
      $0.segmentByteLimit = limit
      $0.maintenanceInterval = nil
    }
  }

  private func fill(_ store: Store, byteCount: Int, valueByteCount: Int) throws {
    let value = [UInt8].filled(valueByteCount)
    for number in 0..<(byteCount / valueByteCount) {
      try store.setValue(value, forKey: "key\(number)")
    }
  }

  private func ends(_ store: Store) -> [Int] {
    store.engine.log.withLock { $0.segments.map(\.usage.end) }
  }

  @Test("A segment is a 64th of the log, from 1 MiB, or a 16th of a small disk, to the limit")
  func sizes() {
    let large = 1 << 40
    let mebibyte = 1 << 20
    for (log, free, expected) in [
      (0, large, mebibyte), (64 * mebibyte, large, mebibyte), (127 * mebibyte, large, mebibyte),
      (128 * mebibyte, large, 2 * mebibyte), (1 << 30, 0, 16 * mebibyte),
      (1 << 40, large, 64 * mebibyte), (0, 8 * mebibyte, mebibyte / 2), (0, 0, 72 << 10),
      (63, 0, 72 << 10),
    ] {
      let byteCount = SegmentSize.byteCount(
        forLogOf: log, free: free, syncTime: .milliseconds(8), slowSync: .milliseconds(8),
        limit: 64 << 20)
      #expect(byteCount == expected, "\(log), \(free)")
    }
  }

  @Test("On a slow disk, a segment has at least 1 MiB for each 8 ms of a sync, up to 16 MiB")
  func slowDisk() {
    for (milliseconds, free, limit, expected) in [
      (9, 1 << 40, 64, 2), (16, 1 << 40, 64, 2), (17, 1 << 40, 64, 4), (500, 1 << 40, 64, 16),
      (500, 1 << 40, 4, 4), (500, 32 << 20, 64, 2),
    ] {
      let byteCount = SegmentSize.byteCount(
        forLogOf: 0, free: free, syncTime: .milliseconds(milliseconds),
        slowSync: .milliseconds(8), limit: limit << 20)
      #expect(byteCount == expected << 20, "\(milliseconds), \(free), \(limit)")
    }
  }

  @Test("Only a record that is larger than a segment makes a segment larger")
  func ends() throws {
    let store = try store(limit: 256 << 10)
    try fill(store, byteCount: 600 << 10, valueByteCount: 5000)
    try store.setValue([UInt8].filled(200 << 10), forKey: "fits")
    try store.setValue([UInt8].filled(10), forKey: "next")
    #expect(ends(store).allSatisfy { $0 <= 256 << 10 })
    // Seals the segments, so that the next ones are no larger.
    try store.maintain()
    try store.setValue([UInt8].filled(700 << 10), forKey: "large")
    try store.setValue([UInt8].filled(10), forKey: "after")
    let large = store.engine.log.withLock { appender in
      appender.segments.filter { $0.usage.end > 256 << 10 }.map(\.usage.putCount)
    }
    #expect(large == [1])
    try store.close()
  }

  @Test("A resumed segment ends where a new one would")
  func resumed() throws {
    let first = try store(limit: 1 << 20)
    try fill(first, byteCount: 100 << 10, valueByteCount: 5000)
    try first.close()
    let second = try store(limit: 128 << 10)
    try fill(second, byteCount: 400 << 10, valueByteCount: 5000)
    #expect(ends(second).count > 2)
    #expect(ends(second).allSatisfy { $0 <= 128 << 10 })
    try second.close()
  }

  @Test("The reserve has room for the segments of an earlier session, which were larger")
  func largest() throws {
    let first = try store(limit: 512 << 10)
    try fill(first, byteCount: 2 << 20, valueByteCount: 5000)
    try first.close()
    let second = try store(limit: 72 << 10)
    try second.setValue([UInt8].filled(20_000), forKey: "new")
    let largest = try #require(ends(second).max())
    #expect(largest > 500 << 10)
    #expect(second.engine.log.reserveSize.copyByteCount >= largest)
    #expect(try scene.bytes(of: FileName.reserve).count >= largest)
    try second.close()
  }

  @Test("While segments wait to be sealed, they get larger, so that writers need no sync")
  func burst() throws {
    let store = try store(limit: 64 << 20)
    try fill(store, byteCount: 32 << 20, valueByteCount: 60_000)
    let rolled = store.engine.log.withLock { $0.rolled.map(\.usage.end) }
    #expect(rolled.count < 18)
    #expect(rolled == rolled.sorted())
    #expect(rolled.first ?? 0 <= 1 << 20)
    #expect(rolled.last ?? 0 > 3 << 20)
    try store.close()
  }

  @Test("Segments roll while housekeeping rests, and are sealed after that")
  func resting() throws {
    let queue = ManualBackgroundQueue()
    let store = try Store(scene.path, Self.untimed(limit: 72 << 10), background: queue)
    try store.setValue([UInt8].filled(5000), forKey: "first")
    queue.runAll()
    store.engine.session.alarm.rest()
    try fill(store, byteCount: 300 << 10, valueByteCount: 5000)
    #expect(store.engine.log.withLock { !$0.rolled.isEmpty })
    // Ends the rest.
    queue.runAll()
    try store.setValue([UInt8].filled(10), forKey: "next")
    queue.runAll()
    #expect(store.engine.log.withLock { $0.rolled.isEmpty })
    try store.close()
  }

  @Test(
    "The reserve grows with a log whose segments a compaction has left early",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func leftEarly() throws {
    let disk = try TinyDisk(byteCount: 40 << 20)
    let path = disk.path + "/store"
    let queue = ManualBackgroundQueue()
    let store = try Store(path, Self.untimed(limit: 64 << 20), background: queue)
    let value = [UInt8].filled(1000)
    for _ in 0..<2 {
      try fill(store, byteCount: 30_000, valueByteCount: 1000)
      try fill(store, byteCount: 10_000, valueByteCount: 1000)
      try store.compact()
      queue.runAll(dueAfter: .zero)
    }
    for number in 0..<950 { try store.setValue(value, forKey: "more\(number)") }
    let reserve = try Data(contentsOf: URL(filePath: path + "/" + FileName.reserve)).count
    #expect(reserve >= store.engine.log.reserveSize.byteCount)
    try store.close()
    try disk.fill()
    let again = try Store(path, background: queue)
    for number in 0..<475 { try again.removeValue(forKey: "more\(number * 2)") }
    try again.trim(.toCount(100))
    try again.setValue(value, forKey: "new")
    try again.close()
  }

  @Test("Segments of removals are sealed at once, and a pass reclaims what they made dead")
  func removed() throws {
    let queue = ManualBackgroundQueue()
    let store = try Store(scene.path, Self.untimed(limit: 64 << 20), background: queue)
    try fill(store, byteCount: 40_000 * 30, valueByteCount: 30)
    queue.runAll(dueAfter: .zero)
    for number in 0..<40_000 { try store.removeValue(forKey: "key\(number)") }
    let rolled = store.engine.log.withLock {
      $0.rolled.map { ($0.usage.putCount, $0.usage.tombstoneCount) }
    }
    #expect(rolled.contains { $0.1 > $0.0 })
    let before = try store.statistics().allocatedByteCount
    queue.runAll(dueAfter: .zero)
    #expect(store.engine.log.withLock { $0.rolled.isEmpty })
    #expect(try store.statistics().allocatedByteCount < before)
    try store.close()
  }

  @Test(
    "Half of the values of a full disk can be removed in any order, which makes room",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func removals() throws {
    let disk = try TinyDisk(byteCount: 12 << 20)
    let path = disk.path + "/store"
    var configuration = StoreConfiguration.quiet
    configuration.durability = .process
    let value = [UInt8].filled(1000)
    var count = 0
    do {
      let store = try Store(path: path, configuration: configuration)
      while count < 8000 {
        try store.setValue(value, forKey: "key\(count)")
        count += 1
      }
      try store.close()
    }
    let store = try Store(path: path, configuration: configuration)
    while storeError({ try store.setValue(value, forKey: "key\(count)") }) == nil { count += 1 }
    try disk.fill()
    var generator = Seed.generator("removals on a full disk")
    for key in Array(0..<count).shuffled(using: &generator).prefix(count / 2) {
      try store.removeValue(forKey: "key\(key)")
    }
    try store.compact()
    #expect(try store.statistics().allocatedByteCount < 8 << 20)
    for number in 0..<1000 { try store.setValue(value, forKey: "new\(number)") }
    try store.close()
  }
}
