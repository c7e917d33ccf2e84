import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Entries with tags", .timeLimit(.minutes(30)))
struct TagTests {
  let scene = TieredScene()

  @Test(
    "A load with a policy does not return a value whose tag was removed", arguments: [false, true])
  func load(tiered: Bool) async throws {
    let cache = try scene.tagged(tiered: tiered)
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
    let cache = try scene.tagged(tiered: tiered)
    try cache.setValue("1", forKey: "a", options: .tags(["x", "y"]))
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    try cache.setValue("3", forKey: "c", options: .tags(["xx"]))
    try cache.setValue("4", forKey: "d")
    for key in ["a", "b", "c", "d"] { #expect(try cache.value(forKey: key) != nil) }
    #expect(try cache.keys(tagged: "y").sorted() == ["a", "b"])
    try cache.removeAll(tagged: "x")
    try cache.expectAbsent("a")
    for key in ["b", "c", "d"] { #expect(try cache.value(forKey: key) != nil) }
    #expect(try cache.keys(tagged: "y") == ["b"])
    #expect(try cache.keys().sorted() == ["b", "c", "d"])
    // Values written from then on are found, and distinguished from earlier ones.
    try cache.setValue("5", forKey: "a", options: .tags(["x"]))
    #expect(try cache.value(forKey: "a") == "5")
    #expect(try cache.keys(tagged: "x") == ["a"])
    try cache.sweepTags()
    #expect(try cache.count() == 4)
    #expect(try cache.value(forKey: "a") == "5")
    // A second removal finds what came after the first.
    try cache.removeAll(tagged: "x")
    try cache.expectAbsent("a")
    try cache.removeAll(tagged: "x")
    try cache.sweepTags()
    try cache.expectAbsent("a")
    #expect(try cache.count() == 3)
    #expect(try cache.statistics().count == 3)
  }

  @Test("The sweep removes hidden entries in bounded rounds, reports them, and removes the mark")
  func rounds() throws {
    let cache = try scene.tagged(tiered: false)
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
    #expect(try cache.statistics()["sweepingTags"] == 1)
    var counts: [Int] = []
    while try cache.statistics()["sweepingTags"] > 0, scene.disk.background.runFirst() {
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
    #expect(try cache.statistics().count == 100)
    #expect(try cache.store.count() == 100)
    seen.cancel()
  }

  @Test("Hidden entries stay hidden when the cache is reopened", arguments: [false, true])
  func reopened(tiered: Bool) throws {
    do {
      let cache = try scene.tagged(tiered: tiered)
      try cache.setValue("1", forKey: "a", options: .tags(["x"]))
      try cache.setValue("2", forKey: "b", options: .tags(["y"]))
      try cache.removeAll(tagged: "x")
      try cache.setValue("3", forKey: "c", options: .tags(["x"]))
      try cache.close()
    }
    let cache = try scene.tagged(tiered: tiered)
    #expect(try cache.statistics()["sweepingTags"] == 1)
    try cache.expectAbsent("a")
    #expect(try cache.value(forKey: "b") == "2")
    #expect(try cache.value(forKey: "c") == "3")
    // The pass that the open requested is enough.
    scene.disk.background.runAll()
    #expect(try cache.statistics()["sweepingTags"] == 0)
    #expect(try cache.count() == 2)
    try cache.compact()
    try cache.close()
    let again = try scene.tagged(tiered: tiered)
    #expect(try again.keys().sorted() == ["b", "c"])
  }

  @Test("A second removal of a tag during its sweep covers what came in between")
  func removalDuringSweep() throws {
    let cache = try scene.tagged(tiered: false)
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
    #expect(try cache.statistics()["sweepingTags"] == 2)
    try cache.sweepTags()
    #expect(try cache.keys() == ["5"])
    #expect(try cache.value(forKey: "5") == "newest")
  }

  @Test("A conditional write finds what a read would find", arguments: [false, true])
  func expectations(tiered: Bool) throws {
    let cache = try scene.tagged(tiered: tiered)
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
    #expect(try !cache.setLifetime(.seconds(60), forKey: "b"))
    try cache.setValue("2", forKey: "b")
    _ = try hide("c")
    try cache.update(forKey: "c") { old in
      #expect(old == nil)
      return "3"
    }
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == ["1", "2", "3"])
  }

  @Test("An update keeps the tags, unless others are given")
  func updates() async throws {
    let cache = try scene.tagged(tiered: true)
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
    let cache = try scene.tagged(tiered: true)
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
    let cache = try scene.tagged(tiered: false)
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
            removals: &removals
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
    let cache = try scene.tagged(tiered: true)
    try cache.write { batch in
      try batch.setValue("1", forKey: "a", options: .tags(["x"]))
      try batch.setValue("2", forKey: "b")
    }
    try cache.removeAll(tagged: "x")
    #expect(try cache.keys() == ["b"])
    try cache.expectAbsent("a")
  }

  @Test("Exceeding a tag limit is a typed error, and nothing is written")
  func limits() throws {
    let cache = try scene.tagged(tiered: true)
    func error(_ body: () throws -> Void) -> StoreError? {
      do {
        try body()
        return nil
      } catch { return error as? StoreError }
    }
    let long = String(repeating: "x", count: 256)
    let many = (0..<33).map { "\($0)" }
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags([long])) }
        == .invalidTag(reason: "it has 256 bytes; it must have 1 to 255"))
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags([""])) }
        == .invalidTag(reason: "it has 0 bytes; it must have 1 to 255"))
    #expect(
      error { try cache.setValue("", forKey: "a", options: .tags(many)) }
        == .invalidTag(reason: "the entry has 33 tags; at most 32 are allowed"))
    #expect(
      error { try cache.write { try $0.setValue("", forKey: "a", options: .tags(many)) } }
        == .invalidTag(reason: "the entry has 33 tags; at most 32 are allowed"))
    #expect(
      error { try cache.removeAll(tagged: "") }
        == .invalidTag(reason: "it has 0 bytes; it must have 1 to 255"))
    #expect(
      error { _ = try cache.keys(tagged: long) }
        == .invalidTag(reason: "it has 256 bytes; it must have 1 to 255"))
    #expect(try cache.count() == 0)
    // As many tags as allowed. A tag that is given twice counts once.
    let most = (0..<32).map { "\($0)" + String(repeating: "é", count: 126) }
    try cache.setValue("", forKey: "a", options: .tags(most + most))
    #expect(try cache.keys(tagged: most[31]) == ["a"])
    for number in 0..<1000 { try cache.removeAll(tagged: "\(number)") }
    #expect(
      error { try cache.removeAll(tagged: "x") }
        == .invalidTag(reason: "1000 removed tags still have entries to remove"))
    // A tag that is already marked can be removed again.
    try cache.removeAll(tagged: "7")
    try cache.sweepTags()
    try cache.removeAll(tagged: most[0])
    try cache.expectAbsent("a")
  }

  @Test("A key with the cache's reserved prefix is refused")
  func reservedKeys() async throws {
    let cache = try scene.tagged(tiered: true)
    let key = "\0cairn/reserved/tags"
    try await cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try await cache.removeAll(tagged: "x")
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.setValue("", forKey: key)
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.compareAndSet("", forKey: key, expecting: nil)
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.removeValue(forKey: key)
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.removeValues(forKeys: ["b", key])
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.takeValue(forKey: key)
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.setLifetime(.seconds(1), forKey: key)
    }
    #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try cache.write { try $0.removeValue(forKey: key) }
    }
    await #expect(throws: StoreError.invalidKey(reason: "its prefix is reserved for the cache")) {
      try await cache.setValue("", forKey: key)
    }
    try cache.expectAbsent(key)
    try cache.expectAbsent("a")
    // A key that shares only part of the prefix is allowed.
    try await cache.setValue("2", forKey: "\0cairn/reserve")
    #expect(try cache.keys() == ["\0cairn/reserve"])
  }
}
