import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Snapshots")
struct SnapshotTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()

  init() throws { directory = try TemporaryDirectory() }

  private func contents(_ snapshot: Snapshot) throws -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    try snapshot.forEachEntry { entry in
      found[String(decoding: entry.key, as: UTF8.self)] = entry.value
      return .next
    }
    return found
  }

  private func fill(_ store: Store, _ count: Int, _ value: UInt8 = 1) throws {
    for number in 0..<count {
      try store.setValue(
        [UInt8](repeating: value, count: 100), forKey: "key\(number)", durability: .process)
    }
  }

  @Test("Nothing that happens to the store changes what a snapshot shows")
  func isolation() throws {
    let store = try Store(directory.store, .small(clock: clock))
    try fill(store, 500)
    let expected = try store.contents()
    let snapshot = try store.snapshot()
    let twin = try store.snapshot()
    let order = try store.keysByRecency()
    #expect(try contents(snapshot) == expected)
    #expect(try store.keysByRecency() == order, "reading it is no access")
    try fill(store, 250, 2)
    try store.removeValue(forKey: "key300")
    try store.setValue("new", forKey: "new")
    let between = try store.snapshot()
    let later = try store.contents()
    try store.trim(.toCount(20))
    #expect(try contents(snapshot) == expected)
    #expect(try contents(between) == later)
    try store.removeAll()
    try fill(store, 100, 3)
    #expect(try contents(snapshot) == expected)
    #expect(try contents(between) == later)
    #expect(try snapshot.value(forKey: "key300") == expected["key300"])
    #expect(try between.value(forKey: "key300") == nil)
    #expect(try !snapshot.contains("new"))
    #expect(try snapshot.count() == 500)
    #expect(try between.count() == later.count)
    #expect(snapshot.version < between.version)
    try store.close()
    #expect(try contents(twin) == expected, "also after the store's close")
    twin.close()
    #expect(storeError { _ = try twin.count() } == .closed(path: directory.store))
    let again = try Store(directory.store, .small(clock: clock))
    #expect(try again.count() == 100)
    #expect(try contents(snapshot) == expected, "and when it is open again")
  }

  @Test("A snapshot shows all of a batch or nothing, whatever writers do")
  func batches() throws {
    let store = try Store(directory.store, .small())
    try onThreads(4) { thread in
      for round in 0..<150 {
        if thread < 2 {
          try store.write(durability: .process) { batch in
            for key in 0..<10 { try batch.setValue("\(thread) \(round)", forKey: "key\(key)") }
          }
        } else {
          let snapshot = try store.snapshot()
          let values = try (0..<10).map { try snapshot.value(forKey: "key\($0)") }
          #expect(Set(values).count == 1)
          var seen: Set<[UInt8]> = []
          try snapshot.forEachEntry { entry in
            seen.insert(entry.value)
            return .next
          }
          #expect(seen.count <= 1)
          snapshot.close()
        }
      }
    }
  }

  @Test("A snapshot uses its own time, and the accesses until then")
  func expiry() throws {
    // Nothing runs in the background, where the entries would be removed first.
    let store = try Store(
      directory.store, .small(clock: clock), background: ManualBackgroundQueue())
    try store.setValue("a", forKey: "soon", lifetime: .seconds(10))
    try store.setValue("b", forKey: "idle", options: .idleLimit(.seconds(10)))
    try store.setValue("c", forKey: "ever")
    let early = try store.snapshot()
    clock.advance(by: .seconds(20))
    let late = try store.snapshot()
    #expect(try early.count() == 3)
    #expect(try late.count() == 1)
    #expect(try early.value(forKey: "soon") == Array("a".utf8))
    #expect(try late.value(forKey: "soon") == nil)
    #expect(try late.value(forKey: "idle") == nil)
    #expect(try store.trim(.expired).count == 2)
    #expect(try early.entry(forKey: "idle")?.value == Array("b".utf8))
    #expect(try late.info(forKey: "ever")?.valueByteCount == 1)
  }

  @Test("A snapshot of a newly opened store shows what was not loaded yet")
  func unloaded() throws {
    let store = try Store(directory.store, .small())
    try fill(store, 400)
    let expected = try store.contents()
    try store.close()
    let again = try Store(directory.store, .small())
    let snapshot = try again.snapshot()
    try again.setValue("changed", forKey: "key1")
    try again.removeAll()
    try fill(again, 30, 9)
    try again.close()
    #expect(try contents(snapshot) == expected)
    #expect(try snapshot.withValue(forKey: "key1") { $0.byteCount } == 100)
    var count = 0
    try snapshot.forEachKey(prefix: "key1") { _ in
      count += 1
      return count == 5 ? .stop : .next
    }
    #expect(count == 5)
  }

  @Test("Random changes between many snapshots, each compared with a copy of its time")
  func model() throws {
    var generator = Seed.generator()
    let store = try Store(directory.store, .small())
    var kept: [(snapshot: Snapshot, contents: [String: [UInt8]])] = []
    for step in 0..<1500 {
      let key = "key\(Int.random(in: 0..<300, using: &generator))"
      switch Int.random(in: 0..<40, using: &generator) {
      case 0: kept.append((try store.snapshot(), try store.contents()))
      case 1 where !kept.isEmpty:
        let pair = kept.remove(at: Int.random(in: 0..<kept.count, using: &generator))
        #expect(try contents(pair.snapshot) == pair.contents, Seed.comment)
        pair.snapshot.close()
      case 2 where step % 10 == 0: try store.removeAll()
      case 3..<12: try store.removeValue(forKey: key, durability: .process)
      default: try store.setValue("value \(step)", forKey: key, durability: .process)
      }
    }
    for pair in kept { #expect(try contents(pair.snapshot) == pair.contents, Seed.comment) }
  }

  @Test("Snapshots and backups during the moves of a compaction miss no entry")
  func duringCompaction() throws {
    let count = 10_000
    let store = try Store(directory.store, .small { $0.segmentByteLimit = 1 << 20 })
    try fill(store, count)
    let isDone = Atomic(false)
    let compaction = Background {
      while !isDone.load(ordering: .relaxed) {
        for number in stride(from: 0, to: count, by: 50) {
          try store.setValue([2], forKey: "key\(number)")
        }
        try store.compact()
      }
    }
    for round in 0..<4000 {
      let snapshot = try store.snapshot()
      for number in stride(from: round % 97, to: count, by: 997) {
        #expect(try snapshot.contains("key\(number)"), "key\(number) is missing")
      }
      if round % 1000 == 0 {
        #expect(try contents(snapshot).count == count)
        let path = directory("copy\(round)")
        try snapshot.backup(to: path)
        let copy = try Store(path, .small())
        #expect(try copy.statistics().recovery.source == .checkpoint)
        #expect(try copy.contents().count == count)
        #expect(try copy.auditUsage() == [])
      }
      snapshot.close()
    }
    isDone.store(true, ordering: .relaxed)
    #expect(compaction.finishes())
    #expect(compaction.error == nil)
  }
}
