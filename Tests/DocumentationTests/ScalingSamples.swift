import Cairn
import Testing

@Suite("The samples of Scaling")
struct ScalingSamples {
  @Test("A cache is followed while it is written to")
  func followingCache() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let cache = try await DiskCache<String, String>.open(
          .path("pages.cairn"), configuration: .init())
        try await cache.setValue("about", forKey: "/about")
        let pages = try await DiskCache<String, String>.open(
          following: .path("pages.cairn"),
          configuration: DiskCacheConfiguration(
            memory: MemoryConfiguration(countLimit: 10_000)))
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
        let follower = try await Store(following: "blobs.cairn")
        let greeting = try follower.value(forKey: "greeting")
        #expect(greeting == Array("hello".utf8))
        try await store.close()
      }
    }
  }
}
