extension MemoryCache {
  /// Calls `body` with every later event of the cache, and with the value that came or went.
  ///
  /// Calls come after the change, outside all locks, on the thread that caused it, or on the one
  /// that noticed that an entry had expired or memory was short. `body` may use the cache. The
  /// events of one thread are in order; those of several threads come in any order.
  ///
  /// There is one exception: changes that an observer makes to the cache. They are reported at
  /// once, within the call that makes them, before the rest of the events that the observer was
  /// called for. Observers added after it therefore hear of its changes first, and then of the
  /// event it was called for. Only then do all observers hear of the rest, such as what made room.
  /// Observers that replicate the cache's contents need fellow observers that do not change the
  /// cache.
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

  /// The same without the values, as in all caches.
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
    // What the closure holds is released outside the lock.
    withExtendedLifetime(observers) {}
  }

  /// A stream of every later event of the cache, without the values, so that an unread stream holds
  /// none of them. The order is that of `observe`, with its exception for observers that change the
  /// cache.
  ///
  /// - Parameter limit: the maximum number of events buffered for the reader. The newest stay.
  /// - Returns: a stream that ends with the cache.
  public func events(bufferingNewest limit: Int = 1024) -> AsyncStream<CacheEvent<Key>> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: CacheEvent<Key>.self, bufferingPolicy: .bufferingNewest(limit))
    let end = StreamEnd(continuation)
    let observation = observe { event, _ in end.continuation.yield(event) }
    continuation.onTermination = { _ in observation.cancel() }
    return stream
  }

  /// Tells observers of an event that is not about one entry.
  func tell(_ event: CacheEvent<Key>) {
    let observers = lock.withLock { $0.observers }
    for observer in observers { observer.body(event, nil) }
  }
}
