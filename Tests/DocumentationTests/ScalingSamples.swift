import Cairn
import Testing

/// The shard of a key: the same one in every process and in every run, which `hashValue` is not.
func shard(of key: String, count: Int) -> Int {
  var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
  return Int(hash % UInt64(count))
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

  @Test("Keys are spread over the shards, always in the same way")
  func shards() {
    var counts = [Int](repeating: 0, count: 4)
    for number in 0..<10_000 { counts[shard(of: "user/\(number)", count: 4)] += 1 }
    #expect(counts.allSatisfy { (2_000...3_000).contains($0) })
    // The hash is FNV-1a: "a" has 0xaf63dc4c8601ec8c.
    #expect(shard(of: "a", count: 1 << 16) == 0xec8c)
  }
}
