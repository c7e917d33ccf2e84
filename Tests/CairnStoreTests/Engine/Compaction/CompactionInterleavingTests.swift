import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// What other threads do between the steps of a compaction.
@Suite("Other threads during a compaction")
struct CompactionInterleavingTests {
  private func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }

  /// Found by a review: a value was copied, then removed, then a checkpoint was made. The
  /// checkpoint had neither the key nor the copy's segment, but covered the tombstone. After a
  /// kill, the copy counted as a later record, and the key reappeared.
  @Test("A checkpoint between the copy and the switch makes no removed key reappear")
  func checkpointAfterCopy() throws {
    let disk = SimulatedDisk()
    let configuration = StoreConfiguration.simulated(ManualClock())
    let writer = SimulatedProcess.start(on: disk, seed: 1)
    _ = try writer.open(configuration)
    for number in 0..<60 {
      try writer.store?.setValue(
        [UInt8](repeating: UInt8(number), count: 2000), forKey: key(number),
        lifetime: .seconds(1000))
    }
    for number in 40..<50 { try writer.store?.removeValue(forKey: key(number)) }
    var count = 0
    writer.fileSystem.intervene = { [key] call in
      // The copies are synced as a whole.
      guard call == .synchronize, count == 0, let store = writer.store,
        let name = writer.fileSystem.currentPath?.split(separator: "/").last,
        FileName.isSegment(String(name))
      else { return nil }
      count += 1
      for number in 0..<10 { _ = try? store.removeValue(forKey: key(number), durability: .durable) }
      _ = try? store.setLifetime(.seconds(9000), forKey: key(20))
      _ = try? store.setValue([1], forKey: key(21))
      do { try store.checkpoint() } catch { Issue.record(error) }
      return nil
    }
    try writer.store?.compact()
    writer.fileSystem.intervene = nil
    try #require(count == 1)
    let expected = try #require(writer.store).contents()
    #expect(expected.count == 40)
    writer.kill()
    let reader = SimulatedProcess.start(on: disk, seed: 2)
    defer { reader.kill() }
    let store = try reader.open(configuration)
    #expect(try store.statistics().recovery.source == .checkpoint)
    #expect(try store.contents() == expected)
    #expect(try store.auditUsage() == [])
  }

  /// Found by a review: after a removal of all, new segments reuse the places of the old ones, and
  /// the same keys written again get the same offsets. A move still in progress took their entries
  /// for the ones to move, and made them name missing segments.
  ///
  /// Which places new segments get depends on how many came before. In some of these cases, each
  /// key gets its old place.
  @Test(
    "A removal of all while entries are moved loses nothing that is written after it",
    arguments: 0..<5)
  func removalOfAllAmongMoves(fillerCount: Int) throws {
    let directory = try TemporaryDirectory()
    let held = Mutex<Store?>(nil)
    let hasRun = Atomic(false)
    let value: @Sendable (Int, Int) -> [UInt8] = { number, generation in
      [UInt8](repeating: UInt8(number % 251), count: 20) + [UInt8(generation)]
    }
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
      pause: { _ in
        // Some groups of entries have been moved, others have not.
        if hasRun.exchange(true, ordering: .relaxed) { return }
        guard let store = held.withLock({ $0 }) else { return }
        do {
          try store.removeAll()
          // Each value fills a segment.
          for _ in 0..<fillerCount {
            try store.setValue([UInt8](repeating: 0, count: 65_400), forKey: "filler")
          }
          for number in 0..<1500 { try store.setValue(value(number, 2), forKey: "key\(number)") }
        } catch { Issue.record(error) }
      })
    let store = try Store(
      path: directory.store, configuration: .small(), environment: environment, readOnly: false)
    held.withLock { $0 = store }
    for number in 0..<1500 { try store.setValue(value(number, 1), forKey: "key\(number)") }
    for number in stride(from: 0, to: 1500, by: 20) {
      try store.removeValue(forKey: "key\(number)")
    }
    try store.compact()
    let wasInMidst = hasRun.load(ordering: .relaxed)
    #expect(wasInMidst)
    for number in 0..<1500 {
      #expect(try store.value(forKey: "key\(number)") == value(number, 2), "\(number)")
    }
    try store.removeValue(forKey: "filler")
    #expect(try store.auditUsage() == [])
    try store.close()
    held.withLock { $0 = nil }
    let again = try Store(directory.store)
    #expect(try again.count() == 1500)
    #expect(try again.auditUsage() == [])
  }

  @Test(
    "A removal of expired entries during a compaction's moves misses none of them later")
  func removeExpiredDuringMoves() throws {
    // A check of all entries that can expire records for each segment when the first lifetime in it
    // ends. A check between two moves of a compaction must not derive this for the new segment only
    // from the entries already there.
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let held = Mutex<Store?>(nil)
    let removed = Mutex<[Int]>([])
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
      pause: { _ in
        // Some of the entries have been moved.
        clock.advance(by: .seconds(10))
        guard let store = held.withLock({ $0 }), let summary = try? store.trim(.expired) else {
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
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.statistics().count == store.count())
    clock.advance(by: .seconds(1000))
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.statistics().count == 896)
    #expect(try store.auditUsage() == [])
  }
}
