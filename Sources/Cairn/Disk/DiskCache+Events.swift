internal import CairnStore

extension DiskCache {
  /// Calls `body` with every later event of the cache.
  ///
  /// Calls follow the change, outside all locks, on the thread that made the change, so `body` may
  /// use the cache. By then, both tiers show the change. The events of one thread arrive in order:
  /// the removal of the old value, the insertion, then evictions to make room. A batch reports the
  /// removal and the insertion for each key, and all evictions at its end. The events of several
  /// threads may arrive in any order. A value that expires at once is reported as inserted and,
  /// when it is removed, as expired. A value that is dropped because it cannot be decoded is
  /// reported as removed. Events contain no values, because the cache would have to read them.
  ///
  /// There is one exception. If an observer changes the cache, that change is reported at once,
  /// before the remaining events of the original change. Observers that were added later therefore
  /// receive the new event before the event that caused it. So if an observer replicates the
  /// cache's contents, no other observer may change the cache.
  ///
  /// Keys are decoded only while the cache has observers. The log reports keys that cannot be
  /// decoded.
  ///
  /// - Returns: the observation. Its `cancel()` ends it.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation {
    events.add { event, _ in body(event) }
  }

  /// A stream of every later event of the cache, in the order of `observe`.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader. If there are more,
  ///   the oldest are dropped.
  /// - Returns: a stream that ends when the cache is closed or deallocated.
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
}
