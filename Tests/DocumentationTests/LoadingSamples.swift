import Cairn
import Testing

@Suite("The samples of Loading and single flight")
struct LoadingSamples {
  static func pages() throws -> DiskCache<String, Page> {
    let configuration = DiskCacheConfiguration(
      countLimit: 100_000, byteLimit: 1 << 30,
      memory: MemoryTierConfiguration(countLimit: 1_000, costLimit: nil))
    return try DiskCache.open(.path("pages.cairn"), configuration: configuration)
  }

  @Test("A missing value is loaded, with its lifetime")
  func load() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let (pages, url) = (try LoadingSamples.pages(), "/about")

        let page = try await pages.value(forKey: url, lifetime: .seconds(60)) {
          try await fetch(url)
        }

        #expect(page.title == url)
        let expires = try #require(try pages.info(forKey: url)?.expires)
        #expect(expires < SystemClock().now().advanced(by: .seconds(70)))

        let statistics = pages.loadStatistics
        print(statistics.startedCount, statistics.joinedCount, statistics.failedCount)

        #expect(statistics.startedCount == 1)
        #expect(statistics.failedCount == 0)
      }
    }
  }

  @Test("A thousand who ask at once have it loaded once")
  func thousand() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let (pages, url) = (try LoadingSamples.pages(), "/about")
        var shownCount = 0
        func show(_ page: Page) { shownCount += page.title == url ? 1 : 0 }

        try await withThrowingTaskGroup(of: Page.self) { group in
          for _ in 0..<1_000 {
            group.addTask { try await pages.value(forKey: url) { try await fetch(url) } }
          }
          for try await page in group { show(page) }
        }
        let loads = pages.loadStatistics.startedCount  // 1

        #expect(loads == 1)
        #expect(shownCount == 1_000)
        #expect(await Origin.shared.requestCount == 1)
      }
    }
  }

  @Test("The loader says how long the value lives")
  func loaded() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let (pages, url) = (try LoadingSamples.pages(), "/about")

        let page = try await pages.value(forKey: url) {
          let (page, age) = try await fetchWithAge(url)
          return Loaded(page, options: .lifetime(.after(age)))
        }

        #expect(page.title == url)
        let expires = try #require(try pages.info(forKey: url)?.expires)
        #expect(expires < SystemClock().now().advanced(by: .seconds(40)))
      }
    }
  }

  @Test("An ETag is kept beside its page")
  func metadata() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let (pages, url) = (try LoadingSamples.pages(), "/about")

        let page = try await pages.value(forKey: url) {
          let (page, etag) = try await fetchWithETag(url)
          return Loaded(page, options: EntryOptions(lifetime: .hours(1), metadata: etag))
        }
        let etag = try pages.metadata(forKey: url)

        #expect(page.title == url)
        #expect(etag == Array("v1".utf8))
        #expect(try pages.info(forKey: url)?.expires != nil)
      }
    }
  }

  @Test("That there is none is kept too")
  func absent() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let known = try await DiskCache<String, Page?>.open(
          .path("known.cairn"),
          configuration: DiskCacheConfiguration(
            countLimit: nil, byteLimit: nil,
            memory: MemoryTierConfiguration(countLimit: 1_000, costLimit: nil)))

        let page = try await known.value(forKey: "/none") {
          let page = try await fetchIfThere("/none")
          return Loaded(page, options: .lifetime(page == nil ? .seconds(5) : .seconds(3600)))
        }

        #expect(page == nil)
        let kept: Page?? = try known.value(forKey: "/none")
        #expect(kept == .some(nil))
        #expect(known.loadStatistics.startedCount == 1)
      }
    }
  }

  @Test("What is published and then removed is loaded anew")
  func invalidate() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let (pages, url) = (try LoadingSamples.pages(), "/about")
        let newPage = Page(title: url, body: "second")
        let before = try await pages.value(forKey: url) { try await fetch(url) }

        try await publish(newPage, url)
        try await pages.removeValue(forKey: url)

        let after = try await pages.value(forKey: url) { try await fetch(url) }
        #expect(before.body == "first")
        #expect(after == newPage)
      }
    }
  }
}
