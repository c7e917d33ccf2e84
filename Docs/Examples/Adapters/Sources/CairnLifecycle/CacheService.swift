import Cairn
import ServiceLifecycle

/// Closes a cache or a store when the program shuts down, after the last request.
///
///     let group = ServiceGroup(
///       services: [CacheService(closing: pages), CacheService(closing: sessions), server],
///       gracefulShutdownSignals: [.sigterm], logger: logger)
///
/// A service group shuts its services down in reverse order, each after the next one has ended. So
/// list this service *before* the server. Then the cache is still open for the writes of the
/// server's last request.
///
/// A close makes the next open fast and keeps the order of use. A program that is killed instead
/// loses no acknowledged write.
///
/// Hummingbird's `Application` treats its services in the same way.
public struct CacheService: Service {
  private let close: @Sendable () async throws -> Void

  /// Closes a cache.
  public init<Key, Value>(closing cache: DiskCache<Key, Value>) {
    close = { try await cache.close() }
  }

  /// Closes a store.
  public init(closing store: Store) {
    close = { try await store.close() }
  }

  /// Waits for the graceful shutdown or the cancellation of the task, then closes.
  ///
  /// - Throws: the errors of the close, for example if the disk is full. Then the last `.interval`
  ///   writes may be lost.
  public func run() async throws {
    // Throws if the task is cancelled. That also means: close.
    try? await gracefulShutdown()
    try await close()
  }
}
