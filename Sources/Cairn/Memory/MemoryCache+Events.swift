extension MemoryCache {
  /// Calls `body` with every later event of the cache and with the inserted or removed value.
  ///
  /// Calls follow the change, outside all locks, on the thread that made the change, so `body` may
  /// use the cache. The events of one thread arrive in order. The events of several threads may
  /// arrive in any order.
  ///
  /// There is one exception. If an observer changes the cache, that change is reported at once,
  /// before the remaining events of the original change. Observers that were added later therefore
  /// receive the new event before the event that caused it. So if an observer replicates the
  /// cache's contents, no other observer may change the cache.
  ///
  /// - Returns: the observation. Its `cancel()` ends it.
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

  /// Calls `body` with every later event of the cache, without the values.
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
    // Release the observer's closure, and everything it refers to, outside the lock.
    withExtendedLifetime(observers) {}
  }

  /// A stream of every later event of the cache, in the order of `observe`. Events contain no
  /// values, so an unread stream keeps no values in memory.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader. If there are more,
  ///   the oldest are dropped.
  /// - Returns: a stream that ends when the cache is deallocated.
  public func events(bufferingNewest limit: Int = 1024) -> AsyncStream<CacheEvent<Key>> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: CacheEvent<Key>.self, bufferingPolicy: .bufferingNewest(limit))
    let end = StreamEnd(continuation)
    let observation = observe { event, _ in end.continuation.yield(event) }
    continuation.onTermination = { _ in observation.cancel() }
    return stream
  }

  /// Tells observers of an event that does not concern a single entry.
  func tell(_ event: CacheEvent<Key>) {
    let observers = lock.withLock { $0.observers }
    for observer in observers { observer.body(event, nil) }
  }
}
