import CairnStore
import FuzzSupport
import Glibc
import Testing

@testable import Cairn

/// What concurrent calls may do to each other, one order at a time.
@Suite("No read finds a value older than one found before", .timeLimit(.minutes(30)))
struct TieredCoherenceTests {
  let scene = TieredScene()

  private func key(_ text: String) -> TierKey<String> { TierKey(text) }

  @Test("TMCache: a read that was overtaken by a write left the old value in memory")
  func overtakenRead() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    cache.tier.removeAll()
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    let old = try #require(try cache.fetchedValue(forKey: "a"))
    try cache.setValue(2, forKey: "a")
    // This holds even if memory had to drop the new value.
    cache.tier.removeAll()
    cache.tier.held.promote(
      old.value, forKey: key("a"), ticket: ticket, version: old.version)
    #expect(try cache.value(forKey: "a") == 2)
    #expect(try cache.audit() == [])
  }

  @Test("A read that was overtaken by a removal does not bring the value back", arguments: 0..<6)
  func overtakenByRemoval(way: Int) throws {
    let cache: DiskCache<String, Int> = try scene.cache(count: 2)
    try cache.setValue(1, forKey: "a")
    cache.tier.removeAll()
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    let old = try #require(try cache.fetchedValue(forKey: "a"))
    switch way {
    case 0: try cache.removeValue(forKey: "a")
    case 1: try cache.removeAll()
    case 2: try cache.removeValue(forKey: "a")
    case 3: try cache.trim(toCount: 0)
    case 4: for next in ["b", "c", "d"] { try cache.setValue(2, forKey: next) }
    default: try cache.remove { _, _ in true }
    }
    cache.tier.held.promote(
      old.value, forKey: key("a"), ticket: ticket, version: old.version)
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.audit() == [])
  }

  @Test("Of two writes, the last to reach the disk stays, however late the other reaches memory")
  func writes() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    func entry(_ value: Int) -> PublishedEntry<String, Int> {
      PublishedEntry(value, key("a"), .standard, in: cache.tier.held)
    }
    for dropsNewer in [false, true] {
      let first = entry(1)
      let version = try cache.setStored(1, forKey: "a")
      try cache.setValue(2, forKey: "a")
      if dropsNewer { cache.tier.held.removeAll(cause: .evicted(.trim)) }
      first.publish(to: cache.tier.held, version: version, byteCount: 0)
      #expect(try cache.value(forKey: "a") == 2)
      #expect(try cache.audit() == [])
    }
    // The other way round, the newer one is inserted.
    let (old, new) = (entry(3), entry(4))
    let oldVersion = try cache.setStored(3, forKey: "a")
    let newVersion = try cache.setStored(4, forKey: "a")
    old.publish(to: cache.tier.held, version: oldVersion, byteCount: 0)
    new.publish(to: cache.tier.held, version: newVersion, byteCount: 0)
    #expect(try cache.tier.value(forKey: "a") == 4)
  }

  @Test("A write whose value was removed before it reached memory stays away")
  func removedWrite() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    for removesAll in [false, true] {
      let entry = PublishedEntry(1, key("a"), .standard, in: cache.tier.held)
      let version = try cache.setStored(1, forKey: "a")
      if removesAll { try cache.removeAll() } else { try cache.removeValue(forKey: "a") }
      entry.publish(to: cache.tier.held, version: version, byteCount: 0)
      #expect(try cache.value(forKey: "a") == nil)
    }
  }

  @Test("A caller that has found nothing does not find an earlier value afterwards")
  func absence() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let version = try cache.setStored(1, forKey: "a")
    let entry = PublishedEntry(1, key("a"), .standard, in: cache.tier.held)
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    // The key was removed, and memory was not updated yet.
    #expect(cache.tier.held.noteAbsent(key("a")) == nil)
    entry.publish(to: cache.tier.held, version: version, byteCount: 0)
    cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version)
    #expect(try !cache.tier.contains("a"))
  }

  @Test("A caller that has found a value does not find an older one afterwards", arguments: 0..<4)
  func monotony(way: Int) throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let old = try cache.setStored(1, forKey: "a")
    let entry = PublishedEntry(1, key("a"), .standard, in: cache.tier.held)
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    let promoted = cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: old)
    #expect(promoted)
    // As if a new value were on disk and memory were not updated yet.
    let new = old + 1
    switch way {
    case 0: cache.tier.held.noteShown(new, of: key("a"))
    // A promotion whose ticket is void.
    case 1: cache.tier.held.promote(2, forKey: key("a"), ticket: ticket, version: new)
    // A value for which memory has no room.
    case 2:
      let now = cache.tier.held.ticket(forKey: key("a"))
      cache.tier.held.promote(2, forKey: key("a"), ticket: now, cost: 0, version: new)
      cache.tier.removeAll()
    default: cache.tier.held.invalidate(key("a"), through: old, .replaced)
    }
    let isOld = try cache.tier.value(forKey: "a") == 1
    #expect(!isOld)
    cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: old)
    entry.publish(to: cache.tier.held, version: old, byteCount: 0)
    #expect(try cache.tier.value(forKey: "a") != 1)
  }

  @Test("A write hides what is in memory, even if it replaced nothing on disk")
  func writeBelow() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    for way in 0..<3 {
      let version = try cache.setValue(1, forKey: "a")
      try cache.removeValue(forKey: "a")
      // As if memory had not been updated after the removal yet.
      let ticket = cache.tier.held.ticket(forKey: key("a"))
      cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version)
      switch way {
      case 0: try cache.setValue(2, forKey: "a")
      case 1: try cache.setValues([(key: "a", value: 2)])
      default: _ = try cache.compareAndSet(2, forKey: "a", expecting: nil)
      }
      #expect(try cache.value(forKey: "a") == 2, "\(way)")
    }
  }

  @Test("A removal in a batch hides what another removal has yet to remove")
  func removalBelow() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let version = try cache.setValue(1, forKey: "a")
    try cache.removeValue(forKey: "a")
    // As if memory had not been updated after the removal yet.
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version)
    let told = Record<TierEvent<String>>()
    cache.observeTiers { told.add($0) }
    try cache.write { batch in try batch.removeValue(forKey: "a") }
    #expect(try cache.value(forKey: "a") == nil)
    #expect(told.all == [TierEvent(.removed(key: "a", cause: .removed), in: .memory)])
    // A later value is not affected.
    try cache.setValue(2, forKey: "a")
    #expect(try cache.tier.value(forKey: "a") == 2)
    #expect(try cache.audit() == [])
  }

  @Test("A version that a caller makes up keeps no later value out of memory")
  func madeUpVersion() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    #expect(try !cache.compareAndRemove(forKey: "a", expecting: .max))
    try cache.setValue(2, forKey: "a")
    #expect(cache.tier.held.peekValue(forKey: TierKey("a")) == 2)
  }

  @Test("A caller that is shown absence does not find the removed value", arguments: 0..<7)
  func shownAbsent(way: Int) throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let version = try cache.setValue(1, forKey: "a")
    try cache.removeValue(forKey: "a")
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version)
    switch way {
    case 0: #expect(try cache.info(forKey: "a") == nil)
    case 1: #expect(try cache.entry(forKey: "a") == nil)
    case 2: #expect(try cache.metadata(forKey: "a") == nil)
    case 3: #expect(try cache.withValue(forKey: "a") { $0.byteCount } == nil)
    case 4:
      #expect(
        try cache.compareAndSet(2, forKey: "a", expecting: version) == .mismatch(current: nil))
    case 5: #expect(try !cache.extendLifetime(forKey: "a", to: .seconds(1)))
    default: #expect(try cache.extendLifetimes(forKeys: ["b", "a"], to: .seconds(1)) == 0)
    }
    #expect(try cache.value(forKey: "a") == nil)
  }

  @Test("A caller that lists everything does not find anything older afterwards", arguments: 0..<4)
  func shownAll(way: Int) throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let old = try cache.setValue(1, forKey: "a")
    try cache.setValue(2, forKey: "a")
    // As if memory had not been updated with the second value yet.
    cache.tier.removeAll()
    let before = cache.tier.held.ticket(forKey: key("a"))
    cache.tier.held.promote(1, forKey: key("a"), ticket: before, version: old)
    #expect(try cache.tier.value(forKey: "a") == 1)
    switch way {
    case 0: try cache.forEachEntry { _ in .next }
    case 1: #expect(try cache.exportValue(forKey: "a", to: scene.disk("exported")))
    case 2: try cache.remove { _, _ in false }
    default:
      try cache.removeValue(forKey: "a")
      let ticket = cache.tier.held.ticket(forKey: key("a"))
      cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: old)
      #expect(try !cache.exportValue(forKey: "a", to: scene.disk("exported")))
    }
    #expect(try cache.value(forKey: "a") == (way == 3 ? nil : 2))
    cache.tier.held.promote(1, forKey: key("a"), ticket: before, version: old)
    #expect(try cache.value(forKey: "a") == (way == 3 ? nil : 2))
  }

  @Test(
    "A removal of all leaves nothing, even while another's is still being reported",
    arguments: 0..<6)
  func othersRemoval(way: Int) async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let told = Record<TierEvent<String>>()
    cache.observeTiers { told.add($0) }
    for isHeld in [true, false] {
      let version = try await cache.setValue(1, forKey: "a")
      try await cache.removeAll()
      // As if memory had not been updated after the removal yet.
      let ticket = cache.tier.held.ticket(forKey: key("a"))
      if isHeld { cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version) }
      told.removeAll()
      switch way {
      case 0: try await cache.removeAll()
      case 1: try await cache.trim(toCount: 0)
      case 2: try await cache.trim(toCost: 0)
      case 3: try await cache.trim(olderThan: .zero)
      case 4: try await cache.removeAll { _ in }
      default: try await cache.removeAll()
      }
      let event = TierEvent(CacheEvent<String>.removedAll(count: 1), in: .memory)
      #expect(told.all == (isHeld ? [event] : []))
      // A read that began earlier.
      cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: version)
      #expect(try cache.value(forKey: "a") == nil)
    }
  }

  @Test("A value that reached memory during the disk lookup is a hit and not a miss")
  func lateHit() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let ticket = cache.tier.held.ticket(forKey: key("a"))
    // Written, read here, and gone from the disk; memory was not updated yet.
    cache.tier.held.promote(1, forKey: key("a"), ticket: ticket, version: 1)
    #expect(try cache.fetchValue(key("a"), ticket, counts: true) == 1)
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 1 && statistics.missCount == 0)
    cache.tier.removeAll()
    #expect(try cache.fetchValue(key("a"), ticket, counts: false) == nil)
    #expect(try cache.statistics().hitCount == 1 && cache.statistics().missCount == 0)
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.statistics().missCount == 1)
  }

  @Test(
    "A value in memory ends no later than on disk, and is fetched again if it ends earlier"
  )
  func ends() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    // As far as another thread may have got with the extension.
    #expect(try cache.store.extendLifetime(forKey: "a", to: .seconds(30)))
    scene.advance(by: .seconds(10))
    #expect(try !cache.tier.contains("a"))
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.tier.contains("a"))
    #expect(try cache.audit() == [])
  }

  @Test("TMCache: an observer that used the cache deadlocked; here it runs under no lock")
  func observers() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 2, count: 3)
    let depth = Record<Int>()
    cache.observe { [weak cache] event in
      guard let cache, depth.all.count < 200 else { return }
      depth.add(1)
      _ = try? cache.value(forKey: 1)
      _ = try? cache.statistics()
      switch event {
      case .inserted(let key): if key < 10 { _ = try? cache.setValue(key, forKey: key + 10) }
      case .removed(let key, _): if key < 10 { _ = try? cache.removeValue(forKey: key + 10) }
      default: break
      }
      _ = try? cache.trim(toCount: 3)
    }
    for key in 0..<6 { try cache.setValue(key, forKey: key) }
    try cache.removeAll()
    #expect(depth.all.count > 20)
    #expect(try cache.audit() == [])
  }

  @Test("An observer of a removal does not find the removed value in memory")
  func toldLater() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let found = Record<Int?>()
    cache.observe { [weak cache] event in
      if case .removed(let key, _) = event { found.add(try? cache?.tier.value(forKey: key)) }
    }
    try cache.setValue(1, forKey: "a")
    try cache.setValue(2, forKey: "a")
    try cache.removeValue(forKey: "a")
    #expect(found.all == [2, nil])
  }

  // MARK: Writes that fail

  private func simulated(
    _ body: (DiskCache<String, [UInt8]>, SimulatedFileSystem) throws -> Void
  ) throws {
    let disk = SimulatedDisk()
    disk.makeDirectory("/data")
    let files = SimulatedFileSystem(disk: disk, seed: 1)
    let cache: DiskCache<String, [UInt8]> = try scene.cache(
      keys: .string, values: .bytes, files: files, path: "/data/cache")
    try body(cache, files)
    files.intervene = nil
    scene.disk.background.discardAll()
  }

  @Test("A write that finds no room has not happened: the old value stays in both tiers")
  func noSpace() throws {
    try simulated { cache, files in
      try cache.setValue([1], forKey: "a")
      files.disk.capacity = files.disk.allocatedByteCount
      #expect {
        try cache.setValue([UInt8](repeating: 2, count: 1 << 20), forKey: "a")
      } throws: { error in
        if case CacheError.store(.noSpace) = error { true } else { false }
      }
      #expect(try cache.tier.value(forKey: "a") == [1])
      #expect(try cache.storedValue(forKey: "a") == [1])
      #expect(try cache.value(forKey: "a") == [1])
      files.disk.capacity = nil
      try cache.setValue([3], forKey: "a")
      #expect(try cache.value(forKey: "a") == [3])
    }
  }

  @Test(
    "A write of unknown durability is not in memory, nor is the old value")
  func durabilityUnknown() throws {
    try simulated { cache, files in
      try cache.setValue([1], forKey: "a")
      files.intervene = { $0 == .synchronizeData ? .fail(EIO) : nil }
      #expect {
        try cache.setValue([2], forKey: "a", durability: .durable)
      } throws: { error in
        if case CacheError.store(.durabilityUnknown) = error { true } else { false }
      }
      #expect(try !cache.tier.contains("a"))
      // What the disk shows counts.
      #expect(try cache.value(forKey: "a") == cache.storedValue(forKey: "a"))
    }
  }

  @Test("A value that cannot be encoded leaves the old one in both tiers")
  func unencodable() throws {
    let coder = ValueCoder<Int>.custom(
      encode: { value in
        if value < 0 { throw CodingFailure("below zero") }
        return [UInt8(value)]
      }, decode: { Int([UInt8](copying: $0)[0]) })
    let cache: DiskCache<String, Int> = try scene.cache(keys: .string, values: coder)
    try cache.setValue(1, forKey: "a")
    #expect(throws: CacheError.unencodableValue(cache: "cache", reason: "below zero")) {
      try cache.setValue(-1, forKey: "a")
    }
    #expect(throws: CacheError.self) { try cache.setValues([(key: "a", value: -1)]) }
    #expect(try cache.tier.value(forKey: "a") == 1 && cache.storedValue(forKey: "a") == 1)
    #expect(throws: CacheError.self) { try cache.setValue(1, forKey: "") }
  }
}
