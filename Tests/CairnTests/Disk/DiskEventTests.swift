import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Events and statistics of a cache on disk")
struct DiskEventTests {
  let scene = DiskScene()

  @Test("A change by an observer is reported in the middle of the event it was called for")
  func changesByObservers() throws {
    let cache: DiskCache<String, Int> = try scene.cache(count: 2)
    let first = Record<CacheEvent<String>>()
    let second = Record<CacheEvent<String>>()
    try cache.setValue(1, forKey: "old")
    try cache.setValue(1, forKey: "other")
    cache.observe { [weak cache] event in
      first.add(event)
      if event == .inserted(key: "x") { _ = try? cache?.removeValue(forKey: "x") }
    }
    cache.observe { second.add($0) }
    try cache.setValue(2, forKey: "x")
    let evicted = CacheEvent.removed(key: "old", cause: .evicted(.countLimit))
    let removed = CacheEvent.removed(key: "x", cause: .removed)
    #expect(first.all == [.inserted(key: "x"), removed, evicted])
    #expect(second.all == [removed, .inserted(key: "x"), evicted])
  }

  @Test("Every insertion and removal is reported, with the cause")
  func causes() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 2)
    let events = Record<CacheEvent<Int>>()
    cache.observe { events.add($0) }
    func told(_ body: () throws -> Void) throws -> [CacheEvent<Int>] {
      events.removeAll()
      try body()
      return events.all
    }
    #expect(try told { try cache.setValue(1, forKey: 1) } == [.inserted(key: 1)])
    #expect(
      try told { try cache.setValue(2, forKey: 1) } == [
        .removed(key: 1, cause: .replaced), .inserted(key: 1),
      ])
    #expect(try told { try cache.removeValue(forKey: 1) } == [.removed(key: 1, cause: .removed)])
    #expect(try told { try cache.removeValue(forKey: 1) } == [])
    #expect(
      try told { try cache.setValues([(key: 1, value: 1), (key: 2, value: 2)]) } == [
        .inserted(key: 1), .inserted(key: 2),
      ])
    #expect(
      try told { try cache.setValue(3, forKey: 3) } == [
        .inserted(key: 3), .removed(key: 1, cause: .evicted(.countLimit)),
      ])
    #expect(
      try told { try cache.trim(.toCount(1)) } == [.removed(key: 2, cause: .evicted(.trim))])
    #expect(try told { _ = try cache.takeValue(forKey: 3) } == [.removed(key: 3, cause: .removed)])
    try cache.setValue(4, forKey: 4, lifetime: .seconds(1))
    scene.clock.advance(by: .seconds(2))
    #expect(try told { try cache.trim(.expired) } == [.removed(key: 4, cause: .expired)])
    let version = try cache.setValue(5, forKey: 5)
    #expect(
      try told { _ = try cache.compareAndSet(6, forKey: 5, expecting: version) } == [
        .removed(key: 5, cause: .replaced), .inserted(key: 5),
      ])
    #expect(try told { _ = try cache.compareAndSet(7, forKey: 5, expecting: version) } == [])
    try cache.setValue(6, forKey: 6)
    #expect(try told { try cache.removeAll() } == [.removedAll(count: 2)])
  }

  @Test("The removal of the key's old value is reported before a write, evictions after it")
  func order() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 3)
    for number in 1...3 { try cache.setValue(number, forKey: number) }
    let events = Record<CacheEvent<Int>>()
    let versions = Record<UInt64>()
    cache.observe { events.add($0) }
    _ = cache.events.add { versions.add($1) }
    // Key 3 is replaced, 5 occurs twice, and 1, 2 and then 3 itself are evicted.
    try cache.setValues([
      (key: 3, value: 30), (key: 4, value: 4), (key: 5, value: 0), (key: 6, value: 6),
      (key: 5, value: 5),
    ])
    #expect(
      events.all == [
        .removed(key: 3, cause: .replaced), .inserted(key: 3), .inserted(key: 4),
        .inserted(key: 6), .inserted(key: 5), .removed(key: 1, cause: .evicted(.countLimit)),
        .removed(key: 2, cause: .evicted(.countLimit)),
        .removed(key: 3, cause: .evicted(.countLimit)),
      ])
    #expect(versions.all == [3, 4, 5, 6, 7, 1, 2, 4])
    events.removeAll()
    #expect(try cache.compareAndSet(7, forKey: 7, expecting: nil) == .stored(version: 11))
    #expect(
      events.all == [.inserted(key: 7), .removed(key: 4, cause: .evicted(.countLimit))])
  }

  @Test("A loaded value is reported in the same order")
  func orderOfLoads() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 1)
    try await cache.setValue(1, forKey: 1)
    let events = Record<CacheEvent<Int>>()
    cache.observe { events.add($0) }
    #expect(try await cache.value(forKey: 2) { 2 } == 2)
    #expect(
      events.all == [.inserted(key: 2), .removed(key: 1, cause: .evicted(.countLimit))])
  }

  @Test(
    "A change by an observer of the store is reported after the write, and to no observer twice")
  func nested() throws {
    let box = Record<DiskCache<Int, Int>>()
    let cache: DiskCache<Int, Int> = try scene.cache {
      $0.store.removalObserver = { event in
        guard case .entry(_, _, .replaced) = event, let cache = box.all.first else { return }
        _ = try? cache.setValue(2, forKey: 2)
        _ = try? cache.removeValue(forKey: 3)
      }
    }
    for number in [1, 3] { try cache.setValue(number, forKey: number) }
    let events = Record<CacheEvent<Int>>()
    cache.observe { events.add($0) }
    box.add(cache)
    try cache.setValue(10, forKey: 1)
    #expect(
      events.all == [
        .removed(key: 1, cause: .replaced), .inserted(key: 1), .inserted(key: 2),
        .removed(key: 3, cause: .removed),
      ])
    box.removeAll()
    events.removeAll()
    try cache.trim(.toCount(0))
    #expect(events.all.count == 2)
  }

  @Test("An observer may use the cache, and ends when it is cancelled")
  func observer() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let counts = Record<Int>()
    let observation = cache.observe { [weak cache] event in
      guard let cache, case .removed = event else { return }
      counts.add((try? cache.count()) ?? -1)
      _ = try? cache.setValue(0, forKey: "by the observer")
    }
    try cache.setValue(1, forKey: "a")
    try cache.removeValue(forKey: "a")
    #expect(counts.all == [0])
    #expect(try cache.value(forKey: "by the observer") == 0)
    observation.cancel()
    #expect(!cache.isObserved)
    try cache.removeValue(forKey: "by the observer")
    #expect(counts.all == [0])
  }

  @Test("A stream has the events and ends with the cache")
  func stream() async throws {
    var cache: DiskCache<Int, Int>? = try scene.cache()
    let stream = try #require(cache?.events())
    try await cache?.setValue(1, forKey: 1)
    try await cache?.removeValue(forKey: 1)
    // Background jobs hold the store.
    try await cache?.close()
    scene.background.discardAll()
    cache = nil
    var events: [CacheEvent<Int>] = []
    for await event in stream { events.append(event) }
    #expect(events == [.inserted(key: 1), .removed(key: 1, cause: .removed)])
  }

  @Test("Keys are decoded only while there is an observer")
  func lazyDecoding() throws {
    let decoded = Record<Int>()
    let cache = try scene.cache(
      keys: KeyCoder<String>.custom(
        encode: { Array($0.utf8) },
        decode: { bytes in
          decoded.add(bytes.byteCount)
          return "?"
        }), values: ValueCoder<String>.string)
    try cache.setValue("1", forKey: "abc")
    try cache.setValue("2", forKey: "abc")
    #expect(decoded.all == [])
    let observation = cache.observe { _ in }
    try cache.setValue("3", forKey: "abc")
    #expect(decoded.all == [3])
    observation.cancel()
    try cache.setValue("4", forKey: "abc")
    #expect(decoded.all == [3])
  }

  @Test("The observer of the store's configuration is called too")
  func chained() throws {
    let events = Record<RemovalEvent>()
    let cache: DiskCache<String, String> = try scene.cache {
      $0.store.removalObserver = { events.add($0) }
    }
    let version = try cache.setValue("1", forKey: "a")
    try cache.setValue("2", forKey: "a")
    #expect(events.all == [.entry(key: Array("a".utf8), version: version, cause: .replaced)])
    #expect(try cache.statistics()["replacements"] == 1)
  }

  @Test("Statistics count what happened and what is held")
  func statistics() throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache()
    #expect(try cache.statistics().hitRatio == nil)
    for number in 0..<4 { try cache.setValue([1, 2, 3], forKey: number) }
    try cache.setValue([4], forKey: 0)
    for number in 0..<8 { _ = try cache.value(forKey: number) }
    _ = try cache.contains(0)
    _ = try cache.info(forKey: 99)
    _ = try cache.metadata(forKey: 99)
    try cache.removeValue(forKey: 0)
    try cache.trim(.toCount(2))
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 4)
    #expect(statistics.missCount == 4)
    #expect(statistics.hitRatio == 0.5)
    #expect(statistics["insertions"] == 5)
    #expect(statistics["replacements"] == 1)
    #expect(statistics["removals"] == 1)
    #expect(statistics["evictions.trim"] == 1)
    #expect(statistics.evictionCount == 1)
    #expect(statistics.count == 2)
    #expect(statistics.liveByteCount == (try cache.totalCost()))
    let store = try cache.storeStatistics()
    #expect(statistics.liveByteCount == store.liveByteCount)
    #expect(Int(statistics["deadBytes"]) == store.deadByteCount)
    #expect(statistics.allocatedByteCount > 0)
    #expect(statistics.allocatedByteCount > statistics.liveByteCount)
    try cache.removeAll()
    #expect(try cache.statistics()["removals"] == 3)
    #expect(try cache.statistics().liveByteCount == 0)
  }

  @Test("Counts without a system call agree with the store's, even after a reopen")
  func usage() throws {
    for round in 0..<3 {
      let cache: DiskCache<Int, [UInt8]> = try scene.cache { $0.store.segmentByteLimit = 64 << 10 }
      for number in 0..<300 {
        try cache.setValue(
          [UInt8](repeating: 1, count: 1000), forKey: number % (50 + round * 20))
      }
      let statistics = try cache.statistics()
      let store = try cache.storeStatistics()
      #expect(statistics.count == store.count)
      #expect(statistics.liveByteCount == store.liveByteCount)
      #expect(Int(statistics["deadBytes"]) == store.deadByteCount)
      try cache.close()
      let reopened: DiskCache<Int, [UInt8]> = try scene.cache()
      let later = try reopened.statistics()
      let laterStore = try reopened.storeStatistics()
      #expect(later.liveByteCount == laterStore.liveByteCount)
      #expect(Int(later["deadBytes"]) == laterStore.deadByteCount)
      try reopened.close()
    }
  }
}

@Suite("Damage under a cache on disk")
struct DiskDamageEventTests {
  let scene = DiskScene()

  /// Changes a byte of the value that contains the text.
  private func damage(_ text: String) throws {
    for (name, var data) in try contents(ofDirectory: scene.path) where name.hasPrefix("seg-") {
      guard let range = data.firstRange(of: Data(text.utf8)) else { continue }
      data[range.lowerBound] ^= 1
      let file = try FileHandle(forUpdating: URL(filePath: "\(scene.path)/\(name)"))
      try file.write(contentsOf: data)
      try file.close()
    }
  }

  @Test("A scrub reports the keys of damaged values to observers; the values stay")
  func damaged() throws {
    let told = Record<Damage>()
    let cache: DiskCache<String, String> = try scene.cache {
      $0.store.damageObserver = { told.add($0) }
    }
    let events = Record<CacheEvent<String>>()
    for name in ["a", "b", "c"] { try cache.setValue("a value of \(name)", forKey: name) }
    try cache.sync()
    try damage("a value of b")
    cache.observe { events.add($0) }
    let report = try cache.scrub()
    #expect(report.damage.map(\.keyCount) == [1])
    #expect(told.all == report.damage)
    #expect(events.all == [.damaged(key: "b")])
    #expect(try cache.count() == 3)
    try cache.setValue("sound", forKey: "b")
    #expect(try cache.scrub().damage == [])
  }

  @Test("Maintenance finds damage by itself")
  func byMaintenance() throws {
    let cache: DiskCache<String, String> = try scene.cache {
      $0.store.scrubBytesPerSecond = 1 << 20
    }
    let events = Record<CacheEvent<String>>()
    cache.observe { events.add($0) }
    try cache.setValue("a value of a", forKey: "a")
    try cache.sync()
    try damage("a value of a")
    scene.clock.advance(by: .seconds(1))
    scene.background.runAll(dueAfter: .seconds(1))
    #expect(events.all == [.inserted(key: "a"), .damaged(key: "a")])
  }
}
