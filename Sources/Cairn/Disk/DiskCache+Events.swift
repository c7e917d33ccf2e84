internal import CairnStore

extension DiskCache {
  /// Calls `body` with every later event of the cache.
  ///
  /// Calls come after the change, outside all locks, on the thread that caused it, so `body` may
  /// use the cache. Memory is updated first: by then, reads find new values and no longer find
  /// values that left the disk. The events of one thread are in order: the removal of the old
  /// value, the insertion, then evictions to make room. A batch reports the first two for each key,
  /// and at the end the evictions for the whole batch. The events of several threads come in any
  /// order. A value that was set and expired at once is reported as inserted, and as expired when
  /// it is removed. Events contain no values, because the cache would have to read them. A value
  /// dropped because it could not be decoded is reported as removed.
  ///
  /// The exception is a change that an observer makes to the cache. It is reported at once, within
  /// the call that makes it, before the remaining events of the original change. Observers added
  /// after the one that made the change therefore learn of that change before the event that led to
  /// it. Only then do all observers learn of the remaining events, such as the other keys of a
  /// batch and evictions. If an observer replicates the cache's contents, no other observer may
  /// change the cache.
  ///
  /// Keys are decoded only while the cache has observers. The log reports keys that cannot be
  /// decoded.
  ///
  /// - Returns: an object that ends the observation.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation {
    events.add { event, _ in body(event) }
  }

  /// A stream of every later event of the cache, in the order of `observe`, with its exception for
  /// observers that change the cache.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader. The newest stay.
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

  /// Like `observe`, with the version of the inserted or removed entry or, for `removeAll`, the
  /// last removed version. For tests.
  package func observeVersions(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void
  ) -> CacheObservation {
    events.add(body)
  }

  /// The number of observers: for tests.
  package var observerCount: Int { events.observerCount }
}
