import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Placement in one tier", .timeLimit(.minutes(10)))
struct PlacementTests {
  let scene = TieredScene()

  private func key(_ key: String) -> TierKey<String> { TierKey(key) }

  @Test("Options take ten words")
  func size() {
    #expect(MemoryLayout<EntryOptions>.stride == 80)
  }

  // MARK: Memory only

  @Test("A memory-only entry takes the place of an older one on disk, also after a reopen")
  func older() throws {
    for isReopened in [false, true] {
      var cache: DiskCache<String, Int> = try scene.cache()
      try cache.setValue(1, forKey: "a")
      try cache.setValue(2, forKey: "a", options: .alone)
      #expect(try cache.value(forKey: "a") == 2 && cache.storedValue(forKey: "a") == nil)
      if isReopened {
        try cache.close()
        cache = try scene.cache()
      } else {
        cache.tier.removeAll()
      }
      #expect(try cache.value(forKey: "a") == nil)
      try cache.close()
    }
  }

  @Test("A stale value on disk is not served after a memory-only one")
  func stale() async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(3600)
    let cache: DiskCache<String, Int> = try scene.cache { $0.loadPolicy = policy }
    try cache.synchronous { try $0.setValue(1, forKey: "a", options: .lifetime(.seconds(1))) }
    scene.clock.advance(by: .seconds(2))
    try await cache.setValue(2, forKey: "a", options: .alone)
    cache.tier.removeAll()
    struct Down: Error {}
    await #expect(throws: Down.self) { try await cache.value(forKey: "a") { throw Down() } }
  }

  @Test("All reads of a key find a memory-only entry, with what is known of it")
  func reads() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    let options = EntryOptions(
      cost: 3, lifetime: .seconds(9), metadata: [1], placement: .memory)
    let version = try cache.setValue("b", forKey: "z")
    #expect(try cache.setValue("x", forKey: "a", options: options) == version)
    #expect(try cache.entry(forKey: "a")?.value == "x")
    #expect(try cache.statistics().hitCount == 1 && cache.statistics().missCount == 0)
    #expect(try cache.entry(forKey: "a")?.metadata == [])
    let info = try #require(try cache.info(forKey: "a"))
    #expect(info.cost == 3 && info.version == version && info.valueByteCount == nil)
    #expect(info.expires == scene.clock.now().advanced(by: .seconds(9)))
    #expect(try cache.metadata(forKey: "a") == [])
    #expect(try cache.contains("a") && cache.peekValue(forKey: "a") == "x")
    #expect(try cache.lookUp("a") == .found("x"))
    #expect(try cache.withValue(forKey: "a") { $0.byteCount } == 1)
    #expect(try cache.values(forKeys: ["a", "q"]) == ["x", nil])
    #expect(try cache.entries(forKeys: ["a", "q"]).map { $0?.value } == ["x", nil])
    // Calls that go through the disk do not show the entry, but memory still has it.
    #expect(try cache.count() == 1 && cache.keys() == ["z"])
    #expect(try cache.value(forKey: "a") == "x")
    scene.clock.advance(by: .seconds(9))
    #expect(try cache.value(forKey: "a") == nil && cache.info(forKey: "a") == nil)
  }

  @Test("By default, a memory-only entry costs its bytes; its lifetime can be extended")
  func costAndLife() throws {
    let cache: DiskCache<String, [UInt8]> = try scene.cache(cost: 100)
    try cache.setValue([1, 2, 3], forKey: "a", options: .alone)
    #expect(try cache.info(forKey: "a")?.cost == 3)
    // A value that memory has no room for is kept nowhere.
    try cache.setValue([UInt8](repeating: 1, count: 101), forKey: "a", options: .alone)
    #expect(try cache.value(forKey: "a") == nil)
    try cache.setValue(
      [1], forKey: "a", options: EntryOptions(lifetime: .seconds(1), placement: .memory))
    try cache.setValue([2], forKey: "b", options: .lifetime(.seconds(1)))
    #expect(try cache.extendLifetime(forKey: "a", to: .seconds(5)))
    #expect(try !cache.extendLifetime(forKey: "none", to: .seconds(5)))
    scene.clock.advance(by: .milliseconds(900))
    #expect(try cache.extendLifetimes(forKeys: ["a", "b", "none"], to: .seconds(50)) == 2)
    scene.clock.advance(by: .seconds(20))
    #expect(try cache.value(forKey: "a") == [1] && cache.value(forKey: "b") == [2])
  }

  @Test("Every removal reaches a memory-only entry", arguments: 0..<9)
  func removals(kind: Int) async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try await cache.setValue(1, forKey: "a", options: .alone)
    switch kind {
    case 0: #expect(try cache.synchronous { try $0.removeValue(forKey: "a") })
    case 1: #expect(try cache.synchronous { try $0.takeValue(forKey: "a") } == 1)
    case 2: #expect(try cache.synchronous { try $0.removeValues(forKeys: ["a", "b"]) } == 1)
    case 3: try cache.synchronous { try $0.removeAll() }
    case 4: try cache.synchronous { try $0.write { try $0.removeValue(forKey: "a") } }
    case 5: _ = try cache.synchronous { try $0.remove { key, _ in key == "b" } }
    case 6: _ = try cache.synchronous { try $0.trim(olderThan: .seconds(60)) }
    case 7: _ = try cache.synchronous { try $0.trim(toCount: 0) }
    default: cache.synchronous { $0["a"] = nil }
    }
    #expect(try cache.value(forKey: "a") == nil && cache.tier.count() == 0)
    #expect(try !cache.synchronous { try $0.removeValue(forKey: "a") })
  }

  @Test(
    "A tag's removal reaches a memory-only entry, before and after the sweep; later ones are found")
  func tags() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let options = EntryOptions(tags: ["x"], placement: .memory)
    try cache.setValue(0, forKey: "other")
    for isSwept in [false, true] {
      try cache.setValue(1, forKey: "a", options: options)
      try cache.setValue(1, forKey: "untagged", options: .alone)
      #expect(try cache.value(forKey: "a") == 1)
      try cache.removeAll(tagged: "x")
      if isSwept { try cache.maintain() }
      #expect(try cache.value(forKey: "a") == nil && cache.info(forKey: "a") == nil)
      #expect(try !cache.contains("a") && cache.peekValue(forKey: "a") == nil)
      #expect(try cache.entry(forKey: "a") == nil && !cache.removeValue(forKey: "a"))
      #expect(try cache.value(forKey: "untagged") == 1)
      try cache.setValue(2, forKey: "a", options: options)
      #expect(try cache.value(forKey: "a") == 2)
      try cache.maintain()
      #expect(try cache.value(forKey: "a") == 2)
    }
    #expect(throws: CacheError.invalidTag(byteCount: 0, limit: 255)) {
      try cache.setValue(3, forKey: "a", options: EntryOptions(tags: [""], placement: .memory))
    }
    #expect(try cache.value(forKey: "a") == 2)
  }

  @Test("A cache's first tag removal reaches a memory-only entry, even if nothing was ever written")
  func firstTag() throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.memory?.policy = .s3FIFO }
    let options = EntryOptions(tags: ["x"], placement: .memory)
    #expect(try cache.setValue(1, forKey: "a", options: options) == 0)
    for _ in 0..<9 { #expect(try cache.value(forKey: "a") == 1) }
    try cache.removeAll(tagged: "x")
    #expect(try cache.value(forKey: "a") == nil && !cache.contains("a"))
    try cache.maintain()
    #expect(try cache.value(forKey: "a") == nil)
    try cache.setValue(2, forKey: "a", options: options)
    #expect(try cache.value(forKey: "a") == 2)
  }

  @Test("Whatever reached the disk later stays, in whichever order memory is told of both")
  func order() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    func entry(_ value: Int) -> PublishedEntry<String, Int> {
      PublishedEntry(value, key("a"), .standard, in: cache.tier.held)
    }
    // A value that reached the disk before, and is reported afterwards.
    let old = entry(1)
    let oldVersion = try cache.setStored(1, forKey: "a")
    try cache.setValue(2, forKey: "a", options: .alone)
    old.publish(to: cache.tier.held, version: oldVersion, byteCount: 0)
    #expect(try cache.value(forKey: "a") == 2 && cache.storedValue(forKey: "a") == nil)
    // A value that reached the disk after, and is reported afterwards.
    let new = entry(3)
    let newVersion = try cache.setStored(3, forKey: "a")
    new.publish(to: cache.tier.held, version: newVersion, byteCount: 0)
    #expect(try cache.value(forKey: "a") == 3)
    // Until memory is told, no read sees the later value.
    try cache.setValue(4, forKey: "a", options: .alone)
    let next = entry(5)
    let nextVersion = try cache.setStored(5, forKey: "a")
    #expect(try cache.value(forKey: "a") == 4 && cache.entry(forKey: "a")?.value == 4)
    #expect(try cache.metadata(forKey: "a") == [])
    #expect(try cache.withValue(forKey: "a") { $0.copied() } == Array("4".utf8))
    #expect(try cache.value(forKey: "a") == 4)
    next.publish(to: cache.tier.held, version: nextVersion, byteCount: 0)
    #expect(try cache.value(forKey: "a") == 5 && cache.entry(forKey: "a")?.value == 5)
  }

  @Test("An impossible placement is refused, and nothing has changed then")
  func refused() async throws {
    let error = CacheError.store(.unsupportedOption(name: "entry in memory only"))
    let plain: DiskCache<String, Int> = try scene.disk.cache(at: scene.disk("plain"))
    try await plain.setValue(1, forKey: "a")
    await #expect(throws: error) { try await plain.setValue(2, forKey: "a", options: .alone) }
    #expect(throws: error) {
      try plain.synchronous { try $0.setValue(2, forKey: "a", options: .alone) }
    }
    #expect(try plain.value(forKey: "a") == 1)
    let cache: DiskCache<String, Int> = try scene.cache()
    try checkRefusals(of: cache, error)
    // A load with this placement returns its value all the same.
    #expect(try await plain.value(forKey: "b", options: .alone) { 3 } == 3)
    #expect(try plain.value(forKey: "b") == nil && plain.loadStatistics.unkeptCount == 1)
    #expect(try await cache.value(forKey: "b", options: .alone) { 3 } == 3)
    #expect(try cache.value(forKey: "b") == 3 && cache.storedValue(forKey: "b") == nil)
  }

  private func checkRefusals(of cache: DiskCache<String, Int>, _ error: CacheError) throws {
    let version = try cache.setValue(1, forKey: "a", options: .tags(["x"]))
    #expect(throws: error) {
      try cache.compareAndSet(2, forKey: "a", expecting: version, options: .alone)
    }
    #expect(throws: error) { try cache.update(forKey: "a", options: .alone) { _ in 2 } }
    #expect(throws: error) { try cache.updateValue(2, forKey: "a", options: .alone) }
    #expect(throws: error) {
      try cache.write { batch in try batch.setValue(2, forKey: "a", options: .alone) }
    }
    #expect(try cache.value(forKey: "a") == 1)
    #expect(throws: StoreError.unsupportedOption(name: "entry in memory only")) {
      try cache.store.setValue("x", forKey: "s", options: .alone)
    }
  }

  // MARK: Disk only

  @Test("A disk-only write drops what memory has, and the first read brings the value there")
  func disk() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let options = EntryOptions(placement: .disk)
    for isAsync in [false, true] {
      try cache.synchronous { try $0.setValue(1, forKey: "a") }
      if isAsync {
        try await cache.setValue(2, forKey: "a", options: options)
      } else {
        try cache.synchronous { _ = try $0.setValue(2, forKey: "a", options: options) }
      }
      #expect(try !cache.tier.contains("a"))
      #expect(try cache.value(forKey: "a") == 2 && cache.tier.contains("a"))
    }
    // An older write that reaches memory later stays away.
    let old = PublishedEntry(3, key("a"), .standard, in: cache.tier.held)
    let version = try cache.setStored(3, forKey: "a")
    try cache.synchronous { _ = try $0.setValue(4, forKey: "a", options: options) }
    old.publish(to: cache.tier.held, version: version, byteCount: 0)
    #expect(try cache.value(forKey: "a") == 4)
    try cache.synchronous { cache in
      try cache.write { batch in try batch.setValue(5, forKey: "a", options: options) }
    }
    #expect(try !cache.tier.contains("a") && cache.value(forKey: "a") == 5)
    #expect(try cache.audit() == [])
  }
}
