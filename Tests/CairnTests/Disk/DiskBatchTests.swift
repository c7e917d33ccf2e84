import Cairn
import CairnStore
import FuzzSupport
import Testing

@Suite("Many keys of a cache on disk at once")
struct DiskBatchTests {
  let scene = DiskScene()

  @Test(
    "A batch sets and removes, each value with its options, and the last change of a key counts"
  )
  func mixed() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    for (number, key) in ["a", "b", "c"].enumerated() { try cache.setValue(number, forKey: key) }
    let events = Record<CacheEvent<String>>()
    cache.observe { events.add($0) }
    let count = try cache.write { batch in
      try batch.setValue(10, forKey: "a", options: EntryOptions(cost: 7, metadata: [1, 2]))
      try batch.removeValue(forKey: "b")
      try batch.setValue(11, forKey: "c")
      try batch.removeValue(forKey: "c")
      try batch.removeValue(forKey: "d")
      try batch.setValue(12, forKey: "d", options: .lifetime(.seconds(5)))
      try batch.removeValue(forKey: "none")
      try batch.setValue(13, forKey: "e", options: .idleLimit(.seconds(9)))
      return batch.count
    }
    #expect(count == 8)
    #expect(
      events.all == [
        .removed(key: "a", cause: .replaced), .inserted(key: "a"), .inserted(key: "d"),
        .inserted(key: "e"), .removed(key: "b", cause: .removed),
        .removed(key: "c", cause: .removed),
      ])
    #expect(try cache.keys().sorted() == ["a", "d", "e"])
    #expect(try cache.statistics()["insertions"] == 6)
    let entry = try #require(try cache.entry(forKey: "a"))
    #expect(entry.value == 10 && entry.info.cost == 7 && entry.metadata == [1, 2])
    #expect(try cache.info(forKey: "d")?.expires == scene.clock.now().advanced(by: .seconds(5)))
    #expect(try cache.info(forKey: "e")?.idleLimit == .seconds(9))
    try cache.close()
    let reopened: DiskCache<String, Int> = try scene.cache()
    #expect(try reopened.keys().sorted() == ["a", "d", "e"])
  }

  @Test("If the closure, a coder or the store refuses, nothing of a batch is written")
  func refused() throws {
    struct Stop: Error {}
    let values = ValueCoder<Int>.custom(
      encode: { value in
        if value < 0 { throw CodingFailure("below zero") }
        return [UInt8(value)]
      }, decode: { Int($0.byteCount) })
    let cache = try scene.cache(keys: KeyCoder<String>.string, values: values)
    try cache.setValue(1, forKey: "a")
    #expect(throws: Stop.self) {
      try cache.write { batch in
        try batch.removeValue(forKey: "a")
        throw Stop()
      }
    }
    #expect(throws: StoreError.unencodable(reason: "the value: below zero")) {
      try cache.write { batch in
        try batch.removeValue(forKey: "a")
        try batch.setValue(-1, forKey: "b")
      }
    }
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try cache.write { batch in
        try batch.setValue(1, forKey: "b")
        try batch.removeValue(forKey: "")
      }
    }
    #expect(try cache.keys() == ["a"])
    try cache.write { _ in }
    #expect(try cache.statistics()["insertions"] == 1)
  }

  @Test("A load in progress is not kept after a removal in a batch")
  func loading() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let gate = Gate()
    let load = Task {
      try await cache.value(forKey: "a") {
        await gate.wait()
        return 1
      }
    }
    await eventually { gate.arrivedCount == 1 }
    try await cache.write { batch in try batch.removeValue(forKey: "a") }
    gate.open()
    #expect(try await load.value == 1)
    #expect(try !cache.contains("a"))
  }

  @Test("A batch on disk is seen in both tiers")
  func tiers() throws {
    let scene = TieredScene()
    let cache: DiskCache<String, Int> = try scene.cache()
    for key in ["a", "b"] { try cache.setValue(1, forKey: key) }
    try cache.write { batch in
      try batch.setValue(2, forKey: "a")
      try batch.removeValue(forKey: "b")
    }
    #expect(try cache.value(forKey: "a") == 2)
    #expect(try cache.value(forKey: "b") == nil)
  }

  @Test("Values of many keys come in the order of the keys")
  func reading() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", options: EntryOptions(cost: 5, metadata: [9]))
    try cache.setValue(2, forKey: "b")
    let keys = ["b", "none", "a", "b"]
    #expect(try cache.values(forKeys: keys) == [2, nil, 1, 2])
    let entry = try cache.entry(forKey: "a")
    #expect(entry?.key == "a" && entry?.value == 1 && entry?.metadata == [9])
    let hits = try cache.statistics().hitCount
    #expect(try cache.info(forKey: "a") == entry?.info)
    #expect(try cache.statistics().hitCount == hits)
    #expect(throws: StoreError.self) { try cache.values(forKeys: ["a", ""]) }
  }
}
