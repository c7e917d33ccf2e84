public import CairnStore

/// The memory tier of a ``DiskCache``, with the operations that concern only memory.
///
/// The tier holds some of the entries on disk. You can inspect and shrink it, but only the cache
/// itself sets values. Entries that the tier drops stay on disk, except for entries in memory only,
/// which are lost.
///
/// The tier may also hold values that have been replaced or removed on disk, above all in a cache
/// that follows another process. They stay until their key is read or the tier needs room, but no
/// read returns them.
public struct MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let cache: DiskCache<Key, Value>
  let held: MemoryCache<TierKey<Key>, TierValue<Value>>

  init(_ cache: DiskCache<Key, Value>, _ held: MemoryCache<TierKey<Key>, TierValue<Value>>) {
    self.cache = cache
    self.held = held
  }

  /// The number of entries in memory that have not expired.
  package func count() -> Int { held.count() }

  /// The total cost of these entries.
  package func totalCost() -> Int { held.totalCost() }

  /// Counts of the tier's operations, and its current size.
  public func statistics() -> CacheStatistics { CacheStatistics(held.tierMetrics()) }

  /// The maximum number of entries. See `MemoryCache.countLimit`.
  public var countLimit: Int? {
    get { held.countLimit }
    nonmutating set { held.countLimit = newValue }
  }

  /// The maximum total cost of all entries. See `MemoryCache.costLimit`.
  public var costLimit: Int? {
    get { held.costLimit }
    nonmutating set { held.costLimit = newValue }
  }

  /// The value of a key if it is in memory. Does not count as an access.
  package func value(forKey key: Key) throws(StoreError) -> Value? {
    try cache.peekCurrentValue(ofKey: cache.tierKey(key))
  }

  /// Whether the value of a key is in memory. Does not count as an access.
  package func contains(_ key: Key) throws(StoreError) -> Bool {
    try value(forKey: key) != nil
  }

  /// Information about a key whose value is in memory. Does not count as an access.
  package func info(forKey key: Key) throws(StoreError) -> EntryInfo? {
    if try value(forKey: key) == nil { return nil }
    return held.info(forKey: try cache.tierKey(key))
  }

  /// The keys in memory. The last to be evicted comes first.
  package func keys() -> [Key] { held.keys().map(\.key) }

  /// Drops every entry from memory. Entries on disk stay.
  public func removeAll() { held.removeAll(cause: .evicted(.trim)) }

  /// Calls `body` with every later event of the tier. See `MemoryCache.observe`.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ value: Value?) -> Void
  ) -> CacheObservation {
    held.observe { event, value in body(event.mapKey(\.key), value?.value) }
  }

  /// Drops entries from memory. Entries on disk stay. See `MemoryCache.trim(_:)`.
  ///
  /// - Returns: a summary of the dropped entries.
  @discardableResult
  public func trim(_ trim: Trim) -> RemovalSummary { held.trim(trim) }
}

extension CacheEvent {
  func mapKey<Other: Sendable>(_ body: (Key) -> Other) -> CacheEvent<Other> {
    switch self {
    case .inserted(let key): .inserted(key: body(key))
    case .removed(let key, let cause): .removed(key: body(key), cause: cause)
    case .removedAll(let count): .removedAll(count: count)
    case .damaged(let key): .damaged(key: body(key))
    case .loadFailed(let key, let reason): .loadFailed(key: body(key), reason: reason)
    case .memoryPressure(let pressure): .memoryPressure(pressure)
    case .enteredBackground: .enteredBackground
    }
  }
}
