import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Values on disk that cannot be decoded")
struct UnreadableValueTests {
  let scene = DiskScene()

  private func coder(tag: UInt32, decodes: Bool = true) -> ValueCoder<String> {
    .custom(
      encode: { Array($0.utf8) },
      decode: { bytes in
        let text = String(decoding: [UInt8](copying: bytes), as: UTF8.self)
        if !decodes && text != "anew" { throw CodingFailure("it will not") }
        return text
      }
    ).tagged(tag)
  }

  private func cache(
    tag: UInt32, decodes: Bool = true, drops: Bool = false,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> DiskCache<String, String> {
    try scene.cache(keys: .string, values: coder(tag: tag, decodes: decodes)) {
      $0.dropsUnreadableValues = drops
      change(&$0)
    }
  }

  @Test(
    "A value of another tag is an error, and stays for a version that knows it",
    arguments: [0, 1, 7])
  func changedType(tag: UInt32) throws {
    var version: UInt64 = 0
    do {
      let old = try cache(tag: tag)
      version = try old.setValue("value", forKey: "key", options: .metadata([5]))
      try old.close()
    }
    do {
      let new = try cache(tag: 2)
      let error = StoreError.undecodable(
        version: version, reason: "it was written with the tag \(tag), not 2")
      #expect(throws: error) { try new.value(forKey: "key") }
      #expect(throws: error) { try new.entry(forKey: "key") }
      #expect(throws: error) { try new.withValue(forKey: "key") { _ in } }
      #expect(throws: error) { try new.takeValue(forKey: "key") }
      #expect(throws: error) { try new.metadata(forKey: "key") }
      #expect(throws: error) { try new.exportValue(forKey: "key", to: scene("out")) }
      #expect(try new.contains("key"))
      #expect(try new.info(forKey: "key")?.version == version)
      #expect(try new.statistics()["undecodable"] == 6)
      #expect(try new.statistics()["drops"] == 0)
      try new.close()
    }
    let old = try cache(tag: tag)
    #expect(try old.entry(forKey: "key")?.value == "value")
    #expect(try old.entry(forKey: "key")?.metadata == [5])
  }

  @Test("If the cache drops unreadable values, one of another tag is a miss and is removed")
  func dropped() throws {
    do {
      let old = try cache(tag: 1)
      try old.setValue("value", forKey: "key")
      try old.setValue("value", forKey: "other")
      try old.close()
    }
    let log = Record<String>()
    let new = try cache(tag: 2, drops: true) { $0.store.log = DiagnosticLog { log.add("\($0)") } }
    let events = Record<CacheEvent<String>>()
    new.observe { events.add($0) }
    #expect(try new.value(forKey: "key") == nil)
    #expect(try !new.contains("key"))
    #expect(try new.contains("other"))
    let statistics = try new.statistics()
    #expect(statistics["drops"] == 1)
    #expect(statistics.missCount == 1)
    #expect(statistics.hitCount == 0)
    #expect(events.all == [.removed(key: "key", cause: .removed)])
    #expect(
      log.all == [
        "debug: coding: \(scene.path): removed an unreadable value: the value of version 1 could not be decoded: it was written with the tag 1, not 2"
      ])
  }

  @Test(
    "A call that can load the value does so under any policy; if the load fails, nothing is there",
    arguments: [true, false], [true, false])
  func loaded(hasOtherTag: Bool, inMemoryToo: Bool) async throws {
    do {
      let old = try cache(tag: 1)
      try await old.setValue("value", forKey: "key")
      try await old.setValue("value", forKey: "other")
      try await old.close()
    }
    struct LoadFailure: Error {}
    let tag: UInt32 = hasOtherTag ? 2 : 1
    if inMemoryToo {
      let new = try await DiskCache.open(
        .path(scene.path),
        configuration: DiskCacheConfiguration(
          memory: MemoryConfiguration(countLimit: 10)),
        keyCoder: .string, valueCoder: coder(tag: tag, decodes: hasOtherTag))
      try await checkLoads(new)
      #expect(try new.statistics()["drops"] == 2)
    } else {
      let new = try cache(tag: tag, decodes: hasOtherTag)
      try await checkLoads(new)
      #expect(try new.statistics()["drops"] == 2)
    }
  }

  private func checkLoads(_ cache: some ContractCache<String, String>) async throws {
    #expect(throws: StoreError.self) { try cache.value(forKey: "key") }
    let loaded = try await cache.value(forKey: "key") { "anew" }
    #expect(loaded == "anew")
    #expect(try cache.value(forKey: "key") == "anew")
    await #expect(throws: LoadFailure.self) {
      try await cache.value(forKey: "other") { () -> String in throw LoadFailure() }
    }
    #expect(try !cache.contains("other"))
  }

  @Test("A newer value that was written while the old one was decoded is never dropped")
  func newerValue() throws {
    let reference = Lock<DiskCache<String, String>?>(nil)
    let coder = ValueCoder<String>.custom(
      encode: { Array($0.utf8) },
      decode: { bytes in
        let text = String(decoding: [UInt8](copying: bytes), as: UTF8.self)
        guard text == "old" else { return text }
        try reference.withLock { $0 }?.setValue("new", forKey: "key")
        throw CodingFailure("it is old")
      })
    let cache = try scene.cache(keys: .string, values: coder) { $0.dropsUnreadableValues = true }
    reference.withLock { $0 = cache }
    defer { reference.withLock { $0 = nil } }
    try cache.setValue("old", forKey: "key")
    #expect(try cache.value(forKey: "key") == nil)
    #expect(try cache.value(forKey: "key") == "new")
    #expect(try cache.statistics()["drops"] == 0)
  }

  @Test("A plain store's record is read as one without a tag; foreign metadata is refused")
  func plainStore() throws {
    do {
      let store = try scene.store()
      try store.setValue("value", forKey: "plain")
      try store.setValue("value", forKey: "foreign", options: .metadata([1, 2, 3]))
      try store.close()
    }
    do {
      let cache = try cache(tag: 0)
      #expect(try cache.entry(forKey: "plain")?.value == "value")
      #expect(try cache.entry(forKey: "plain")?.metadata == [])
      #expect(
        throws: StoreError.undecodable(version: 2, reason: "its metadata is not a cache's")
      ) { try cache.value(forKey: "foreign") }
      try cache.close()
    }
    let tagged = try cache(tag: 4)
    #expect(
      throws: StoreError.undecodable(
        version: 1, reason: "it was written with the tag 0, not 4")
    ) {
      try tagged.value(forKey: "plain")
    }
  }

  @Test(
    "An iteration skips unreadable values and continues", arguments: [false, true])
  func iterating(drops: Bool) throws {
    do {
      let old = try cache(tag: 1)
      for number in 0..<5 { try old.setValue("old", forKey: "old \(number)") }
      try old.close()
    }
    let new = try cache(tag: 2, drops: drops)
    for number in 0..<5 { try new.setValue("new", forKey: "new \(number)") }
    var found: [String] = []
    let skipped = try new.forEachEntry { entry in
      found.append(entry.key)
      return .next
    }
    #expect(skipped == 5)
    #expect(found.sorted() == (0..<5).map { "new \($0)" })
    #expect(try new.count() == (drops ? 5 : 10))
  }

  /// The part of a record that is damaged.
  enum Part: CaseIterable { case value, head }

  /// Leaves a cache in which "key" is damaged and "other" is not.
  private func damage(_ part: Part) throws {
    let cache = try cache(tag: 0)
    try cache.setValue(String(repeating: "x", count: 2000), forKey: "key")
    try cache.setValue("sound", forKey: "other")
    try cache.close()
    // With a checkpoint, the next open need not read the log.
    let store = try scene.store()
    try store.checkpoint()
    try store.close()
    try damageRecord(part)
  }

  private func damageRecord(_ part: Part) throws {
    let segment = try #require(
      try FileManager.default.contentsOfDirectory(atPath: scene.path)
        .first { FileName.isSegment($0) })
    let bytes = try Data(contentsOf: URL(filePath: scene.path + "/" + segment))
    let place = try #require(bytes.range(of: Data(repeating: 0x78, count: 100)))
    let offset = place.lowerBound + (part == .value ? 50 : -20)
    try CairnTests.damage(scene.path + "/" + segment, at: offset)
  }

  @Test(
    "A call that can load replaces a damaged value, and the new value stays; the log reports it",
    arguments: Part.allCases, [true, false])
  func damagedLoaded(part: Part, inMemoryToo: Bool) async throws {
    try damage(part)
    let log = Record<String>()
    var configuration = DiskCacheConfiguration()
    configuration.store.log = DiagnosticLog { log.add("\($0)") }
    if inMemoryToo {
      configuration.memory = MemoryConfiguration(countLimit: 10)
      let cache = try await DiskCache.open(
        .path(scene.path), configuration: configuration,
        keyCoder: .string, valueCoder: coder(tag: 0))
      try await checkHealing(cache)
      #expect(try cache.statistics()["drops"] == 1)
      cache.tier.removeAll()
      #expect(try cache.value(forKey: "key") == "anew")
      try await cache.close()
    } else {
      let cache = try await DiskCache.open(
        .path(scene.path), configuration: configuration, keyCoder: .string,
        valueCoder: coder(tag: 0))
      try await checkHealing(cache)
      #expect(try cache.statistics()["drops"] == 1)
      try await cache.close()
    }
    let drops = log.all.filter { $0.contains("removed an unreadable value: ") }
    #expect(drops.count == 1 && drops[0].contains("corrupt"), "\(log.all)")
    let cache = try cache(tag: 0)
    #expect(try cache.value(forKey: "key") == "anew")
    #expect(try cache.value(forKey: "other") == "sound")
  }

  private func checkHealing(_ cache: some ContractCache<String, String>) async throws {
    let isCorrupt = { (error: any Error) -> Bool in
      if case .corrupt? = error as? StoreError { true } else { false }
    }
    #expect(performing: { _ = try cache.value(forKey: "key") }, throws: isCorrupt)
    // Nothing is removed before there is a replacement.
    await #expect(throws: LoadFailure.self) {
      try await cache.value(forKey: "key") { () -> String in throw LoadFailure() }
    }
    #expect(performing: { _ = try cache.value(forKey: "key") }, throws: isCorrupt)
    #expect(try await cache.value(forKey: "key") { "anew" } == "anew")
    #expect(try cache.value(forKey: "key") == "anew")
    #expect(try await cache.value(forKey: "key") { "not asked for" } == "anew")
  }

  @Test("A call with a policy loads a value anew whose record is damaged, though memory has it")
  func damagedBelowMemory() async throws {
    var configuration = DiskCacheConfiguration()
    configuration.memory = .init()
    let cache = try await DiskCache.open(
      .path(scene.path), configuration: configuration, keyCoder: .string, valueCoder: coder(tag: 0))
    // With a lifetime, the first read compares the value with the record.
    try await cache.setValue(
      String(repeating: "x", count: 2000), forKey: "key", lifetime: .seconds(60))
    try damageRecord(.head)
    let policy = LoadPolicy.with { $0.refreshAhead = 0.9 }
    #expect(try await cache.value(forKey: "key", policy: policy) { "anew" } == "anew")
    #expect(try cache.value(forKey: "key") == "anew")
    try await cache.close()
  }

  @Test(
    "A value written in place of a damaged one is not mistaken for it", arguments: Part.allCases
  )
  func writtenMeanwhile(part: Part) throws {
    try damage(part)
    let store = try scene.store()
    func removeDamaged(_ key: String) throws -> Bool {
      try Array(key.utf8).withBytes { (key) throws(StoreError) in
        var pending = PendingWrite()
        return try store.removeDamagedValue(forKey: key, &pending)
      }
    }
    #expect(try !removeDamaged("other"))
    #expect(try !removeDamaged("never there"))
    try store.setValue("new", forKey: "key")
    #expect(try !removeDamaged("key"))
    #expect(try store.count() == 2)
    try store.close()
  }

  @Test("A damaged value is an error whatever the policy, and a read never drops it")
  func damaged() throws {
    try damage(.value)
    let cache = try cache(tag: 0, drops: true)
    for _ in 0..<2 {
      let error = #expect(throws: StoreError.self) { try cache.value(forKey: "key") }
      guard case .corrupt = try #require(error) else {
        return #expect(Bool(false), "it was \(error.debugDescription)")
      }
    }
    #expect(try cache.contains("key"))
    #expect(try cache.value(forKey: "other") == "sound")
    // An iteration throws too.
    #expect(throws: StoreError.self) { try cache.forEachEntry { _ in .next } }
  }
}
