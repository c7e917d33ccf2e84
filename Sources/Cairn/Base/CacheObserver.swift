/// Somebody who is told what happens to a cache.
@usableFromInline
struct CacheObserver<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline var id: UInt64
  @usableFromInline var body: @Sendable (CacheEvent<Key>, Value?) -> Void
}

/// An observer's place in a cache. It stays until `cancel` is called or the cache goes, also where this
/// is not kept.
public struct CacheObservation: Sendable {
  private let end: @Sendable () -> Void

  init(_ end: @escaping @Sendable () -> Void) { self.end = end }

  /// Ends it. An event that is being told may still arrive.
  public func cancel() { end() }
}
