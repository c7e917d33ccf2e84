import Cairn
import Testing

/// What the client of a shared engine can do. Yours has other names for it.
protocol SharedEngine: Sendable {
  func get(_ key: String) async throws -> [UInt8]?
  func set(_ key: String, _ value: [UInt8], expiry: Duration) async throws
}

/// A near cache: memory, then the local disk, then the shared engine, then the origin.
struct NearCache<Engine: SharedEngine>: Sendable {
  let near: DiskCache<String, [UInt8]>
  let engine: Engine
  /// For how long at most this machine does not notice what another one has written.
  let nearLifetime: Duration

  func value(
    forKey key: String, lifetime: Duration,
    orMake make: @escaping @Sendable () async throws -> [UInt8]
  ) async throws -> [UInt8] {
    try await near.value(forKey: key, lifetime: .after(min(lifetime, nearLifetime))) { [engine] in
      if let value = try await engine.get(key) { return value }
      let value = try await make()
      try await engine.set(key, value, expiry: lifetime)
      return value
    }
  }

  func setValue(_ value: [UInt8], forKey key: String, lifetime: Duration) async throws {
    try await engine.set(key, value, expiry: lifetime)
    try await near.removeValue(forKey: key)
  }
}

/// The shard of a key: the same one in every process and in every run, which `hashValue` is not.
func shard(of key: String, count: Int) -> Int {
  var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
  return Int(hash % UInt64(count))
}

/// A shared engine that lives in the process, and counts what it is asked.
actor TestEngine: SharedEngine {
  private var values: [String: [UInt8]] = [:]
  private(set) var getCount = 0
  private(set) var setCount = 0

  func get(_ key: String) -> [UInt8]? {
    getCount += 1
    return values[key]
  }

  func set(_ key: String, _ value: [UInt8], expiry: Duration) {
    setCount += 1
    values[key] = value
  }
}

@Suite("The samples of Scaling")
struct ScalingSamples {
  @Test("A cache is followed while it is written to")
  func followingCache() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let cache = try await DiskCache<String, String>.open(
          "pages.cairn", configuration: .unlimited)
        try await cache.setValue("about", forKey: "/about")
        let pages = try await DiskCache<String, String>.open(
          following: "pages.cairn",
          configuration: DiskCacheConfiguration(
            countLimit: nil, byteLimit: nil,
            memory: MemoryTierConfiguration(countLimit: 10_000, costLimit: nil)))
        let page = try pages.value(forKey: "/about")
        #expect(page == "about")
        try await cache.close()
      }
    }
  }

  @Test("A store is followed while it is written to")
  func following() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try await Store(path: "blobs.cairn")
        try await store.setValue("hello", forKey: "greeting")
        let follower = try Store(following: "blobs.cairn")
        let greeting = try follower.value(forKey: "greeting")
        #expect(greeting == Array("hello".utf8))
        try await store.close()
      }
    }
  }

  @Test("Two machines share an engine, and each has a near cache")
  func near() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let engine = TestEngine()
        let configuration = DiskCacheConfiguration(
          countLimit: nil, byteLimit: nil, memory: .unlimited)
        let machines = try ["a.cairn", "b.cairn"].map { path in
          NearCache(
            near: try DiskCache<String, [UInt8]>.open(.path(path), configuration: configuration),
            engine: engine, nearLifetime: .seconds(10))
        }
        let made = Origin.shared
        @Sendable func make() async -> [UInt8] { Array((await made.page("/")).body.utf8) }

        // A hundred who ask two machines: the origin is asked once by the first of them.
        let first = try await machines[0].value(forKey: "/", lifetime: .seconds(60)) {
          await make()
        }
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
          for number in 0..<100 {
            group.addTask {
              try await machines[number % 2].value(forKey: "/", lifetime: .seconds(60)) {
                await make()
              }
            }
          }
          for try await value in group { #expect(value == first) }
        }
        #expect(await made.requestCount == 1)
        #expect(await engine.setCount == 1)
        #expect(await engine.getCount == 2)

        // What one writes, it reads; the other one when its near lifetime has ended.
        let new = Array("new".utf8)
        try await machines[0].setValue(new, forKey: "/", lifetime: .seconds(60))
        let read = try await machines[0].value(forKey: "/", lifetime: .seconds(60)) {
          await make()
        }
        #expect(read == new)
        #expect(try machines[1].near.value(forKey: "/") == first)
        let info = try #require(try machines[1].near.info(forKey: "/"))
        #expect(try #require(info.expires) < SystemClock().now().advanced(by: .seconds(11)))
        try await machines[1].near.removeValue(forKey: "/")
        let later = try await machines[1].value(forKey: "/", lifetime: .seconds(60)) {
          await make()
        }
        #expect(later == new)
      }
    }
  }

  @Test("Keys are spread over the shards, always in the same way")
  func shards() {
    var counts = [Int](repeating: 0, count: 4)
    for number in 0..<10_000 { counts[shard(of: "user/\(number)", count: 4)] += 1 }
    #expect(counts.allSatisfy { (2_000...3_000).contains($0) })
    // The hash is FNV-1a: "a" has 0xaf63dc4c8601ec8c.
    #expect(shard(of: "a", count: 1 << 16) == 0xec8c)
  }
}
