import CairnStore
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

@Suite("What a following cache does not do")
struct FollowingCacheCallTests {
  let scene = FollowingScene()
  var readOnly: StoreError { .readOnly(path: scene.disk.path) }

  @Test("Every write throws readOnly, and nothing changes", arguments: [nil, 10])
  func writes(held: Int?) throws {
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a")
    let follower = try scene.follower(held: held)
    #expect(try follower.value(forKey: "a") == "1")
    let version = try #require(try follower.info(forKey: "a")?.version)
    let writes: [(DiskCache<String, String>) throws -> Void] = [
      { try $0.setValue("2", forKey: "a") },
      { _ = try $0.compareAndSet("2", forKey: "a", expecting: version) },
      { _ = try $0.removeValue(forKey: "a") },
      { _ = try $0.removeValue(forKey: "b") },
      { _ = try $0.takeValue(forKey: "a") },
      { _ = try $0.compareAndRemove(forKey: "a", expecting: version) },
      { _ = try $0.update(forKey: "a") { _ in "2" } },
      { try $0.write { try $0.setValue("2", forKey: "a") } },
      { try $0.setValues([(key: "a", value: "2")]) },
      { _ = try $0.removeValues(forKeys: ["a"]) },
      { _ = try $0.setLifetime(.seconds(60), forKey: "a") },
      { try $0.removeAll() },
      { _ = try $0.remove { _, _ in true } },
      { _ = try $0.trim(.toCount(0, order: .leastRecentlyUsed)) },
      { _ = try $0.trim(.toBytes(10, order: .largestFirst)) },
      { _ = try $0.trim(.older(than: .zero)) },
      { _ = try $0.trim(.expired) },
      { try $0.setLimits(countLimit: 1, byteLimit: nil) },
      { _ = try $0.compact() },
      { try $0.maintain() },
    ]
    for (number, write) in writes.enumerated() {
      #expect(cacheError { try write(follower) } == readOnly, "write \(number)")
    }
    follower["a"] = "2"
    #expect(try follower.statistics()["subscriptFailures"] == 1)
    #expect(try follower.value(forKey: "a") == "1")
    #expect(try writer.entry(forKey: "a")?.info.version == version)
  }

  @Test("Every async write throws readOnly too")
  func awaitedWrites() async throws {
    try await scene.writer().close()
    let follower = try scene.follower()
    func error(_ body: () async throws -> Void) async -> StoreError? {
      do { try await body() } catch { return error as? StoreError }
      return nil
    }
    #expect(await error { try await follower.setValue("2", forKey: "a") } == readOnly)
    #expect(await error { _ = try await follower.removeValue(forKey: "a") } == readOnly)
    #expect(await error { try await follower.setValues([(key: "a", value: "2")]) } == readOnly)
    #expect(
      await error { try await follower.write { try $0.setValue("2", forKey: "a") } } == readOnly)
    #expect(await error { try await follower.removeAll() } == readOnly)
    #expect(await error { _ = try await follower.trim(.toCount(1)) } == readOnly)
    #expect(await error { _ = try await follower.compact() } == readOnly)
  }

  @Test("A loaded value is returned to all waiters, and kept nowhere", arguments: [nil, 10])
  func loading(held: Int?) async throws {
    let writer = try scene.writer()
    try writer.synchronous { try $0.setValue("there", forKey: "a") }
    let follower = try scene.follower(held: held)
    let count = Atomic(0)
    let load: @Sendable () async throws -> String = {
      count.add(1, ordering: .relaxed)
      return "loaded"
    }
    #expect(try await follower.value(forKey: "a", orLoad: load) == "there")
    #expect(count.load(ordering: .relaxed) == 0)
    #expect(try await follower.value(forKey: "b", orLoad: load) == "loaded")
    #expect(try follower.value(forKey: "b") == nil)
    #expect(try await follower.value(forKey: "b", orLoad: load) == "loaded")
    #expect(count.load(ordering: .relaxed) == 2)
    #expect(try follower.memory?.contains("b") != true)
    #expect(follower.flights.counts.unkeptCount == 2)
    // Once the writer has the value, nothing is loaded.
    try writer.synchronous { try $0.setValue("written", forKey: "b") }
    #expect(try await follower.value(forKey: "b", orLoad: load) == "written")
    #expect(count.load(ordering: .relaxed) == 2)

    let gate = Gate()
    async let first = follower.value(forKey: "c") {
      await gate.wait()
      return "once"
    }
    async let second = follower.value(forKey: "c") {
      await gate.wait()
      return "once"
    }
    await eventually { follower.flights.counts.joinedCount == 1 }
    gate.open()
    #expect(try await (first, second) == ("once", "once"))
    #expect(follower.flights.counts.startedCount == 3)
    try writer.synchronous { try $0.close() }
  }

  @Test("A stale value is returned according to the policy, and stays stale", arguments: [nil, 10])
  func stale(held: Int?) async throws {
    var changed = LoadPolicy()
    changed.staleOnError = .seconds(3600)
    let policy = changed
    let writer = try scene.writer { $0.loadPolicy = policy }
    try writer.synchronous { try $0.setValue("old", forKey: "a", lifetime: .seconds(60)) }
    let follower = try scene.follower(held: held) { $0.loadPolicy = policy }
    struct NotReached: Error {}
    let fresh = try await follower.loaded(forKey: "a") { _ in throw NotReached() }
    #expect(fresh?.value == "old" && fresh?.isStale == false)
    scene.clock.advance(by: .seconds(61))
    let stale = try await follower.loaded(forKey: "a") { _ in throw NotReached() }
    #expect(stale?.value == "old" && stale?.isStale == true)
    // The retry delay after a failure is over.
    scene.clock.advance(by: .seconds(600))
    let renewed = try await follower.loaded(forKey: "a") { prior in
      #expect(prior?.value == "old")
      return try #require(prior).notModified(lifetime: .seconds(60))
    }
    #expect(renewed?.value == "old")
    #expect(try follower.value(forKey: "a") == nil)
    scene.clock.advance(by: .seconds(1))
    try writer.synchronous { try $0.setValue("new", forKey: "a", lifetime: .seconds(60)) }
    let next = try await follower.loaded(forKey: "a") { _ in throw NotReached() }
    #expect(next?.value == "new" && next?.isStale == false)
  }

  @Test("An undecodable value stays, and a load works without it")
  func undecodable() async throws {
    let writer = try scene.writer()
    try writer.synchronous { try $0.setValue("text", forKey: "a") }
    let other = ValueCoder<String>.custom {
      Array($0.utf8)
    } decode: { _ in
      ""
    }.tagged(9)
    let keeping = try scene.follower(values: other)
    let dropping = try scene.follower(values: other) { $0.dropsUnreadableValues = true }
    let version = try #require(try writer.info(forKey: "a")?.version)
    #expect(
      cacheError { _ = try keeping.value(forKey: "a") }
        == .undecodable(
          version: version, reason: "it was written with the tag 0, not 9"))
    #expect(try dropping.value(forKey: "a") == nil)
    #expect(try await keeping.value(forKey: "a") { "loaded" } == "loaded")
    #expect(try await dropping.value(forKey: "a") { "loaded" } == "loaded")
    #expect(try writer.value(forKey: "a") == "text")
  }

  @Test("Observers of the cache see nothing, those of memory see what enters and leaves it")
  func events() throws {
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a")
    let follower = try scene.follower()
    let disk = Lock<[CacheEvent<String>]>([])
    let memory = Lock<[CacheEvent<String>]>([])
    follower.observe { event in disk.withLock { $0.append(event) } }
    follower.memory?.observe { event, _ in memory.withLock { $0.append(event) } }
    _ = try follower.value(forKey: "a")
    try writer.setValue("2", forKey: "a")
    _ = try follower.value(forKey: "a")
    try writer.removeAll()
    _ = try follower.value(forKey: "a")
    #expect(disk.withLock { $0 }.isEmpty)
    #expect(
      memory.withLock { $0 } == [
        .inserted(key: "a"), .removed(key: "a", cause: .replaced), .inserted(key: "a"),
        .removed(key: "a", cause: .removed),
      ])
  }

  @Test("The memory tier can be inspected and shrunk, and shows nothing expired")
  func tier() throws {
    let writer = try scene.writer()
    for key in ["a", "b", "c"] { try writer.setValue(key, forKey: key) }
    let follower = try scene.follower()
    let tier = try #require(follower.memory)
    #expect(try tier.value(forKey: "a") == nil)
    for key in ["a", "b", "c"] { _ = try follower.value(forKey: key) }
    #expect(tier.count() == 3)
    #expect(try tier.value(forKey: "a") == "a")
    #expect(try tier.info(forKey: "a")?.version == follower.info(forKey: "a")?.version)
    try writer.setValue("new", forKey: "a")
    try writer.removeValue(forKey: "b")
    #expect(try tier.value(forKey: "a") == nil)
    #expect(try tier.contains("b") == false)
    #expect(try tier.info(forKey: "b") == nil)
    tier.trim(.toCount(1, order: .leastRecentlyUsed))
    #expect(tier.count() == 1)
    follower.respond(to: .critical)
    #expect(tier.count() == 0)
    _ = try follower.value(forKey: "c")
    follower.enterBackground()
    #expect(tier.count() == 0)
  }
}
