internal import CairnStore

extension DiskCache {
  /// Calls `body` with everything that happens to the cache from now on.
  ///
  /// Calls come after the change, outside all locks, on the thread that caused it; `body` may use
  /// the cache. Memory is updated first: by then, reads no longer find what left the disk, and do
  /// find what arrived. The events of one thread are in order: the old value of the key, the
  /// insertion, then what made room for it. A batch reports this for each key, and at the end what
  /// made room for the whole batch. The events of several threads come in any order. A value that
  /// was set and expired at once is reported as inserted, and as expired when it is removed. Events
  /// contain no values, because those would have to be read. A value dropped because it could not
  /// be decoded is reported as removed.
  ///
  /// There is one exception: changes that an observer makes to the cache. They are reported at
  /// once, within the call that makes them, before the rest of the events that the observer was
  /// called for. Observers added after it therefore hear of its changes first, and then of the
  /// event it was called for. Only then do all observers hear of the rest, such as the other keys
  /// of a batch and what made room. Observers that replicate the cache's contents need fellow
  /// observers that do not change the cache.
  ///
  /// Keys are decoded only while there are observers; the log reports keys that cannot be decoded.
  ///
  /// - Returns: an object that ends the observation.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation {
    events.add { event, _ in body(event) }
  }

  /// A stream of everything that happens to the cache from now on, in the order of `observe`, with
  /// its exception for observers that change the cache.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader; the newest stay.
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

  /// Like `observe`, with the version of what came or went; for a removal of all, the last version
  /// that went. For tests.
  package func observeVersions(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void
  ) -> CacheObservation {
    events.add(body)
  }

  /// The number of observers: for tests.
  package var observerCount: Int { events.observerCount }
}
