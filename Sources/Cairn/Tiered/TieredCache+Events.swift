/// One of the tiers of a ``TieredCache``.
public enum CacheTier: Sendable, Hashable, CaseIterable {
  /// The tier in memory, which holds a part of what is on disk.
  case memory
  /// The tier on disk, which holds everything.
  case disk
}

/// Something that happened to a tier of a ``TieredCache``.
public struct TierEvent<Key: Sendable>: Sendable {
  /// The tier that it happened to.
  public var tier: CacheTier
  /// What happened there.
  public var event: CacheEvent<Key>

  /// Makes an event of a tier.
  public init(_ event: CacheEvent<Key>, in tier: CacheTier) {
    self.tier = tier
    self.event = event
  }
}

extension TierEvent: Equatable where Key: Equatable {}
extension TierEvent: Hashable where Key: Hashable {}

extension TieredCache {
  /// Has `body` called with all that happens to both tiers from now on.
  ///
  /// A write is told by the disk first, then by memory; what goes from the disk goes from memory before the
  /// disk tells of it. A value that comes from the disk is told as inserted in memory, and what memory drops
  /// to keep its limits as evicted there, be it that value itself: the disk still has it. Where memory cannot vouch for a value any more, it
  /// drops it as removed, though the disk may have it: when a write threw and may have happened, and when somebody
  /// was told that the disk has nothing, and another may have written just then. For what is gone, listen to the
  /// disk.
  ///
  /// It is called after the change, outside all locks, on the thread that caused it; it may use the cache. What it
  /// does is told before the rest of what it was called for, as with `MemoryCache.observe` and `DiskCache.observe`.
  ///
  /// - Returns: what ends it.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: TierEvent<Key>) -> Void
  ) -> CacheObservation {
    let observations = [
      held.observe { event, _ in body(TierEvent(event.mapKey(\.key), in: .memory)) },
      disk.observe { event in body(TierEvent(event, in: .disk)) },
    ]
    return CacheObservation { for observation in observations { observation.cancel() } }
  }

  /// What happens to both tiers from now on, in the order of `observe`, with its exception where an observer changes
  /// the cache.
  ///
  /// - Parameter limit: how many events wait at most for who reads the stream; the newest stay.
  /// - Returns: a stream that ends when the cache is closed, or gone.
  public func events(bufferingNewest limit: Int = 1024) -> AsyncStream<TierEvent<Key>> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: TierEvent<Key>.self, bufferingPolicy: .bufferingNewest(limit))
    let observation = observe { event in continuation.yield(event) }
    let id = streams.add(continuation)
    continuation.onTermination = { [weak streams] _ in
      observation.cancel()
      streams?.remove(id)
    }
    return stream
  }
}
