import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Mistakes of this cache's ancestors, each with a test that this cache does not make it.
@Suite("Mistakes of the ancestors that the cache on disk does not make", .timeLimit(.minutes(30)))
struct DiskAncestorBugTests {
  let scene = DiskScene()

  private func files() throws -> [String: Data] {
    try contents(ofDirectory: scene.path)
  }

  @Test("YYCache: every read wrote to disk")
  func readsWriteNothing() throws {
    let cache: DiskCache<Int, String> = try scene.cache()
    for number in 0..<50 { try cache.setValue("value", forKey: number, lifetime: .seconds(60)) }
    try cache.sync()
    // A removal of all has been prepared.
    scene.background.runAll(dueAfter: .zero)
    let before = try files()
    scene.clock.advance(by: .seconds(30))
    for number in 0..<100 {
      _ = try cache.value(forKey: number)
      _ = try cache.entry(forKey: number)
      _ = try cache.contains(number)
    }
    try cache.touch(0..<50)
    scene.background.runAll(dueAfter: .zero)
    #expect(try files() == before)
  }

  @Test("YYCache: the whole cache was wiped when several opened it at once")
  func racingOpens() throws {
    do {
      let cache: DiskCache<Int, Int> = try scene.cache()
      for number in 0..<20 { try cache.setValue(number, forKey: number) }
      try cache.close()
    }
    let opened = Record<Int>()
    let scene = scene
    onThreads(4) { thread in
      for round in 0..<50 {
        guard let cache: DiskCache<Int, Int> = try? scene.cache() else { continue }
        if (try? cache.keys().sorted()) == Array(0..<20) {
          opened.add(round)
        } else {
          Issue.record("entries are missing on thread \(thread)")
        }
        try? cache.close()
      }
    }
    #expect(!opened.all.isEmpty)
    let cache: DiskCache<Int, Int> = try scene.cache()
    #expect(try cache.count() == 20)
  }

  @Test("YYCache: entries past their age were returned until a timer fired")
  func pastAge() throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.store.maintenanceInterval = nil }
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    scene.clock.advance(by: .seconds(10))
    #expect(try cache.value(forKey: "a") == nil)
  }

  @Test("PINCache: a lifetime was kept in memory and forgotten on disk")
  func lifetimeOnDisk() throws {
    do {
      let cache: DiskCache<String, Int> = try scene.cache()
      try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
      try cache.setValue(2, forKey: "b", lifetime: .seconds(30))
      try cache.close()
    }
    scene.clock.advance(by: .seconds(20))
    let cache: DiskCache<String, Int> = try scene.cache()
    #expect(try cache.value(forKey: "a") == nil)
    #expect(
      try cache.entry(forKey: "b")?.info.expires
        == ManualClock.start.advanced(by: .seconds(30)))
  }

  @Test("PINCache: long keys were silently not cached")
  func longKeys() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    for count in [255, 256, 4096, 65_535] {
      let key = String(repeating: "k", count: count)
      try cache.setValue(count, forKey: key)
      #expect(try cache.value(forKey: key) == count)
    }
    let key = String(repeating: "k", count: 65_536)
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 65536 bytes; it must have 1 to 65535")
    ) {
      try cache.setValue(1, forKey: key)
    }
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try cache.setValue(1, forKey: "")
    }
  }

  @Test("PINCache: there was a limit of 50 MB that nobody had requested")
  func noSilentLimit() throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache {
      $0.store.segmentByteLimit = StoreConfiguration().segmentByteLimit
    }
    let value = [UInt8](repeating: 7, count: 1 << 20)
    for number in 0..<60 { try cache.setValue(value, forKey: number) }
    #expect(try cache.count() == 60)
    #expect(try cache.totalCost() > 60 << 20)
    // A single larger value is not refused either.
    try cache.setValue([UInt8](repeating: 7, count: 55 << 20), forKey: 100)
    #expect(try cache.withValue(forKey: 100) { $0.byteCount } == 55 << 20)
  }

  @Test("PINCache and TMCache: a value that could not be decoded was silently deleted")
  func undecodable() throws {
    do {
      let cache: DiskCache<String, String> = try scene.cache()
      try cache.setValue("no number", forKey: "a")
      try cache.close()
    }
    let cache: DiskCache<String, Int> = try scene.cache()
    #expect(throws: StoreError.self) { try cache.value(forKey: "a") }
    #expect(try cache.contains("a"))
  }

  @Test("TMCache: byte counts drifted")
  func byteCounts() throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache(bytes: 100_000)
    var random = FuzzRandom(seed: TestSeed.current)
    for _ in 0..<2000 {
      let key = random.below(60)
      switch random.below(4) {
      case 0: try cache.removeValue(forKey: key)
      default:
        try cache.setValue([UInt8](repeating: 0, count: random.below(5000)), forKey: key)
      }
    }
    let counted = try cache.totalCost()
    try cache.close()
    // The reopened cache counts again from the disk's contents.
    let reopened: DiskCache<Int, [UInt8]> = try scene.cache()
    #expect(try reopened.totalCost() == counted, TestSeed.comment)
    for key in 0..<60 { try reopened.removeValue(forKey: key) }
    #expect(try reopened.totalCost() == 0)
  }

  @Test("TMCache: a call from inside a callback deadlocked")
  func reentrance() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 2)
    cache.observe { [weak cache] event in
      guard case .removed(let key, .evicted) = event, key < 100 else { return }
      _ = try? cache?.value(forKey: key)
      _ = try? cache?.setValue(0, forKey: key + 100)
      _ = try? cache?.removeValue(forKey: key + 100)
    }
    for number in 0..<10 { try cache.setValue(number, forKey: number) }
    #expect(try cache.count() <= 2)
    try cache.forEachKey { key in
      try cache.removeValue(forKey: key)
      return .next
    }
    #expect(try cache.count() == 0)
  }

  @Test(
    "XRCache: reading many keys returned nothing, an update kept the old value, removing all left rows"
  )
  func plainThings() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<5 { try cache.setValue(number, forKey: number) }
    for number in 0..<5 { try cache.setValue(number * 10, forKey: number) }
    #expect(try cache.values(forKeys: 0..<6) == [0, 10, 20, 30, 40, nil])
    try cache.removeAll()
    #expect(try cache.keys() == [])
    try cache.close()
    let reopened: DiskCache<Int, Int> = try scene.cache()
    #expect(try reopened.count() == 0)
    #expect(try reopened.values(forKeys: 0..<5) == [nil, nil, nil, nil, nil])
  }
}
