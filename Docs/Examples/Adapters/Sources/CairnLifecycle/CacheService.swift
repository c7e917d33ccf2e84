import Cairn
import ServiceLifecycle

/// Closes a cache or a store when the program ends, after the last request.
///
///     let group = ServiceGroup(
///       services: [CacheService(closing: pages), CacheService(closing: sessions), server],
///       gracefulShutdownSignals: [.sigterm], logger: logger)
///
/// A service group shuts its services down in the reverse of their order, each when the one behind it
/// has ended. So stand this one *before* the server: the server then answers its last request first, and
/// what that request writes is kept.
///
/// A close makes the next open fast, and keeps the order of use. A program that is killed instead loses
/// nothing that was acknowledged.
///
/// Hummingbird's `Application` does the same with the services that it is given.
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

  /// Waits for the graceful shutdown, or for the end of the task, and closes.
  ///
  /// - Throws: what the close throws, such as a full disk: the last writes of `.interval` may be lost.
  public func run() async throws {
    // It throws where the task is cancelled: time to close as well.
    try? await gracefulShutdown()
    try await close()
  }
}
