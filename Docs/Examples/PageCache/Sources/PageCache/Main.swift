import Cairn
import Foundation

/// Demonstrates a page cache and checks each step. Exits with status 1 if a check fails.
@main
enum Main {
  static func main() async throws {
    let directory = NSTemporaryDirectory() + "/page-cache-example-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let origin = Origin()
    let urls = (0..<10).map { "/page/\($0)" }

    let events: Task<[String: Int], Never>
    do {
      let pages = try PageCache(directory: directory, origin: origin, countLimit: 20)
      events = Task { [stream = pages.cache.events()] in
        var counts: [String: Int] = [:]
        for await event in stream { counts[name(of: event), default: 0] += 1 }
        return counts
      }

      // With a thousand concurrent readers, each page is fetched once.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for reader in 0..<1000 {
          group.addTask {
            let url = urls[reader % urls.count]
            let page = try await pages.page(url)
            expect(page.url == url, "a reader got another page")
          }
        }
        try await group.waitForAll()
      }
      expect(await origin.requestCount == 10, "a page was not fetched exactly once")

      // An error reaches the caller and is not cached.
      for attempt in 1...2 {
        do {
          _ = try await pages.page("/nowhere")
          expect(false, "a missing page was returned")
        } catch is Origin.NotFound {}
        expect(await origin.requestCount == 10 + attempt, "an error was cached")
      }

      // An expired page is fetched again.
      let news = try await pages.page("/page/news", keptFor: .milliseconds(50))
      await origin.publishAnew()
      try await Task.sleep(for: .milliseconds(80))
      let later = try await pages.page("/page/news", keptFor: .milliseconds(50))
      expect(news != later, "an expired page was not fetched again")

      // The limit holds, and the most recently read pages stay.
      for number in 10..<40 { _ = try await pages.page("/page/\(number)") }
      expect(try pages.cache.count() <= 20, "the limit was exceeded")
      expect(try pages.cache.contains("/page/39"), "the newest page was evicted")
      expect(try !pages.cache.contains("/page/0"), "the least recently read page was kept")

      for metric in try pages.cache.statistics().metrics where metric.value > 0 {
        print(metric.name.padding(toLength: 28, withPad: " ", startingAt: 0), Int(metric.value))
      }
      try await pages.cache.close()
    }

    // Closing the cache ends the stream.
    let told = await events.value
    print(told.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n"))
    expect(told["inserted", default: 0] >= 42, "an inserted page had no event")
    expect(
      told["evicted, countLimit", default: 0] > 0, "evictions had no events with their cause")

    // After a restart, the cache still has the pages.
    let before = await origin.requestCount
    let pages = try PageCache(directory: directory, origin: origin, countLimit: 20)
    for number in 30..<40 { _ = try await pages.page("/page/\(number)") }
    expect(await origin.requestCount == before, "the restart caused requests")
    try await pages.cache.close()
    print("all checks passed, with \(before) requests")
  }

  private static func name(of event: CacheEvent<String>) -> String {
    switch event {
    case .inserted: "inserted"
    case .removed(_, .evicted(let cause)): "evicted, \(cause)"
    case .removed(_, let cause): "removed, \(cause)"
    case .removedAll: "removed all"
    case .damaged: "damaged"
    // A minor version may add cases.
    default: "other"
    }
  }
}

func expect(_ holds: Bool, _ what: String) {
  if holds { return }
  print("FAILED: \(what)")
  exit(1)
}
