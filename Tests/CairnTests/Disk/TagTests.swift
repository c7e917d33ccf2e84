import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Entries with tags", .timeLimit(.minutes(10)))
struct TagTests {
  let scene = TieredScene()

  /// A cache with or without a memory tier.
  private func cache(
    tiered: Bool, count: Int? = nil, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> DiskCache<String, String> {
    if tiered { return try scene.cache(count: count, change) }
    return try scene.disk.cache(count: count, change)
  }

  private func sweep(_ cache: DiskCache<String, String>) throws {
    try cache.maintain()
    #expect(try cache.statistics().sweepingTagCount == 0)
  }

  /// Expects that no read finds a key, whatever the kind of read.
  private func expectAbsent(_ key: String, _ cache: DiskCache<String, String>) throws {
    #expect(try !cache.contains(key))
    #expect(try cache.peekValue(forKey: key) == nil)
    #expect(try cache.info(forKey: key) == nil)
    #expect(try cache.metadata(forKey: key) == nil)
    #expect(try cache.lookUp(key) == .absent)
    #expect(try cache.memory?.value(forKey: key) == nil)
    #expect(try cache.memory?.contains(key) != true)
    #expect(try cache.value(forKey: key) == nil)
    #expect(try cache.entry(forKey: key) == nil)
    #expect(try cache.withValue(forKey: key) { _ in true } == nil)
    #expect(cache[key] == nil)
    #expect(try !cache.keys().contains(key))
    var seen: [String] = []
    try cache.forEachEntry { entry in
      seen.append(entry.key)
      return .next
    }
    #expect(!seen.contains(key))
    try cache.remove { found, _ in
      #expect(found != key)
      return false
    }
  }

  @Test(
    "A load with a policy does not return a value whose tag was removed", arguments: [false, true])
  func load(tiered: Bool) async throws {
    let cache = try cache(tiered: tiered)
    try await cache.setValue("old", forKey: "a", options: .tags(["x"]))
    var policy = LoadPolicy()
    policy.refreshAhead = 0.5
    let refreshing = policy
    @Sendable func load(_ value: String) async throws -> String {
      try await cache.value(forKey: "a", policy: refreshing) { value }
    }
    #expect(try await load("unused") == "old")
    try await cache.removeAll(tagged: "x")
    #expect(try await load("new") == "new")
    #expect(try await load("unused") == "new")
  }

  @Test(
    "A removal by tag removes the entries that have it, and no others", arguments: [false, true])
  func removal(tiered: Bool) throws {
    let cache = try cache(tiered: tiered)
    try cache.setValue("1", forKey: "a", options: .tags(["x", "y"]))
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    try cache.setValue("3", forKey: "c", options: .tags(["xx"]))
    try cache.setValue("4", forKey: "d")
    for key in ["a", "b", "c", "d"] { #expect(try cache.value(forKey: key) != nil) }
    #expect(try cache.keys(tagged: "y").sorted() == ["a", "b"])
    try cache.removeAll(tagged: "x")
    try expectAbsent("a", cache)
    for key in ["b", "c", "d"] { #expect(try cache.value(forKey: key) != nil) }
    #expect(try cache.keys(tagged: "y") == ["b"])
    #expect(try cache.keys().sorted() == ["b", "c", "d"])
    // Values written from then on are found, and distinguished from earlier ones.
    try cache.setValue("5", forKey: "a", options: .tags(["x"]))
    #expect(try cache.value(forKey: "a") == "5")
    #expect(try cache.keys(tagged: "x") == ["a"])
    try sweep(cache)
    #expect(try cache.count() == 4)
    #expect(try cache.value(forKey: "a") == "5")
    // A second removal finds what came after the first.
    try cache.removeAll(tagged: "x")
    try expectAbsent("a", cache)
    try cache.removeAll(tagged: "x")
    try sweep(cache)
    try expectAbsent("a", cache)
    #expect(try cache.count() == 3)
    #expect(try cache.statistics().heldCount == 3)
  }

  @Test("The sweep removes hidden entries in bounded rounds, reports them, and removes the mark")
  func rounds() throws {
    let cache = try cache(tiered: false)
    try cache.setValues(
      (0..<10_000).map { (key: "\($0)", value: "value") }, options: .tags(["many"]))
    try cache.setValues((0..<100).map { (key: "other \($0)", value: "value") })
    scene.disk.background.runAll()
    let removed = Lock(0)
    let seen = cache.observe { event in
      guard case .removed(_, .removed) = event else { return }
      removed.withLock { $0 += 1 }
    }
    let version = cache.store.lastVersion
    try cache.removeAll(tagged: "many")
    // However many entries there are, the removal is one write.
    #expect(cache.store.lastVersion == version + 1)
    #expect(removed.withLock { $0 } == 0)
    #expect(try cache.statistics().sweepingTagCount == 1)
    var counts: [Int] = []
    while try cache.statistics().sweepingTagCount > 0, scene.disk.background.runFirst() {
      counts.append(removed.withLock { $0 })
      // This holds in the middle of the sweep, too.
      #expect(try cache.value(forKey: "9999") == nil)
      #expect(try cache.count() == 10_100 - counts[counts.count - 1])
    }
    let steps = zip([0] + counts, counts).map { $1 - $0 }
    #expect(steps.allSatisfy { $0 < 4500 } && steps.filter { $0 > 0 }.count >= 3, "\(steps)")
    #expect(removed.withLock { $0 } == 10_000)
    #expect(try cache.count() == 100)
    #expect(try cache.keys().count == 100)
    #expect(try cache.statistics().heldCount == 100)
    #expect(try cache.store.count() == 100)
    seen.cancel()
  }

  @Test("Hidden entries stay hidden when the cache is reopened", arguments: [false, true])
  func reopened(tiered: Bool) throws {
    do {
      let cache = try cache(tiered: tiered)
      try cache.setValue("1", forKey: "a", options: .tags(["x"]))
      try cache.setValue("2", forKey: "b", options: .tags(["y"]))
      try cache.removeAll(tagged: "x")
      try cache.setValue("3", forKey: "c", options: .tags(["x"]))
      try cache.close()
    }
    let cache = try cache(tiered: tiered)
    #expect(try cache.statistics().sweepingTagCount == 1)
    try expectAbsent("a", cache)
    #expect(try cache.value(forKey: "b") == "2")
    #expect(try cache.value(forKey: "c") == "3")
    // The pass that the open requested is enough.
    scene.disk.background.runAll()
    #expect(try cache.statistics().sweepingTagCount == 0)
    #expect(try cache.count() == 2)
    try cache.compact()
    try cache.close()
    let again = try self.cache(tiered: tiered)
    #expect(try again.keys().sorted() == ["b", "c"])
  }

  @Test("A second removal of a tag during its sweep covers what came in between")
  func removalDuringSweep() throws {
    let cache = try cache(tiered: false)
    try cache.setValues((0..<9000).map { (key: "\($0)", value: "value") }, options: .tags(["x"]))
    scene.disk.background.runAll()
    try cache.removeAll(tagged: "x")
    while try cache.count() == 9000, scene.disk.background.runFirst() {}
    let left = try cache.count()
    #expect(left > 0 && left < 9000)
    try cache.setValues((0..<9000).map { (key: "\($0)", value: "new") }, options: .tags(["x"]))
    #expect(try cache.count() == 9000)
    try cache.removeAll(tagged: "x")
    try cache.setValue("newest", forKey: "5", options: .tags(["x"]))
    try cache.removeAll(tagged: "other")
    #expect(try cache.statistics().sweepingTagCount == 2)
    try sweep(cache)
    #expect(try cache.keys() == ["5"])
    #expect(try cache.value(forKey: "5") == "newest")
  }

  @Test("A conditional write finds what a read would find", arguments: [false, true])
  func expectations(tiered: Bool) throws {
    let cache = try cache(tiered: tiered)
    func hide(_ key: String) throws -> UInt64 {
      let version = try cache.setValue("old", forKey: key, options: .tags(["x"]))
      try cache.removeAll(tagged: "x")
      return version
    }
    let old = try hide("a")
    #expect(try cache.compareAndSet("1", forKey: "a", expecting: old) == .mismatch(current: nil))
    _ = try hide("a")
    guard case .stored = try cache.compareAndSet("1", forKey: "a", expecting: nil) else {
      return #expect(Bool(false), "it was absent")
    }
    let gone = try hide("b")
    #expect(try !cache.compareAndRemove(forKey: "b", expecting: gone))
    _ = try hide("b")
    #expect(try !cache.removeValue(forKey: "b"))
    _ = try hide("b")
    #expect(try cache.removeValues(forKeys: ["b"]) == 0)
    _ = try hide("b")
    #expect(try cache.takeValue(forKey: "b") == nil)
    #expect(try !cache.extendLifetime(forKey: "b", to: .seconds(60)))
    #expect(try cache.extendLifetimes(forKeys: ["b"], to: .seconds(60)) == 0)
    _ = try hide("b")
    #expect(try cache.updateValue("2", forKey: "b") == nil)
    _ = try hide("c")
    try cache.update(forKey: "c") { old in
      #expect(old == nil)
      return "3"
    }
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == ["1", "2", "3"])
  }

  @Test("An update keeps the tags, unless others are given")
  func updates() async throws {
    let cache = try cache(tiered: true)
    try await cache.setValue("1", forKey: "a", options: EntryOptions(metadata: [7], tags: ["x"]))
    try await cache.update(forKey: "a") { ($0 ?? "") + "2" }
    #expect(try cache.keys(tagged: "x") == ["a"])
    try await cache.update(forKey: "a") { ($0 ?? "") + "3" }
    #expect(try cache.value(forKey: "a") == "123")
    #expect(try cache.metadata(forKey: "a") == [7])
    #expect(try cache.keys(tagged: "x") == ["a"])
    try await cache.update(forKey: "a", options: .tags(["y"])) { $0 }
    #expect(try cache.keys(tagged: "x").isEmpty)
    #expect(try cache.keys(tagged: "y") == ["a"])
    try await cache.update(forKey: "a", options: .tags([])) { $0 }
    #expect(try cache.keys(tagged: "y").isEmpty)
    #expect(try cache.metadata(forKey: "a") == [7])
  }

  @Test(
    "An update starts over if the tag is removed between its read and its write",
    arguments: [false, true])
  func updateAcrossRemoval(isAsync: Bool) async throws {
    let cache = try cache(tiered: true)
    try await cache.setValue("old", forKey: "a", options: .tags(["x"]))
    var seen: [String?] = []
    func change(_ old: String?) throws -> String? {
      seen.append(old)
      if seen.count == 1 { try cache.removeAll(tagged: "x") }
      return "new"
    }
    if isAsync {
      try await cache.update(forKey: "a", change)
    } else {
      try cache.synchronous { _ = try $0.update(forKey: "a", change) }
    }
    #expect(seen == ["old", nil])
    #expect(try cache.keys(tagged: "x").isEmpty)
    #expect(try cache.value(forKey: "a") == "new")
  }

  @Test("A write whose tag is removed after its read is refused under the lock of the log")
  func keptOff() throws {
    let cache = try cache(tiered: false)
    let version = try cache.setValue("old", forKey: "a", options: .tags(["x"]))
    let removed = try cache.setValue("old", forKey: "b", options: .tags(["y"]))
    func compareAndSet(
      _ key: String, _ version: UInt64, _ tags: [[UInt8]]
    ) throws -> CompareAndSetResult {
      var removals: [RemovalEvent] = []
      return try "new".withBytes { value in
        try key.withBytes { key in
          try cache.enter(
            value, forKey: key, expecting: version, tags, options: .standard, durability: nil,
            in: cache.store, removals: &removals
          ).result
        }
      }
    }
    func guarded(_ key: String, _ version: UInt64) throws -> [[UInt8]] {
      try key.withBytes { (key) in try cache.guardedTags(key, of: version) }
    }
    let tags = try guarded("b", removed)
    #expect(tags == [Array("y".utf8)])
    #expect(try guarded("b", removed + 1) == [])
    try cache.removeAll(tagged: "y")
    let result = try compareAndSet("b", removed, tags)
    #expect(result == .mismatch(current: removed))
    #expect(cache.waits(for: tags, after: result, expecting: removed))
    // The write waits for a removal in progress.
    let others = try guarded("a", version)
    cache.marks.beginRemoval(of: Array("x".utf8))
    #expect(try compareAndSet("a", version, others) == .mismatch(current: version))
    cache.marks.endRemoval(of: Array("x".utf8))
    guard case .stored = try compareAndSet("a", version, others) else {
      return #expect(Bool(false), "nothing was removed after all")
    }
  }

  @Test("A batch takes tags")
  func batches() throws {
    let cache = try cache(tiered: true)
    try cache.write { batch in
      try batch.setValue("1", forKey: "a", options: .tags(["x"]))
      try batch.setValue("2", forKey: "b")
    }
    try cache.removeAll(tagged: "x")
    #expect(try cache.keys() == ["b"])
    try expectAbsent("a", cache)
  }

  @Test("Exceeding a tag limit is a typed error, and nothing is written")
  func limits() throws {
    let cache = try cache(tiered: true)
    func error(_ body: () throws -> Void) -> CacheError? {
      do {
        try body()
        return nil
      } catch { return error as? CacheError }
    }
    let long = String(repeating: "x", count: 256)
    let many = (0..<33).map { "\($0)" }
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags([long])) }
        == .invalidTag(byteCount: 256, limit: 255))
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags([""])) }
        == .invalidTag(byteCount: 0, limit: 255))
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags(many)) }
        == .tooManyTags(count: 33, limit: 32))
    #expect(
      error { try cache.write { try $0.setValue("", forKey: "a", options: .tags(many)) } }
        == .tooManyTags(count: 33, limit: 32))
    #expect(error { try cache.removeAll(tagged: "") } == .invalidTag(byteCount: 0, limit: 255))
    #expect(error { _ = try cache.keys(tagged: long) } == .invalidTag(byteCount: 256, limit: 255))
    #expect(try cache.count() == 0)
    // As many tags as allowed. A tag that is given twice counts once.
    let most = (0..<32).map { "\($0)" + String(repeating: "é", count: 126) }
    try cache.setValue("", forKey: "a", options: .tags(most + most))
    #expect(try cache.keys(tagged: most[31]) == ["a"])
    for number in 0..<1000 { try cache.removeAll(tagged: "\(number)") }
    #expect(error { try cache.removeAll(tagged: "x") } == .tooManyRemovedTags(limit: 1000))
    // A tag that is already marked can be removed again.
    try cache.removeAll(tagged: "7")
    try sweep(cache)
    try cache.removeAll(tagged: most[0])
    try expectAbsent("a", cache)
  }

  @Test("A key with the cache's reserved prefix is refused")
  func reservedKeys() async throws {
    let cache = try cache(tiered: true)
    let key = "\0cairn/reserved/tags"
    try await cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try await cache.removeAll(tagged: "x")
    #expect(throws: CacheError.reservedKey) { try cache.setValue("", forKey: key) }
    #expect(throws: CacheError.reservedKey) {
      try cache.compareAndSet("", forKey: key, expecting: nil)
    }
    #expect(throws: CacheError.reservedKey) { try cache.removeValue(forKey: key) }
    #expect(throws: CacheError.reservedKey) { try cache.removeValues(forKeys: ["b", key]) }
    #expect(throws: CacheError.reservedKey) { try cache.takeValue(forKey: key) }
    #expect(throws: CacheError.reservedKey) {
      try cache.extendLifetime(forKey: key, to: .seconds(1))
    }
    #expect(throws: CacheError.reservedKey) {
      try cache.write { try $0.removeValue(forKey: key) }
    }
    await #expect(throws: CacheError.reservedKey) { try await cache.setValue("", forKey: key) }
    try expectAbsent(key, cache)
    try expectAbsent("a", cache)
    // A key that shares only part of the prefix is allowed.
    try await cache.setValue("2", forKey: "\0cairn/reserve")
    #expect(try cache.keys() == ["\0cairn/reserve"])
  }

  @Test("No limit and no trim removes a mark", arguments: [false, true])
  func pressure(tiered: Bool) throws {
    let cache = try cache(tiered: tiered, count: 10) { $0.idleLimit = .seconds(60) }
    try cache.setValue("old", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    for number in 0..<100 {
      try cache.setValue("value", forKey: "\(number)")
      // The mark takes no entry's place.
      #expect(try cache.keys().count <= 10)
      try expectAbsent("a", cache)
    }
    #expect(try cache.keys().count == 10)
    #expect(try cache.statistics().sweepingTagCount == 1)
    #expect(try cache.trim(toCount: 4).count == 6)
    #expect(try cache.keys().count == 4)
    try cache.trim(toCost: 1)
    #expect(try cache.count() == 0)
    try cache.setValue("1", forKey: "b")
    scene.disk.clock.advance(by: .seconds(3600))
    try cache.trim(olderThan: .seconds(1))
    try cache.removeExpired()
    try cache.trim(toCount: 0)
    #expect(try cache.keys().isEmpty)
    #expect(try cache.marks.recordCount() == 1)
    #expect(try cache.store.contains(ReservedKey.marks))
    try sweep(cache)
    #expect(try !cache.store.contains(ReservedKey.marks))
    for number in 0..<30 { try cache.setValue("value", forKey: "\(number)") }
    #expect(try cache.count() == 10)
    #expect(try cache.store.count() == 10)
  }

  @Test("A removal of everything removes the marks")
  func removalOfAll() throws {
    let cache = try cache(tiered: true)
    let counts = Lock<[Int]>([])
    cache.observe { event in
      if case .removedAll(let count) = event { counts.withLock { $0.append(count) } }
    }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    try cache.removeAll(tagged: "x")
    try cache.removeAll()
    #expect(counts.withLock { $0 } == [2])
    #expect(try cache.statistics().sweepingTagCount == 0)
    #expect(!cache.marks.isActive)
    try cache.setValue("3", forKey: "a", options: .tags(["x"]))
    #expect(try cache.value(forKey: "a") == "3")
    #expect(try cache.count() == 1)
    try cache.removeAll(tagged: "x")
    try expectAbsent("a", cache)
  }

  @Test("Observers do not see marks")
  func events() throws {
    let cache = try cache(tiered: true)
    let told = Lock<[CacheEvent<String>]>([])
    cache.observe { event in told.withLock { $0.append(event) } }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    try cache.removeAll(tagged: "y")
    #expect(told.withLock { $0 } == [.inserted(key: "a")])
    try sweep(cache)
    #expect(told.withLock { $0 } == [.inserted(key: "a"), .removed(key: "a", cause: .removed)])
    #expect(try cache.statistics().replacementCount == 0)
    #expect(try cache.statistics().removalCount == 1)
  }

  @Test("A damaged record of marks hides all entries with tags")
  func distrusted() throws {
    do {
      let cache = try cache(tiered: false)
      try cache.setValue("1", forKey: "a", options: .tags(["x"]))
      try cache.setValue("2", forKey: "b")
      try cache.removeAll(tagged: "y")
      try cache.close()
    }
    let store = try scene.disk.store()
    try store.setValue([1, 2, 3], forKey: ReservedKey.marks)
    try store.close()
    let cache = try cache(tiered: false)
    try expectAbsent("a", cache)
    #expect(try cache.keys() == ["b"])
    try cache.setValue("3", forKey: "c", options: .tags(["x"]))
    #expect(try cache.value(forKey: "c") == "3")
    try sweep(cache)
    #expect(try cache.keys().sorted() == ["b", "c"])
  }
}
