extension MemoryCache {
  /// Has `body` called with everything that happens to the cache from now on, and with the value that came or
  /// went.
  ///
  /// It is called after the change, outside all locks, on the thread that caused it, or on the one that
  /// noticed that an entry had expired or memory was short. It may use the cache. What one thread does is
  /// told in order; what several do at once is told in any order.
  ///
  /// The exception is what an observer itself does to the cache: that is told at once, within the call that does
  /// it, before the rest of what the observer was called for. So observers that were added after it are told of
  /// what it did first, and then of what it was told of; and all are told only then of what else that call did, as
  /// what had to make room. Observers that tell others what is in the cache need ones that do not change it.
  ///
  /// - Returns: the observation; its `cancel()` ends it.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ value: Value?) -> Void
  ) -> CacheObservation {
    let id = lock.withLock { state in
      state.lastObserverID += 1
      state.observers.append(CacheObserver(id: state.lastObserverID, body: body))
      return state.lastObserverID
    }
    return CacheObservation { [weak self] in self?.cancelObserver(id) }
  }

  /// The same without the values, as all caches have it.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>) -> Void
  ) -> CacheObservation {
    observe { event, _ in body(event) }
  }

  private func cancelObserver(_ id: UInt64) {
    let observers = lock.withLock { state in
      defer { state.observers.removeAll { $0.id == id } }
      return state.observers
    }
    // What the closure holds goes out of the lock.
    withExtendedLifetime(observers) {}
  }

  /// What happens to the cache from now on, without the values, so that a stream that nobody reads
  /// holds none of them. In the order of `observe`, with its exception where an observer changes the cache.
  ///
  /// - Parameter limit: how many events wait at most for who reads the stream; the newest stay.
  /// - Returns: a stream that ends with the cache.
  public func events(bufferingNewest limit: Int = 1024) -> AsyncStream<CacheEvent<Key>> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: CacheEvent<Key>.self, bufferingPolicy: .bufferingNewest(limit))
    let end = StreamEnd(continuation)
    let observation = observe { event, _ in end.continuation.yield(event) }
    continuation.onTermination = { _ in observation.cancel() }
    return stream
  }

  /// Tells observers of something that is not about one entry.
  func tell(_ event: CacheEvent<Key>) {
    let observers = lock.withLock { $0.observers }
    for observer in observers { observer.body(event, nil) }
  }
}
