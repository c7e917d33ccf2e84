internal import CairnStore

extension DiskCache {
  /// Has `body` called with everything that happens to the cache from now on.
  ///
  /// It is called after the change, outside all locks, on the thread that caused it; it may use the cache.
  /// Memory is told first: what goes from the disk is not found any more by then, and what came is found.
  /// What one thread does is told in order: what went from the key, the insertion, then what had to make room
  /// for it; of a batch, so for each key, and at the end what had to make room for all. What several do at
  /// once is told in any order. A value that was set and has expired at once is
  /// told as inserted, and as expired when it is removed. Values are not told: they would have to be read.
  /// One that was dropped since it could not be decoded is told as removed.
  ///
  /// The exception is what an observer itself does to the cache: that is told at once, within the call that does
  /// it, before the rest of what the observer was called for. So observers that were added after it are told of
  /// what it did first, and then of what it was told of; and all are told only then of what else that call did, as
  /// the other keys of a batch, and what had to make room. Observers that tell others what is in the cache need
  /// ones that do not change it.
  ///
  /// Keys are decoded only while somebody listens; of one that cannot be, the log tells.
  ///
  /// - Returns: what ends it.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation {
    events.add { event, _ in body(event) }
  }

  /// What happens to the cache from now on, in the order of `observe`, with its exception where an observer changes
  /// the cache.
  ///
  /// - Parameter limit: how many events wait at most for who reads the stream; the newest stay.
  /// - Returns: a stream that ends when the cache is closed, or gone.
  public func events(bufferingNewest limit: Int = 1024) -> AsyncStream<CacheEvent<Key>> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: CacheEvent<Key>.self, bufferingPolicy: .bufferingNewest(limit))
    let observation = observe { event in continuation.yield(event) }
    let id = streams.add(continuation)
    continuation.onTermination = { [weak streams] _ in
      observation.cancel()
      streams?.remove(id)
    }
    return stream
  }

  /// For tests: as `observe`, with the version of what came or went; of a removal of all, the last that went.
  package func observeVersions(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void
  ) -> CacheObservation {
    events.add(body)
  }

  /// For tests: how many observers there are.
  package var observerCount: Int { events.observerCount }
}
