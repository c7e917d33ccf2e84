import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Trimming on a full disk")
struct FullDiskTrimTests {
  /// A store that fills a small disk.
  func store(
    on disk: TinyDisk, _ change: (inout StoreConfiguration) -> Void
  ) throws -> Store {
    var configuration = StoreConfiguration.quiet
    configuration.durability = .process
    change(&configuration)
    return try Store(path: disk.path + "/store", configuration: configuration)
  }

  /// Puts new keys until no more fit, and returns how many there are.
  func fill(_ store: Store, valueByteCount: Int) throws -> Int {
    let value = [UInt8](repeating: 7, count: valueByteCount)
    var number = 0
    while true {
      let error = storeError {
        try store.setValue(value, forKey: "key\(number)", durability: .process)
      }
      if let error {
        guard case .noSpace = error else { throw error }
        return number
      }
      number += 1
    }
  }

  /// Puts a value once no reader holds removed bytes. A read of another test may hold such bytes
  /// for longer than a write waits.
  func put(
    _ value: [UInt8], _ key: String, in store: Store, durability: Durability = .process
  ) throws {
    let limit = ContinuousClock.now + .seconds(60)
    // A reader may end between a failure and the check of the bytes that it held.
    var isHeld = true
    while true {
      do {
        _ = try store.setValue(value, forKey: key, durability: durability)
        return
      } catch {
        let statistics = try store.statistics()
        guard case .noSpace = error, isHeld || statistics.pinnedByteCount > 0,
          ContinuousClock.now < limit
        else {
          Issue.record("\(error); \(statistics)")
          throw error
        }
        isHeld = statistics.pinnedByteCount > 0
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
  }

  @Test(
    "A compaction on a disk without a free byte reclaims dead space in the active segment",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [0, 50])
  func compactionOfActive(count: Int) throws {
    let disk = try TinyDisk(byteCount: 16 << 20)
    let store = try Store(path: disk.path + "/store", configuration: .quiet)
    let value = [UInt8](repeating: 1, count: 50_000)
    for number in 0..<150 {
      try store.setValue(value, forKey: "key\(number)", durability: .process)
    }
    try disk.fill()
    try store.trim(.toCount(count))
    try store.compact()
    // The segments that follow are allocated in full, with 1 MiB.
    #expect(try store.statistics().allocatedByteCount < 2 * count * value.count + 1280 << 10)
    #expect(try store.count() == count)
    try store.close()
  }

  @Test(
    "A store that has filled the disk is trimmed to half, and accepts new values again",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [1 << 20, 64 << 20], [1000, 10_000])
  func trim(segmentByteLimit: Int, valueByteCount: Int) throws {
    let disk = try TinyDisk(byteCount: 12 << 20)
    let store = try store(on: disk) { $0.segmentByteLimit = segmentByteLimit }
    let count = try fill(store, valueByteCount: valueByteCount)
    #expect(count * valueByteCount > 5 << 20)
    try disk.fill()
    // The most used keys are between the least used ones.
    for number in stride(from: 0, to: count, by: 2) {
      _ = try store.value(forKey: "key\(number)")
    }
    let removal = try store.trim(.toCount(count / 2))
    #expect(removal.count == count - count / 2)
    _ = try store.compact()
    #expect(try store.count() == count / 2)
    let value = [UInt8](repeating: 7, count: valueByteCount)
    for number in 0..<count {
      let isKept = number % 2 == 0 && number / 2 >= (count + 1) / 2 - count / 2
      #expect(try store.value(forKey: "key\(number)") == (isKept ? value : nil))
    }
    for number in 0..<count / 3 {
      try put(value, "new\(number)", in: store)
    }
    let contents = try store.contents()
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
    let again = try self.store(on: disk) { $0.segmentByteLimit = segmentByteLimit }
    #expect(try again.contents() == contents)
    try again.close()
  }

  @Test(
    "Removing a few old entries from a full disk makes room for as many new ones",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func removingFew() throws {
    let disk = try TinyDisk(byteCount: 24 << 20)
    let store = try store(on: disk) { $0.segmentByteLimit = 1 << 20 }
    let count = try fill(store, valueByteCount: 10_000)
    try disk.fill()
    // Less than a twentieth, but most of one segment.
    for number in 0..<80 { try store.removeValue(forKey: "key\(number)") }
    #expect(count > 80 * 20)
    let value = [UInt8](repeating: 8, count: 10_000)
    for number in 0..<40 { try put(value, "new\(number)", in: store) }
    #expect(try store.count() == count - 40)
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
  }

  @Test(
    "Overwritten bytes make room for new ones, without any request",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [Durability.process, .durable])
  func overwriting(durability: Durability) throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    // The segments have 64 MiB, and the disk has no room for one.
    let store = try Store(path: disk.path + "/store", configuration: .quiet)
    for round in 0..<12 {
      for number in 0..<1000 {
        let value = [UInt8](repeating: UInt8(round), count: 1000)
        try put(
          value, "key\(number)", in: store,
          durability: number % 100 == 0 ? durability : .process)
      }
    }
    #expect(try store.count() == 1000)
    for number in 0..<1000 {
      #expect(try store.value(forKey: "key\(number)") == [UInt8](repeating: 11, count: 1000))
    }
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
  }

  @Test(
    "A store keeps its limits forever on a disk with room for little more",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func evicting() throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    let store = try store(on: disk) { $0.countLimit = 5000 }
    let value = [UInt8](repeating: 1, count: 1000)
    for number in 0..<12_000 { try put(value, "key\(number)", in: store) }
    let count = try store.count()
    #expect(count <= 5000 && count > 4900)
    #expect(try store.value(forKey: "key11999") == value)
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
  }

  @Test(
    "A store that was killed on a full disk is trimmed by the next process",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func afterKill() throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    // This process fills the disk and ends without a close.
    let result = try KillWriterProcess.run("fill", disk.path + "/store")
    #expect(result.status == 0, "\(result.output)")
    try disk.fill()
    let store = try Store(path: disk.path + "/store", configuration: .quiet)
    let count = try store.count()
    #expect(count > 5000)
    #expect(try store.trim(.toCount(10)).count == count - 10)
    _ = try store.compact()
    let value = [UInt8](repeating: 2, count: 1000)
    for number in 0..<3000 {
      try put(value, "new\(number)", in: store)
    }
    #expect(try store.count() == 3010)
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
  }

  @Test("Bytes that are being read stay in place while their segment is compacted")
  func pinned() throws {
    let directory = try TemporaryDirectory()
    // Without a background compaction, which would move entries while they are counted.
    let store = try Store(
      directory.store, .small { $0.segmentByteLimit = 1 << 20 }, background: ManualBackgroundQueue()
    )
    func value(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number % 250), count: 500) }
    for number in 0..<1000 { try store.setValue(value(number), forKey: "key\(number)") }
    let snapshot = try store.snapshot()
    for number in stride(from: 0, to: 1000, by: 3) {
      try store.setValue(value(number + 1), forKey: "key\(number)")
    }
    try store.withValue(forKey: "key998") { (bytes) throws in
      try store.compact()
      #expect(bytes.copied() == value(998))
      // The snapshot still shows what was removed.
      for number in 0..<1000 {
        #expect(try snapshot.value(forKey: "key\(number)") == value(number))
      }
      #expect(bytes.copied() == value(998))
    }
    for number in 0..<1000 {
      let expected = value(number % 3 == 0 ? number + 1 : number)
      #expect(try store.value(forKey: "key\(number)") == expected)
    }
    #expect(try store.auditUsage() == [])
    #expect(try store.statistics().pinnedByteCount > 0)
    withExtendedLifetime(snapshot) {}
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test(
    "A snapshot of a closed store can be read while the next session compacts its segments",
    arguments: [false, true])
  func snapshotAfterClose(isCompactedBefore: Bool) throws {
    let directory = try TemporaryDirectory()
    let configuration = StoreConfiguration.small { $0.segmentByteLimit = 1 << 20 }
    func value(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number % 250), count: 500) }
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, configuration, background: queue)
    for number in 0..<1000 { try store.setValue(value(number), forKey: "key\(number)") }
    let snapshot = try store.snapshot()
    func overwrite(_ store: Store) throws {
      for number in stride(from: 0, to: 1000, by: 3) {
        try store.setValue(value(number), forKey: "key\(number)")
      }
      try store.compact()
    }
    if isCompactedBefore { try overwrite(store) }
    try store.close()
    do {
      let next = try Store(directory.store, configuration, background: queue)
      try overwrite(next)
      for number in 0..<1000 {
        #expect(try snapshot.value(forKey: "key\(number)") == value(number))
        #expect(try next.value(forKey: "key\(number)") == value(number))
      }
      #expect(try next.auditUsage() == [])
      try next.close()
    }
    withExtendedLifetime((snapshot, store)) {}
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("A segment that is appended to beside a snapshot of an earlier session is never shortened")
  func writtenOn() throws {
    let directory = try TemporaryDirectory()
    let configuration = StoreConfiguration.small { $0.segmentByteLimit = 1 << 20 }
    let value = [UInt8](repeating: 1, count: 500)
    let queue = ManualBackgroundQueue()
    var store: Store? = try Store(directory.store, configuration, background: queue)
    for number in 0..<100 { try store?.setValue(value, forKey: "key\(number)") }
    var snapshot: Snapshot? = try store?.snapshot()
    try store?.close()
    // The segment's file is longer than its records, and the snapshot reads it.
    let others = ManualBackgroundQueue()
    let next = try Store(directory.store, configuration, background: others)
    for number in 100..<3000 { try next.setValue(value, forKey: "key\(number)") }
    others.runAll()
    #expect(try snapshot?.value(forKey: "key7") == value)
    try waitUntil { try next.statistics().pinnedByteCount == 0 }
    snapshot = nil
    store = nil
    queue.runAll()
    try next.maintain()
    #expect(try next.statistics().segments.contains(where: \.isSealed))
    try next.close()
    #expect(try Store.verify(path: directory.store).errors == [])
    #expect(try Store(directory.store, configuration).count() == 3000)
  }

  @Test("What a snapshot holds of compacted segments counts as pinned, and is reclaimed")
  func pinnedBytes() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(
      directory.store, .small { $0.segmentByteLimit = 1 << 20 }, background: ManualBackgroundQueue()
    )
    for number in 0..<1000 {
      try store.setValue([UInt8](repeating: 1, count: 500), forKey: "key\(number)")
    }
    do {
      let snapshot = try store.snapshot()
      for number in 0..<1000 { try store.setValue("new", forKey: "key\(number)") }
      try store.compact()
      #expect(try store.statistics().pinnedByteCount > 500_000)
      withExtendedLifetime(snapshot) {}
    }
    try waitUntil { try store.statistics().pinnedByteCount == 0 }
    try store.close()
  }
}
