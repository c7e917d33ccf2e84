public import CairnStore

/// The memory tier of a ``DiskCache``, with the operations that callers may perform on it alone.
///
/// It holds a part of the entries on disk. Callers can inspect and shrink it, but only the cache sets
/// values. Entries in memory only, by their placement or the cache's admission, are lost when the tier
/// drops them.
///
/// In a cache that follows another process, the tier also holds values that the writer has since
/// replaced or removed, until the key is read or the tier needs room. No lookup of a key finds
/// these values.
public struct MemoryTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let cache: DiskCache<Key, Value>
  let held: MemoryCache<TierKey<Key>, Value>
  private let recency: TierRecency<Key, Value>?

  init(
    _ cache: DiskCache<Key, Value>, _ held: MemoryCache<TierKey<Key>, Value>,
    _ recency: TierRecency<Key, Value>?
  ) {
    self.cache = cache
    self.held = held
    self.recency = recency
  }

  /// The number of held values that a read would find.
  public func count() -> Int { held.count() }

  /// Their total cost.
  public func totalCost() -> Int { held.totalCost() }

  /// Counts of the tier's operations, and its current contents.
  public func statistics() -> MemoryCacheStatistics { held.statistics() }

  /// The maximum number of entries. See `MemoryCache.countLimit`.
  public var countLimit: Int? {
    get { held.countLimit }
    nonmutating set {
      recency?.tell()
      held.countLimit = newValue
    }
  }

  /// The maximum total cost of all entries. See `MemoryCache.costLimit`.
  public var costLimit: Int? {
    get { held.costLimit }
    nonmutating set {
      recency?.tell()
      held.costLimit = newValue
    }
  }

  /// The value of a key if it is held. Does not count as an access.
  public func value(forKey key: Key) throws(CacheError) -> Value? {
    let key = try cache.tierKey(key)
    if let following = cache.following {
      return try cache.vouchedValue(of: key, in: following, isRead: false)?.value
    }
    return held.peekValue(forKey: key)
  }

  /// Whether the value of a key is held. Does not count as an access.
  public func contains(_ key: Key) throws(CacheError) -> Bool {
    if cache.following != nil { return try value(forKey: key) != nil }
    return held.contains(try cache.tierKey(key))
  }

  /// Information about a key whose value is held. Does not count as an access.
  public func info(forKey key: Key) throws(CacheError) -> CacheEntryInfo? {
    if cache.following != nil, try value(forKey: key) == nil { return nil }
    return held.info(forKey: try cache.tierKey(key))
  }

  /// The keys of held values. The last to be evicted comes first.
  public func keys() -> [Key] { held.keys().map(\.key) }

  /// Drops every entry from memory. The disk keeps them.
  public func removeAll() {
    recency?.tell()
    held.removeAll(cause: .evicted(.trim))
  }

  /// Calls `body` with every later event of the tier. See `MemoryCache.observe`.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ value: Value?) -> Void
  ) -> CacheObservation {
    held.observe { event, value in body(event.mapKey(\.key), value) }
  }
}

// The disk keeps what these methods drop.
extension MemoryTier: Trimming {
  /// Removes entries from memory until at most this many are held. See
  /// `MemoryCache.trim(toCount:order:)`. The disk keeps them.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: the same as `MemoryCache`.
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) -> RemovalSummary {
    recency?.tell()
    return held.trim(toCount: count, order: order)
  }

  /// Removes entries from memory until the rest costs at most this much. See
  /// `MemoryCache.trim(toCost:order:)`. The disk keeps them.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: the same as `MemoryCache`.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) -> RemovalSummary {
    recency?.tell()
    return held.trim(toCost: cost, order: order)
  }

  /// Removes entries from memory that were last accessed, or written, longer ago than `age`. The
  /// disk keeps them.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(n) for n held entries.
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) -> RemovalSummary {
    recency?.tell()
    return held.trim(olderThan: age, by: basis)
  }

  /// Removes expired entries from memory. No read finds these entries.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(1), and O(log n) for each removed entry.
  @discardableResult
  public func removeExpired() -> RemovalSummary { held.removeExpired() }
}

extension CacheEvent {
  func mapKey<Other: Sendable>(_ body: (Key) -> Other) -> CacheEvent<Other> {
    switch self {
    case .inserted(let key): .inserted(key: body(key))
    case .removed(let key, let cause): .removed(key: body(key), cause: cause)
    case .removedAll(let count): .removedAll(count: count)
    case .damaged(let key): .damaged(key: body(key))
    case .memoryPressure(let pressure): .memoryPressure(pressure)
    case .enteredBackground: .enteredBackground
    }
  }
}
