import Cairn
import Foundation
import Testing

@Suite("The samples of Loading and single flight")
struct LoadingSamples {
  static func pages() throws -> DiskCache<String, Page> {
    let configuration = DiskCacheConfiguration(
      countLimit: 100_000, byteLimit: 1 << 30,
      memory: MemoryConfiguration(countLimit: 1_000))
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
        #expect(expires < Timestamp.now.advanced(by: .seconds(70)))

        let statistics = try pages.statistics()
        print(statistics.loadCount, statistics.joinedLoadCount, statistics.failedLoadCount)
        for metric in statistics.metrics where metric.name.hasPrefix("loads.") {
          print(metric.name, metric.value)
        }

        #expect(statistics.loadCount == 1)
        #expect(statistics.failedLoadCount == 0)
      }
    }
  }

  @Test("A thousand concurrent callers cause one load")
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
        let loads = try pages.statistics().loadCount  // 1

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
          return Loaded(page, lifetime: .after(age))
        }

        #expect(page.title == url)
        let expires = try #require(try pages.info(forKey: url)?.expires)
        #expect(expires < Timestamp.now.advanced(by: .seconds(40)))
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

        let found = try await pages.values(forKeys: [url, "/b", "/c"]) { missing in
          try await fetchAll(missing)
        }

        #expect(found.map { $0?.title } == [url, "/b", nil])
        #expect(try pages.info(forKey: url)?.expires != nil)
      }
    }
  }

  @Test("Absence is kept too")
  func absent() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let known = try await DiskCache<String, Page?>.open(
          .path("known.cairn"),
          configuration: DiskCacheConfiguration(
            memory: MemoryConfiguration(countLimit: 1_000)))

        let page = try await known.value(forKey: "/none") {
          let page = try await fetchIfThere("/none")
          return Loaded(page, lifetime: page == nil ? .seconds(5) : .seconds(3600))
        }

        #expect(page == nil)
        let kept: Page?? = try known.value(forKey: "/none")
        #expect(kept == .some(nil))
        #expect(try known.statistics().loadCount == 1)
      }
    }
  }

  @Test("A value that is published and then removed is loaded again")
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

  @Test("A policy says what is returned near the end of a lifetime and after it")
  func policy() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var policy = LoadPolicy()
        policy.refreshAhead = 0.8

        var configuration = DiskCacheConfiguration(
          countLimit: 100_000, byteLimit: 1 << 30,
          memory: MemoryConfiguration(countLimit: 1_000))
        configuration.loadPolicy = policy

        policy.staleWhileRevalidating = .seconds(15)

        policy.staleOnError = .seconds(600)
        policy.firstRetryDelay = .seconds(1)
        policy.longestRetryDelay = .seconds(60)

        policy.softTimeLimit = .milliseconds(200)
        policy.timeLimit = .seconds(10)

        policy.lifetimeJitter = 0.1  // a minute becomes 54 to 60 seconds

        configuration.loadPolicy = policy
        let pages = try await DiskCache<String, Page>.open(
          .path("pages.cairn"), configuration: configuration)
        let url = "/about"
        var shown: [(Page, Duration, Bool)] = []
        func show(_ page: Page, age: Duration, isStale: Bool) { shown.append((page, age, isStale)) }

        let page = try await pages.loaded(forKey: url) { _ in
          .loaded(try await fetch(url), lifetime: .seconds(60))
        }
        if let page { show(page.value, age: page.age, isStale: page.isStale) }

        #expect(shown.first?.1 == .zero && shown.first?.2 == false)
        let expires = try #require(try pages.info(forKey: url)?.expires)
        #expect(expires <= Timestamp.now.advanced(by: .seconds(60)))
        #expect(expires > Timestamp.now.advanced(by: .seconds(40)))
      }
    }
  }

  @Test("A loader asks whether the value has changed")
  func conditional() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let pages = try LoadingSamples.pages()
        @Sendable func ask(_ url: String) async throws -> Page? {
          let page = try await pages.loaded(forKey: url) { prior in
            let answer = try await fetch(url, ifNoneMatch: prior?.metadata)
            switch answer {
            case .notModified:
              guard let prior else { throw URLError(.badServerResponse) }
              return prior.notModified(lifetime: .minutes(5))
            case .page(let page, let etag):
              return .loaded(page, options: EntryOptions(lifetime: .minutes(5), metadata: etag))
            case .gone:
              return .absent(for: .seconds(5))
            }
          }
          return page?.value
        }
        #expect(try await ask("/about")?.body == "first")
        #expect(try await ask("/none") == nil)
        #expect(try pages.metadata(forKey: "/about") == Array("v1".utf8))
        #expect(try pages.count() == 1)
        var policy = LoadPolicy()
        policy.refreshAhead = 0
        _ = try await pages.loaded(forKey: "/about", policy: policy) { prior in
          #expect(prior?.metadata == Array("v1".utf8))
          guard let prior else { throw URLError(.badServerResponse) }
          return prior.notModified(lifetime: .minutes(5))
        }
      }
    }
  }
}
