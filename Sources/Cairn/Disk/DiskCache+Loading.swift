internal import CairnStore
internal import Synchronization

/// Values that are made when they are asked for and not there.
extension DiskCache: Loading {
  /// The value of a key; where there is none, it is loaded, and kept.
  ///
  ///     let page = try await cache.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// However many ask for a key at the same time, it is loaded once; all that is said of
  /// `MemoryCache.value(forKey:orLoad:)` holds here. A value that another version of the program has written,
  /// and this one cannot decode or knows by another tag, is removed and loaded anew, whatever the policies
  /// of the configuration say of a read. One that is damaged on disk is replaced by what was loaded, and the log tells of
  /// it; where the load fails it stays. A value that cannot be written to disk is handed out
  /// all the same; the log tells why, and `loadStatistics` counts it.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - load: makes the value.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if let value = try readableValue(forKey: key) { return value }
    return try await loadValue(forKey: key) {
      Loaded(try await load(), options: options)
    }
  }

  /// The value of a key; where there is none, it is loaded, and kept as the load says. Otherwise as
  /// `value(forKey:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    if let value = try readableValue(forKey: key) { return value }
    return try await loadValue(forKey: key, load)
  }

  /// What was loaded by `value(forKey:orLoad:)`.
  public var loadStatistics: LoadStatistics { flights.statistics }

  /// The value of a key; what cannot be made sense of is removed, and what is damaged is none.
  @inlinable
  func readableValue(forKey key: Key) throws(CacheError) -> Value? {
    do throws(CacheError) { return try value(forKey: key) } catch {
      return try orDropped(key) { () throws(CacheError) in throw error }
    }
  }

  /// Waits for a value that is loaded.
  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let damage = Lock<CacheError?>(nil)
    return try await flights.value(forKey: try bytes(of: key)) { [self] in
      // Once more, since it may have come meanwhile.
      try orDropped(key, counts: false) { error in
        damage.withLock { $0 = error }
      } _: { () throws(CacheError) in
        try uncountedValue(forKey: key)
      }
    } load: { [self] flight in
      let loaded = try await load()
      do throws(CacheError) {
        // A durable write waits for a sync, and any write may wait for room.
        let isKept = try await store.entering.performUncancelled { [self] () throws(CacheError) in
          if let damage = damage.withLock({ $0 }) {
            try keyCoder.encode(key) { (key) throws(CacheError) in try dropDamaged(key, damage) }
          }
          return try flights.keeping { () throws(CacheError) in
            try write(loaded, forKey: key, flight)
          }
        }
        if isKept { events.hasRoom.store(true, ordering: .relaxed) } else { flights.noteOutdated() }
      } catch {
        flights.noteUnkept()
        var isNew = true
        if case .store(.noSpace) = error {
          // Once, while the disk is full: how many they are is counted.
          isNew = events.hasRoom.exchange(false, ordering: .relaxed)
        }
        if isNew {
          events.log(.warning, .writing, "a value that was loaded could not be kept: \(error)")
        }
      }
      return loaded.value
    }
  }

  /// Sets a value that was loaded, unless its key was written or removed since the load began, or has a
  /// value.
  ///
  /// - Returns: whether it was set.
  private func write(
    _ loaded: Loaded<Value>, forKey key: Key, _ flight: Flight<Value>
  ) throws(CacheError) -> Bool {
    let options = stored(loaded.options)
    let entry = try published(loaded.value, key, options)
    var isWritten = false
    try encode(loaded.value, forKey: key) { (bytes, value) throws(CacheError) in
      let result = try write(value, bytes, of: key, entry, showsMismatch: false) {
        (store, removals: inout [RemovalEvent]) throws(StoreError) in
        try store.enterAbsent(
          value, forKey: bytes, options: options, removals: &removals
        ) { !flight.isOutdated }
      }
      if case .stored = result { isWritten = true }
    }
    return isWritten
  }

  /// To be called before a key is written or removed.
  ///
  /// - Returns: whether it is being loaded.
  @discardableResult
  func noteWrite(_ key: RawSpan) -> Bool {
    flights.isActive && flights.noteWrite([UInt8](copying: key))
  }
}
