import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

@Suite("A cache that follows another process")
struct FollowingCacheTests {
  let scene = FollowingScene()

  @Test(
    "Each read finds everything written before it, in memory or not", arguments: [nil, 50, Int.max])
  func everyRead(held: Int?) throws {
    let writer = try scene.writer()
    let follower = try scene.follower(held: held)
    #expect(try follower.count() == 0)
    for number in 0..<2000 {
      let key = "key \(number % 300)"
      try writer.setValue("value \(number)", forKey: key)
      #expect(try follower.value(forKey: key) == "value \(number)")
      #expect(try follower.value(forKey: key) == "value \(number)")
      if number % 5 == 0 {
        try writer.removeValue(forKey: key)
        #expect(try follower.value(forKey: key) == nil)
        #expect(try follower.contains(key) == false)
      }
      if number % 101 == 0 { scene.disk.background.runAll() }
    }
    try writer.removeAll()
    #expect(try follower.value(forKey: "key 1") == nil)
    try writer.close()
    try follower.close()
    #expect(
      cacheError { _ = try follower.value(forKey: "key 1") }
        == .closed(path: scene.disk.path))
  }

  @Test("A value is decoded once until it is rewritten, even after a compaction")
  func decodedOnce() throws {
    let writer = try scene.writer()
    for number in 0..<100 {
      try writer.setValue(String(repeating: "a", count: 900), forKey: "key \(number)")
    }
    let follower = try scene.follower()
    func readAll() throws {
      for number in 0..<100 { _ = try follower.value(forKey: "key \(number)") }
    }
    #expect(try scene.decodingCount(readAll) == 100)
    #expect(try scene.decodingCount(readAll) == 0)
    for number in 0..<50 { try writer.setValue("b", forKey: "key \(number)") }
    try writer.removeValue(forKey: "key 99")
    #expect(try scene.decodingCount(readAll) == 50)
    let before = try follower.storeStatistics().segments.map(\.id).sorted()
    try writer.compact()
    scene.disk.background.runAll()
    #expect(try scene.decodingCount(readAll) == 0)
    #expect(try follower.storeStatistics().segments.map(\.id).sorted() != before)
    #expect(follower.memory?.count() == 99)
    let statistics = try follower.statistics()
    #expect(statistics["memory.hits"] == 100 + 49 + 99)
    #expect(statistics.hitCount == 100 + 100 + 99 + 99 && statistics.missCount == 2)
  }

  @Test("Whatever the writer does, the follower finds what the writer finds", arguments: 0..<3)
  func anything(run: Int) throws {
    var random = FuzzRandom(seed: UInt64(run) &* 77 &+ 5)
    var writer = try scene.writer()
    let keys: [KeyCoder<String>] = [
      .standard,
      .custom {
        Array($0.utf8)
      } decode: { _ in
        throw CodingFailure("not asked for")
      },
      KeyCoder<String>.standard,
    ]
    let follower = try scene.follower(held: run == 0 ? 40 : .max, keys: keys[run]) {
      $0.store.mapsFiles = run != 1
    }
    let late = try scene.follower(.manual)
    var model: [String: String] = [:]
    var lateModel = model
    for step in 0..<1500 {
      let key = "key \(random.below(100))"
      let value = String(repeating: "\(step) ", count: random.below(200) + 1)
      switch random.below(60) {
      case 0..<40:
        try writer.setValue(value, forKey: key)
        model[key] = value
      case 40..<48:
        try writer.removeValue(forKey: key)
        model[key] = nil
      case 48..<51:
        let batch = (0..<random.below(30)).map { _ in "key \(random.below(100))" }
        try writer.setValues(batch.map { (key: $0, value: value) })
        for key in batch { model[key] = value }
      case 51:
        try writer.setValue(value, forKey: key, lifetime: .seconds(60))
        #expect(try follower.value(forKey: key) == value)
        scene.clock.advance(by: .seconds(61))
        model[key] = nil
        // The value is found again, although memory has dropped it.
        try writer.setValue(value, forKey: "long", lifetime: .seconds(60))
        #expect(try follower.value(forKey: "long") == value)
        try writer.setLifetime(.seconds(6000), forKey: "long")
        scene.clock.advance(by: .seconds(61))
        #expect(try follower.value(forKey: "long") == value)
        try writer.removeValue(forKey: "long")
      case 52: try writer.compact()
      case 53: if random.below(4) == 0 { try writer.removeAll(); model = [:] }
      case 54:
        try writer.close()
        writer = try scene.writer()
      case 55:
        try late.catchUp()
        lateModel = model
      case 56:
        try writer.trim(.toCount(60))
        model = model.filter { (try? writer.contains($0.key)) == true }
      default: scene.disk.background.runAll()
      }
      let context: Comment = "run \(run), step \(step)"
      for _ in 0..<3 {
        let key = "key \(random.below(100))"
        try #require(try follower.value(forKey: key) == model[key], context)
        if step % 8 == 0 {
          #expect(try follower.memory?.value(forKey: key) == model[key], context)
          #expect(try follower.entry(forKey: key)?.value == model[key], context)
          #expect(try follower.peekValue(forKey: key) == model[key], context)
          #expect(try follower.contains(key) == (model[key] != nil), context)
        }
        // A view that does not catch up does not change, except for lifetimes that end.
        if let found = try late.value(forKey: key) { #expect(found == lateModel[key], context) }
      }
    }
    if run != 1 { #expect(try Set(follower.keys()) == Set(model.keys)) }
    #expect(try follower.count() == model.count)
    try writer.close()
  }

  @Test("Another cache at the path has its own values, even if their versions are known")
  func replaced() throws {
    for name in ["first", "second"] {
      let cache = try scene.writer(at: scene.disk(name))
      for key in ["a", "b", "c"] { try cache.setValue(name, forKey: key) }
      try cache.close()
    }
    let path = scene.disk.path
    try FileManager.default.moveItem(atPath: scene.disk("first"), toPath: path)
    let follower = try scene.follower()
    for key in ["a", "b"] { #expect(try follower.value(forKey: key) == "first") }
    try FileManager.default.moveItem(atPath: path, toPath: scene.disk("old"))
    try FileManager.default.moveItem(atPath: scene.disk("second"), toPath: path)
    #expect(cacheError { try follower.catchUp() } == .outdated(path: path))
    for key in ["a", "b", "c"] { #expect(try follower.value(forKey: key) == "second") }
    for key in ["a", "b", "c"] { #expect(try follower.memory?.value(forKey: key) == "second") }
    #expect(follower.memory?.count() == 3)
    #expect(try follower.info(forKey: "a")?.version == 1)
  }

  @Test("A value that was read before another cache appeared at the path is not kept")
  func readBeforeReplaced() throws {
    let path = scene.disk.path
    for name in ["first", "second"] {
      let cache = try scene.writer(at: scene.disk(name))
      try cache.setValue(name, forKey: "a")
      try cache.close()
    }
    try FileManager.default.moveItem(atPath: scene.disk("first"), toPath: path)
    // The cache is replaced while the value is decoded.
    let isDone = Atomic(false)
    let tier = Lock<DiskCache<String, String>?>(nil)
    let follower = try scene.follower(
      values: .custom {
        Array($0.utf8)
      } decode: { [scene] bytes in
        if !isDone.exchange(true, ordering: .relaxed) {
          try FileManager.default.moveItem(atPath: path, toPath: scene.disk("old"))
          try FileManager.default.moveItem(atPath: scene.disk("second"), toPath: path)
          let cache = tier.withLock { $0 }
          #expect(cacheError { try cache?.catchUp() } == .outdated(path: path))
          #expect(try cache?.value(forKey: "b") == nil)
        }
        return String(copying: bytes) ?? ""
      })
    tier.withLock { $0 = follower }
    #expect(try follower.value(forKey: "a") == "first")
    #expect(try follower.value(forKey: "a") == "second")
    tier.withLock { $0 = nil }
  }

  @Test("A followed cache is opened by path or name, and a missing one is not created")
  func opening() async throws {
    let path = scene.disk("plain")
    #expect(
      cacheError { _ = try DiskCache<String, String>.open(following: .path(path)) }
        == .noStore(path: path))
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(
      cacheError { _ = try DiskCache<String, String>.open(following: .name("a/b")) }
        == .invalidConfiguration(option: "name", reason: "\"a/b\" has a slash"))
    let url = try #require(URL(string: "https://a.example"))
    #expect(
      cacheError { _ = try DiskCache<String, String>.open(following: .url(url)) }
        == .invalidConfiguration(option: "name", reason: "https://a.example is not a file URL"))
    let writer = try await DiskCache<String, String>.open(.path(path), configuration: .init())
    let follower = try await DiskCache<String, String>.open(
      following: .path(path),
      configuration: DiskCacheConfiguration(
        memory: .init()))
    let manual = try writer.synchronous { _ in
      try DiskCache<String, String>.open(following: .path(path), freshness: .manual)
    }
    try await writer.setValue("1", forKey: "a")
    #expect(try follower.value(forKey: "a") == "1")
    #expect(try manual.value(forKey: "a") == nil)
    try await manual.catchUp()
    #expect(try manual.value(forKey: "a") == "1")
    #expect(manual.memory == nil)
    #expect(follower.name == "plain")
    // The writer follows nothing.
    try await writer.catchUp()
    try await writer.close()
  }
}
