public import CairnStore

/// Values that are made when they are asked for and not there.
extension TieredCache: Loading {
  /// The value of a key; where neither tier has one, it is loaded, and kept in both.
  ///
  ///     let page = try await pages.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// However many ask for a key at the same time, it is loaded once; all that is said of
  /// `MemoryCache.value(forKey:orLoad:)` and `DiskCache.value(forKey:orLoad:)` holds here.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - cost: as with `setValue`.
  ///   - lifetime: how long the value lives, from the end of the load on.
  ///   - idleLimit: as with `setValue`.
  ///   - load: makes the value.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad`.
  @inlinable
  public func value(
    forKey key: Key, cost: Int? = nil, lifetime: Lifetime = .standard, idleLimit: Duration? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if let value = try readableValue(forKey: key) { return value }
    return try await loadValue(forKey: key) {
      Loaded(try await load(), cost: cost, lifetime: lifetime, idleLimit: idleLimit)
    }
  }

  /// The value of a key; where neither tier has one, it is loaded, and kept as the load says. Otherwise as
  /// `value(forKey:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    if let value = try readableValue(forKey: key) { return value }
    return try await loadValue(forKey: key, load)
  }

  /// The value of a key; what cannot be made sense of is removed, and what is damaged is none.
  @inlinable
  func readableValue(forKey key: Key) throws(CacheError) -> Value? {
    do throws(CacheError) { return try value(forKey: key) } catch {
      return try disk.orDropped(key) { () throws(CacheError) in throw error }
    }
  }

  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let key = try tierKey(key)
    return try await disk.loadValue(forKey: key.key, load) { [self] noteDamage in
      try disk.orDropped(key.key, counts: false, noteDamage: noteDamage) {
        () throws(CacheError) in try peek(key)
      }
    } keep: { [held] (loaded, write) throws(CacheError) in
      let entry = PublishedEntry(
        loaded.value, key, loaded.cost, loaded.lifetime, loaded.idleLimit, held)
      do throws(CacheError) {
        guard let written = try write() else { return false }
        held.publish(entry, written)
        return true
      } catch {
        if !error.hasWrittenNothing { held.invalidate(key, through: nil, .removed) }
        throw error
      }
    }
  }

  /// What was loaded by `value(forKey:orLoad:)`.
  public var loadStatistics: LoadStatistics { disk.loadStatistics }
}
