/// An observer of a cache's events.
@usableFromInline
struct CacheObserver<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline var id: UInt64
  @usableFromInline var body: @Sendable (CacheEvent<Key>, Value?) -> Void
}

/// An observer's registration. It lasts until you call `cancel` or the cache is deallocated. You do
/// not need to keep this value.
public struct CacheObservation: Sendable {
  private let end: @Sendable () -> Void

  init(_ end: @escaping @Sendable () -> Void) { self.end = end }

  /// Ends the observation. An event that is already being delivered may still arrive.
  public func cancel() { end() }
}
