public import CairnStore

/// The tier in memory of a ``DiskCache``: what may be done with it alone.
///
/// It holds a part of what is on disk, so it can be looked at and made smaller; values are set through the cache.
///
/// That of a cache that follows another process also holds what the writer has replaced or removed since, until the key is
/// read or the room is needed. No look at a key finds it.
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

  /// How many values are held that a read would find.
  public func count() -> Int { held.count() }

  /// What they cost together.
  public func totalCost() -> Int { held.totalCost() }

  /// What the tier has done, and what it holds.
  public func statistics() -> MemoryCacheStatistics { held.statistics() }

  /// How many entries there may be; as `MemoryCache.countLimit`.
  public var countLimit: Int? {
    get { held.countLimit }
    nonmutating set {
      recency?.tell()
      held.countLimit = newValue
    }
  }

  /// How much all entries may cost together; as `MemoryCache.costLimit`.
  public var costLimit: Int? {
    get { held.costLimit }
    nonmutating set {
      recency?.tell()
      held.costLimit = newValue
    }
  }

  /// The value of a key where it is held. Is no access.
  public func value(forKey key: Key) throws(CacheError) -> Value? {
    let key = try cache.tierKey(key)
    if let following = cache.following {
      return try cache.vouchedValue(of: key, in: following, isRead: false)?.value
    }
    return held.peekValue(forKey: key)
  }

  /// Whether the value of a key is held. Is no access.
  public func contains(_ key: Key) throws(CacheError) -> Bool {
    if cache.following != nil { return try value(forKey: key) != nil }
    return held.contains(try cache.tierKey(key))
  }

  /// What is known of a key whose value is held. Is no access.
  public func info(forKey key: Key) throws(CacheError) -> CacheEntryInfo? {
    if cache.following != nil, try value(forKey: key) == nil { return nil }
    return held.info(forKey: try cache.tierKey(key))
  }

  /// The keys whose values are held, the one that would go last first.
  public func keys() -> [Key] { held.keys().map(\.key) }

  /// Drops everything that is held. The disk keeps it.
  public func removeAll() {
    recency?.tell()
    held.removeAll(cause: .evicted(.trim))
  }

  /// Has `body` called with everything that happens to the tier; as `MemoryCache.observe`.
  @discardableResult
  public func observe(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ value: Value?) -> Void
  ) -> CacheObservation {
    held.observe { event, value in body(event.mapKey(\.key), value) }
  }
}

// The disk keeps what these drop.
extension MemoryTier: Trimming {
  /// Removes entries from memory until at most so many are held; as `MemoryCache.trim(toCount:order:)`. The disk
  /// keeps them.
  ///
  /// - Returns: what was removed.
  /// - Complexity: as that of `MemoryCache`.
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) -> RemovalSummary {
    recency?.tell()
    return held.trim(toCount: count, order: order)
  }

  /// Removes entries from memory until the rest costs at most so much; as `MemoryCache.trim(toCost:order:)`. The
  /// disk keeps them.
  ///
  /// - Returns: what was removed.
  /// - Complexity: as that of `MemoryCache`.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) -> RemovalSummary {
    recency?.tell()
    return held.trim(toCost: cost, order: order)
  }

  /// Removes the entries from memory that were last accessed, or written, longer ago than `age`. The disk keeps
  /// them.
  ///
  /// - Returns: what was removed.
  /// - Complexity: O(n) for n entries that are held.
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) -> RemovalSummary {
    recency?.tell()
    return held.trim(olderThan: age, by: basis)
  }

  /// Removes from memory what has expired. No read finds it anyway.
  ///
  /// - Returns: what was removed.
  /// - Complexity: O(1), and O(log n) for each that is removed.
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
