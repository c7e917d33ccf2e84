import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

/// Values that are loaded, or read from disk into memory, while a tag is removed.
@Suite("Loads and promotions during a removal by tag", .timeLimit(.minutes(30)))
struct TagLoadTests {
  let scene = LoadScene()

  /// A policy that serves stale values for a while if loads fail.
  private static func serving(_ duration: Duration) -> LoadPolicy {
    var policy = LoadPolicy()
    policy.staleOnError = duration
    return policy
  }

  /// A load of "a" that waits at the gate before it returns.
  private func load(
    _ cache: DiskCache<String, String>, _ gate: Gate, tags: [String]?, policy: LoadPolicy?
  ) -> Task<String, any Error> {
    Task {
      try await cache.value(
        forKey: "a", policy: policy,
        orLoadEntry: {
          await gate.wait()
          return Loaded("loaded", options: EntryOptions(tags: tags))
        })
    }
  }

  @Test("The first call of a cache may be a load with tags", arguments: [false, true])
  func firstLoad(tiered: Bool) async throws {
    let cache = try scene.disk(.standard, memory: tiered)
    let gate = Gate()
    gate.open()
    #expect(try await load(cache, gate, tags: ["x"], policy: nil).value == "loaded")
    #expect(try cache.value(forKey: "a") == "loaded")
    try await cache.close()
  }

  @Test("A removal outdates a load that began before the first write", arguments: [false, true])
  func firstRemoval(isSwept: Bool) async throws {
    let cache = try scene.disk(.standard, memory: false)
    let gate = Gate()
    let task = load(cache, gate, tags: ["x"], policy: nil)
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: "x")
    if isSwept { try await cache.maintain() }
    gate.open()
    #expect(try await task.value == "loaded")
    #expect(try cache.value(forKey: "a") == nil)
    try await cache.close()
  }

  @Test(
    "A loaded value is not kept if its tag was removed since the load began",
    arguments: [false, true], [nil, LoadPolicy(), serving(.seconds(9))])
  func load(tiered: Bool, policy: LoadPolicy?) async throws {
    let cache = try scene.disk(.standard, memory: tiered)
    for (removed, isSwept, isKept) in [
      ("x", false, false), ("x", true, false), ("y", false, true), ("y", true, false),
    ] {
      try await cache.setValue("other", forKey: "b", options: .tags(["x", "y"]))
      let gate = Gate()
      let task = load(cache, gate, tags: ["x"], policy: policy)
      await eventually { gate.arrivedCount == 1 }
      try await cache.removeAll(tagged: removed)
      if isSwept { try await cache.maintain() }
      gate.open()
      #expect(try await task.value == "loaded")
      #expect(try cache.contains("a") == isKept, "\(removed) \(isSwept)")
      #expect(try (cache.value(forKey: "a") != nil) == isKept)
      try await cache.removeAll()
    }
    // A value without tags is kept, whatever was removed.
    let gate = Gate()
    let task = load(cache, gate, tags: nil, policy: policy)
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: "x")
    try await cache.maintain()
    gate.open()
    _ = try await task.value
    #expect(try cache.value(forKey: "a") == "loaded")
  }

  @Test(
    "A load from before a tag's removal is not kept, even after a removal of all; a later one is")
  func allGone() async throws {
    let cache = try scene.disk(.standard)
    try await cache.setValue("other", forKey: "b", options: .tags(["x"]))
    let gate = Gate()
    let task = load(cache, gate, tags: ["x"], policy: nil)
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: "x")
    // As a removal of everything does after it has notified the current loads.
    try cache.synchronous { try $0.store.removeAll() }
    gate.open()
    #expect(try await task.value == "loaded")
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try await load(cache, gate, tags: ["x"], policy: nil).value == "loaded")
    #expect(try cache.value(forKey: "a") == "loaded")
  }

  @Test(
    "A caller does not get the value of a load that began before a removal of its tag",
    arguments: ["x", "y"])
  func joined(removed: String) async throws {
    let cache = try scene.disk(.standard, memory: true)
    let gate = Gate()
    let first = load(cache, gate, tags: ["x"], policy: nil)
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: removed)
    let second = Task {
      try await cache.value(
        forKey: "a", policy: nil,
        orLoadEntry: { Loaded("new", options: EntryOptions(tags: ["x"])) })
    }
    await eventually { cache.flights.counts.joinedCount == 1 }
    gate.open()
    #expect(try await first.value == "loaded")
    // After the removal of another tag, the value is kept, so the origin is not called again.
    let expected = removed == "x" ? "new" : "loaded"
    #expect(try await second.value == expected)
    #expect(try cache.value(forKey: "a") == expected)
    #expect(cache.flights.counts.startedCount == (removed == "x" ? 2 : 1))
    try await cache.close()
  }

  @Test("A load that replaces a hidden entry is kept", arguments: [false, true])
  func reload(tiered: Bool) async throws {
    let cache = try scene.disk(.standard, memory: tiered)
    try await cache.setValue("old", forKey: "a", options: .tags(["x"]))
    try await cache.removeAll(tagged: "x")
    let gate = Gate()
    gate.open()
    #expect(try await load(cache, gate, tags: ["x"], policy: nil).value == "loaded")
    #expect(try cache.value(forKey: "a") == "loaded")
    try await cache.maintain()
    #expect(try cache.value(forKey: "a") == "loaded")
  }

  @Test("A stale value is no longer returned once its tag was removed", arguments: [false, true])
  func stale(tiered: Bool) async throws {
    struct Failure: Error {}
    let cache = try scene.disk(Self.serving(.seconds(600)), memory: tiered)
    try await cache.setValue(
      "stale", forKey: "a", options: EntryOptions(lifetime: .seconds(60), tags: ["x"]))
    scene.advance(by: .seconds(90))
    func ask() async throws -> String {
      try await cache.value(forKey: "a") { throw Failure() }
    }
    #expect(try await ask() == "stale")
    try await cache.removeAll(tagged: "x")
    await #expect(throws: Failure.self) { try await ask() }
    try await cache.maintain()
    await #expect(throws: Failure.self) { try await ask() }
  }

  @Test("'Not modified' does not bring back what was removed meanwhile", arguments: [false, true])
  func notModified(tiered: Bool) async throws {
    let cache = try scene.disk(Self.serving(.seconds(600)), memory: tiered)
    try await cache.setValue(
      "stale", forKey: "a", options: EntryOptions(lifetime: .seconds(60), tags: ["x"]))
    scene.advance(by: .seconds(90))
    let gate = Gate()
    let task = Task {
      try await cache.loaded(forKey: "a") { prior in
        await gate.wait()
        guard let prior else { return .loaded("none", options: .standard) }
        return prior.notModified(lifetime: .seconds(3600))
      }
    }
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: "x")
    gate.open()
    _ = try await task.value
    #expect(try cache.value(forKey: "a") == nil)
    try await cache.maintain()
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.count() == 0)
  }

  @Test("A value read on disk before the removal that reaches memory afterwards is not found")
  func promotion() throws {
    let cache = try scene.disk(.standard, memory: true)
    try cache.setStored("old", forKey: "a", options: .tags(["x"]))
    let old = try cache.fetchedValue(forKey: "a")
    try cache.removeAll(tagged: "x")
    old.promote(in: cache)
    #expect(try cache.memory?.value(forKey: "a") == nil)
    #expect(try cache.value(forKey: "a") == nil)
    try cache.maintain()
    #expect(!cache.marks.isActive)
    old.promote(in: cache)
    #expect(try cache.memory?.value(forKey: "a") == nil)
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.peekValue(forKey: "a") == nil)
  }

  @Test("Untagged values in memory are read from there while other tags are swept")
  func untagged() throws {
    let cache = try scene.disk(.standard, memory: true)
    try cache.setValue("1", forKey: "a")
    try cache.setValue("2", forKey: "b", options: .tags(["x"]))
    try cache.removeAll(tagged: "y")
    let hits = { try cache.statistics()["memory.hits"] }
    #expect(try cache.value(forKey: "a") == "1")
    #expect(try hits() == 1)
    // Only the disk knows the tags.
    #expect(try cache.value(forKey: "b") == "2")
    #expect(try hits() == 1)
    try cache.maintain()
    // The sweep has spared the value, so memory has it again.
    #expect(try cache.value(forKey: "b") == "2")
    #expect(try hits() == 2)
  }
}
