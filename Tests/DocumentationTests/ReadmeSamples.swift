import Cairn
import Testing

@Suite("The samples of the README")
struct ReadmeSamples {
  @Test("A store does what the comments say")
  func store() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "sessions.cairn")  // a directory
        try store.setValue("alice", forKey: "session/1", lifetime: .hours(1))
        let user = try store.value(forKey: "session/1")  // [UInt8]?, copied out
        let length = try store.withValue(forKey: "session/1") { $0.byteCount }  // no copy
        try store.write { batch in  // all or nothing
          try batch.setValue("bob", forKey: "session/2")
          try batch.removeValue(forKey: "session/0")
        }
        try store.increment(forKey: "visits")
        let keys = try store.keys(prefix: "session/")  // [[UInt8]]; looks at all keys
        let follower = try Store(following: "sessions.cairn")  // reads what another process writes
        try store.close()

        #expect(Set(keys) == [Array("session/1".utf8), Array("session/2".utf8)])
        #expect(user == Array("alice".utf8))
        #expect(length == 5)
        #expect(try follower.value(forKey: "session/2") == Array("bob".utf8))
        let again = try Store(readingAt: "sessions.cairn")
        #expect(try again.count() == 3)
        #expect(try again.value(forKey: "session/2") == Array("bob".utf8))
        #expect(try again.value(forKey: "visits") == [1, 0, 0, 0, 0, 0, 0, 0])
      }
    }
  }

  @Test("A cache does what the comments say")
  func cache() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let url = "/contact"
        let about = Page(title: "About", body: "us")

        let configuration = DiskCacheConfiguration(
          countLimit: 100_000, diskByteLimit: 1 << 30,
          memory: MemoryConfiguration(costLimit: 64 << 20))
        let pages = try await DiskCache<String, Page>.open(
          .name("pages"), configuration: configuration)
        let page = try await pages.value(forKey: url, lifetime: .hours(1)) {
          try await fetch(url)
        }
        try await pages.setValue(about, forKey: "/about")  // any Codable, Data, String, [UInt8]
        let known = try pages.value(forKey: "/about")

        let hits = MemoryCache<String, Int>(
          configuration: MemoryConfiguration(countLimit: 1_000))
        hits["/about"] = 1  // memory only: no `try`

        #expect(hits["/about"] == 1)
        #expect(page.title == url)
        #expect(known == about)
        #expect(try pages.count() == 2)
        let expires = try #require(try pages.info(forKey: url)?.expires)
        #expect(expires > Timestamp.now.advanced(by: .seconds(3500)))
      }
    }
  }
}
