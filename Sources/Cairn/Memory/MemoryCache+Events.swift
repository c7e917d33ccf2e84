extension MemoryCache {
  /// Calls `body` with every later event of the cache, and with the inserted or removed value.
  ///
  /// Calls come after the change, outside all locks, on the thread that caused it or that
  /// noticed an expired entry or a shortage of memory. `body` may use the cache. The
  /// events of one thread are in order. The events of several threads come in any order.
  ///
  /// The exception is a change that an observer makes to the cache. It is reported at once, within
  /// the call that makes it, before the remaining events of the original change. Observers added
  /// after this observer therefore learn of its change first, and then of the event it was called
  /// for. Only then do all observers learn of the remaining events, such as evictions. If an
  /// observer replicates the cache's contents, no other observer may change the cache.
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

  /// A stream of every later event of the cache, without the values, so that an unread stream keeps
  /// none in memory. The order is the same as in `observe`, with its exception for observers that
  /// change the cache.
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
