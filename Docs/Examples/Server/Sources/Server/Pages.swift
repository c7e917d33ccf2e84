import CairnHummingbird
import Foundation
import Hummingbird
import PageText
import Synchronization

/// Adds the route of numbered pages, which are slow to compute.
func addPages(
  to router: Router<BasicRequestContext>, cache: ResponseCache, lifetime: Duration
) {
  let madeCount = PageCount()
  router.get(
    "pages/:number",
    use: cache.caching(for: lifetime) { _, context in
      let number = try context.parameters.require("number", as: Int.self)
      let ordinal = madeCount.next()
      // Stands for the slow computation.
      try await Task.sleep(for: .milliseconds(20))
      let page = PageText(
        number: number, made: Int64(Date().timeIntervalSince1970 * 1000), process: getpid(),
        ordinal: ordinal)
      return CachedResponse(
        contentType: "text/plain; charset=utf-8", body: ByteBuffer(string: page.text))
    })
}

/// Counts the pages that this process has computed.
final class PageCount: Sendable {
  private let count = Atomic(0)

  func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}
