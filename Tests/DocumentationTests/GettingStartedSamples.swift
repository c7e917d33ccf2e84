import Cairn
import Testing

struct Page: Codable, Sendable, Equatable {
  var title: String
  var body: String
}

@Suite("The samples of Getting started")
struct GettingStartedSamples {
  @Test("Keep a value")
  func value() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "sessions.cairn")
        try store.setValue("alice", forKey: "session/1")
        let bytes = try store.value(forKey: "session/1") ?? []
        let user = String(decoding: bytes, as: UTF8.self)
        try store.close()

        #expect(user == "alice")
        let again = try Store(path: "sessions.cairn")
        #expect(try again.count() == 1)
        #expect(try again.keys(prefix: "session/") == [Array("session/1".utf8)])
        #expect(try again.values(forKeys: ["none", "session/1"]) == [nil, Array("alice".utf8)])
      }
    }
  }

  @Test("Read without a copy")
  func span() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "sessions.cairn")
        try store.setValue("carol;admin", forKey: "session/3", options: .metadata(Array("v1".utf8)))
        let role = try store.withValue(forKey: "session/3") { bytes in
          String(copying: bytes.extracting(6..<bytes.byteCount))
        }
        let kind = try store.entry(forKey: "session/3")?.metadata

        #expect(role == "admin")
        #expect(kind == Array("v1".utf8))
        try store.setValue([1, 0, 0, 0, 2, 0, 0, 0] as [UInt8], forKey: "numbers")
        let number = try store.withValue(forKey: "numbers") { bytes in
          unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt32.self)
        }
        #expect(number == UInt32(littleEndian: 2))
      }
    }
  }

  @Test("Keep values of your own types")
  func view() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "app.cairn")
        let articles = store.view(of: Page.self, prefix: "page/")
        try articles.setValue(Page(title: "About", body: "…"), forKey: "about")
        let about = try articles.value(forKey: "about")
        try articles.update(forKey: "about") { page in
          page.map { Page(title: $0.title, body: $0.body + "!") }
        }

        #expect(about?.title == "About")
        #expect(try articles.value(forKey: "about")?.body == "…!")
        let lists = store.view(prefix: "list/", coder: ValueCoder<Page>.propertyList())
        #expect(try lists.value(forKey: "about") == nil)
      }
    }
  }

  @Test("Keep something for a while")
  func lifetime() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "sessions.cairn")
        try store.setValue("bob", forKey: "session/2", lifetime: .seconds(3600))
        let expires = try store.info(forKey: "session/2")?.expires

        let end = try #require(expires)
        #expect(end > Timestamp.now.advanced(by: .seconds(3500)))
        #expect(end < Timestamp.now.advanced(by: .seconds(3700)))
      }
    }
  }

  @Test("Cache something slow; set, get and remove")
  func cache() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let configuration = DiskCacheConfiguration(
          countLimit: 100_000, byteLimit: 1 << 30,
          memory: MemoryConfiguration(costLimit: 64 << 20))
        let pages = try await DiskCache<String, Page>.open(
          .name("pages"), configuration: configuration)

        let page = try await pages.value(forKey: "/about", lifetime: .seconds(3600)) {
          try await fetch("/about")
        }

        #expect(page.title == "/about")
        #expect(try pages.value(forKey: "/about") == page)
        #expect(await Origin.shared.requestCount == 1)
        let home = Page(title: "Home", body: "welcome")

        try await pages.setValue(home, forKey: "/")
        let known = try pages.value(forKey: "/")
        let isThere = try pages.contains("/contact")
        let wasThere = try await pages.removeValue(forKey: "/")

        pages["/"] = home
        pages["/"] = nil

        #expect(known == home)
        #expect(!isThere)
        #expect(wasThere)
        #expect(try pages.keys() == ["/about"])

        let statistics = try pages.statistics()
        print(statistics)
        print(statistics.hitCount, "hits,", statistics.missCount, "misses")
        print(
          statistics.loadCount, "loads, for which", statistics.joinedLoadCount, "others waited")
        if let ratio = statistics.hitRatio { print(ratio, "of all reads are hits") }
        for metric in statistics.metrics { print(metric.name, metric.value) }

        #expect(statistics.loadCount == 1 && statistics.missCount >= 1)

        let later = try pages.statistics()
        if let ratio = later.since(statistics).hitRatio { print(ratio, "of the reads since then") }
        print(later.prometheus(prefix: "pages"))

        #expect(later.since(statistics).hitRatio == nil)
        #expect(later.prometheus(prefix: "pages").contains("pages_load_starts_total 1\n"))
        #expect(
          statistics.metrics.contains {
            $0.name == "hits" && $0.value == Double(statistics.hitCount)
          })
      }
    }
  }

  @Test("A tag keeps the values of another version apart")
  func tag() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let configuration = DiskCacheConfiguration(
          memory: .init())
        func open(_ coder: ValueCoder<Page>) throws -> DiskCache<String, Page> {
          try DiskCache.open(
            .path("pages.cairn"), configuration: .init(), keyCoder: .standard, valueCoder: coder)
        }
        let old = try open(.json())
        try await old.setValue(Page(title: "Home", body: "old"), forKey: "/")
        try await old.close()

        let coder = ValueCoder<Page>.json().tagged(2)
        let tagged = try await DiskCache<String, Page>.open(
          .shared("tagged pages"), configuration: configuration, keyCoder: .standard,
          valueCoder: coder)

        try await tagged.close()
        let new = try open(coder)
        #expect(throws: StoreError.self) { try new.value(forKey: "/") }
        let page = try await new.value(forKey: "/") { try await fetch("/") }
        #expect(page.title == "/")
        #expect(try new.value(forKey: "/") == page)
      }
    }
  }

  @Test("A cache in memory")
  func memory() {
    let cache = MemoryCache<String, Int>(
      configuration: MemoryConfiguration(countLimit: 100))
    cache["visits"] = 1
    cache.update(forKey: "visits") { ($0 ?? 0) + 1 }
    cache.setValue(2, forKey: "visits", lifetime: .seconds(60))
    let visits = cache["visits"]

    #expect(visits == 2)
    #expect(cache.count() == 1)
  }
}
