import Cairn
import Foundation

/// Goes through what a cache of pages lives through, and checks it: exits with 1 where something is not as
/// it should be.
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

      // A thousand readers at once: each page is fetched once.
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
      expect(await origin.requestCount == 10, "each page is fetched once")

      // A failure is told to who asked, and not kept.
      for attempt in 1...2 {
        do {
          _ = try await pages.page("/nowhere")
          expect(false, "a page that is not there")
        } catch is Origin.NotFound {}
        expect(await origin.requestCount == 10 + attempt, "a failure is not cached")
      }

      // What has expired is fetched anew.
      let news = try await pages.page("/page/news", keptFor: .milliseconds(50))
      await origin.publishAnew()
      try await Task.sleep(for: .milliseconds(80))
      let later = try await pages.page("/page/news", keptFor: .milliseconds(50))
      expect(news != later, "an expired page is fetched anew")

      // However many there are: the limit holds, and those that were read last stay.
      for number in 10..<40 { _ = try await pages.page("/page/\(number)") }
      expect(try pages.cache.count() <= 20, "the limit holds")
      expect(try pages.cache.contains("/page/39"), "the newest is there")
      expect(try !pages.cache.contains("/page/0"), "the one read longest ago is not")

      for (name, value) in try pages.cache.statistics().metrics where value > 0 {
        print(name.padding(toLength: 28, withPad: " ", startingAt: 0), value)
      }
      try await pages.cache.close()
    }

    // The stream ends with the close.
    let told = await events.value
    print(told.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n"))
    expect(told["inserted", default: 0] >= 42, "every page was told of")
    expect(
      told["evicted, countLimit", default: 0] > 0, "evictions are told, with the cause")

    // After a restart the pages are there.
    let before = await origin.requestCount
    let pages = try PageCache(directory: directory, origin: origin, countLimit: 20)
    for number in 30..<40 { _ = try await pages.page("/page/\(number)") }
    expect(await origin.requestCount == before, "a restart costs no requests")
    try await pages.cache.close()
    print("all as it should be, with \(before) requests")
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
  print("NOT SO: \(what)")
  exit(1)
}
