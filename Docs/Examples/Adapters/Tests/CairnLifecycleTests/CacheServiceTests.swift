import Cairn
import CairnLifecycle
import Foundation
import Logging
import ServiceLifecycle
import Testing

@Suite("The service that closes a cache")
final class CacheServiceTests {
  private let path = NSTemporaryDirectory() + "/service-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// A server whose last request ends after the shutdown has begun.
  private struct Server: Service {
    let cache: DiskCache<String, String>
    let begun: AsyncStream<Void>.Continuation

    func run() async throws {
      begun.yield()
      try await gracefulShutdown()
      try await cache.setValue("written by the last request", forKey: "last")
    }
  }

  private func open() async throws -> DiskCache<String, String> {
    try await .open(.path(path), configuration: .init())
  }

  @Test("The cache is closed after the last request has written to it")
  func shutdown() async throws {
    let cache = try await open()
    let store = try await Store(path: path + "-store")
    defer { try? FileManager.default.removeItem(atPath: path + "-store") }
    let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
    let server = Server(cache: cache, begun: continuation)
    let group = ServiceGroup(
      services: [CacheService(closing: cache), CacheService(closing: store), server],
      logger: Logger(label: "test"))
    async let run: Void = group.run()
    for await _ in begun { break }
    await group.triggerGracefulShutdown()
    try await run

    #expect(throws: StoreError.closed(path: path)) { try cache.value(forKey: "last") }
    #expect(throws: StoreError.closed(path: path + "-store")) { try store.value(forKey: "key") }
    let reopened = try await open()
    #expect(try reopened.value(forKey: "last") == "written by the last request")
    #expect(try reopened.storeStatistics().recovery.wasClean)
    try await reopened.close()
  }

  @Test("Cancelling the task also closes the cache")
  func cancelled() async throws {
    let cache = try await open()
    let task = Task { try await CacheService(closing: cache).run() }
    task.cancel()
    try await task.value
    #expect(throws: StoreError.closed(path: path)) { try cache.value(forKey: "last") }
  }
}
