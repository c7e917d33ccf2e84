public import CairnStore

extension MemoryCache {
  /// The value of a key, or `nil` if the key has no unexpired value.
  ///
  /// Counts as an access. If the entry has expired, the call removes it, unless a `LoadPolicy`
  /// keeps it for calls that accept stale values.
  ///
  /// - Complexity: O(1). Retains nothing but the value.
  @inlinable
  public func value(forKey key: Key) -> Value? {
    value(forKey: key, at: clock.now())
  }

  /// Like `value(forKey:)`, at a known time.
  @inlinable
  @inline(__always)
  func value(forKey key: Key, at now: Int64) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    if let value = lock.sharedFind(key, SharedQuery(hash: hash, at: now)) { return value }
    return look(key, hash: hash, at: now, isRead: true) { state, slot in
      state.table.value(slot)
    }
  }

  /// The value of a key, or `nil` if the key has no unexpired value. Does not count as an access:
  /// the access order, idle limits and the statistics stay the same.
  ///
  /// - Complexity: O(1).
  @inlinable
  public func peekValue(forKey key: Key) -> Value? {
    look(key, isRead: false) { state, slot in state.table.value(slot) }
  }

  /// The value of a key, with all information about it, from one read. Counts as an access, but the
  /// times in `info` are from before this access.
  ///
  /// - Complexity: O(1).
  @inlinable
  public func entry(forKey key: Key) -> Entry<Key, Value>? {
    look(key, isRead: true) { state, slot in
      guard let key = state.table.key(slot), let value = state.table.value(slot) else { return nil }
      return Entry(key: key, value: value, info: state.info(slot))
    }
  }

  /// Information about a key: version, cost and times. Does not count as an access.
  ///
  /// - Complexity: O(1).
  @inlinable
  public func info(forKey key: Key) -> EntryInfo? {
    look(key, isRead: false) { state, slot in state.info(slot) }
  }

  /// Whether a read of the key would find a value. Does not count as an access.
  ///
  /// - Complexity: O(1).
  @inlinable
  public func contains(_ key: Key) -> Bool {
    look(key, isRead: false) { _, _ in true } ?? false
  }

  /// The keys that a read would find. The last to be evicted comes first, unless other threads read
  /// at the same time.
  ///
  /// - Complexity: O(count), under the lock.
  public func keys() -> [Key] { snapshot { key, _, _ in key } }

  /// Calls `body` with each entry that a read would find, until `body` returns `.stop`. Visits the
  /// entries present at one moment. The last to be evicted comes first. `body` runs outside the
  /// lock and may use the cache. Does not count as an access.
  ///
  ///     cache.forEachEntry { entry in
  ///       print(entry.key, entry.info.cost)
  ///       return .next
  ///     }
  ///
  /// - Returns: 0, because a cache in memory skips no entry.
  /// - Throws: any error of `body`.
  /// - Complexity: O(count), under the lock.
  @discardableResult
  public func forEachEntry<Failure: Error>(
    _ body: (Entry<Key, Value>) throws(Failure) -> Visit
  ) throws(Failure) -> Int {
    for entry in entries() where try body(entry) == .stop { break }
    return 0
  }

  /// The entries that `forEachEntry` visits.
  package func entries() -> [Entry<Key, Value>] {
    snapshot { Entry(key: $0, value: $1, info: $2) }
  }

  func snapshot<Result>(
    _ body: (Key, Value, EntryInfo) -> Result
  ) -> [Result] {
    let now = clock.now()
    return lock.withLock { state in
      var results: [Result] = []
      results.reserveCapacity(state.table.count)
      var slot = state.table.list.newest
      while slot != noSlot {
        if !state.table.nodes[Int(slot)].hasExpired(at: now),
          let key = state.table.key(slot), let value = state.table.value(slot)
        {
          results.append(body(key, value, state.info(slot)))
        }
        slot = state.table.nodes[Int(slot)].older
      }
      return results
    }
  }

  /// Looks up a key.
  ///
  /// - Parameter isRead: whether this is an access and counts as a hit or a miss.
  /// - Returns: the result of `body`, or `nil` if the key has no value.
  @inlinable
  @inline(__always)
  func look<Found>(
    _ key: Key, isRead: Bool, _ body: (inout MemoryState<Key, Value>, UInt32) -> Found?
  ) -> Found? {
    look(key, hash: MemoryTable<Key, Value>.hash(key), at: clock.now(), isRead: isRead, body)
  }

  /// Looks up a key whose hash is known.
  @inlinable
  @inline(__always)
  func look<Found>(
    _ key: Key, hash: UInt32, at now: Int64, isRead: Bool,
    _ body: (inout MemoryState<Key, Value>, UInt32) -> Found?
  ) -> Found? {
    var expired: ExpiredEntry<Key, Value>?
    let found = lock.withLock(forReading: true) { state -> Found? in
      let slot = state.table.find(key, hash: hash)
      if slot == noSlot {
        if isRead { state.statistics.missCount &+= 1 }
        return nil
      }
      if state.table.nodes[Int(slot)].hasExpired(at: now) {
        if isRead { state.statistics.missCount &+= 1 }
        if !state.retains(slot, at: now) { expired = state.drop(expired: slot) }
        return nil
      }
      let found = body(&state, slot)
      if isRead {
        state.statistics.hitCount &+= 1
        state.touch(slot, at: now)
      }
      return found
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return found
  }
}

/// An expired entry that a read found. An object, so that a read that finds a value passes on only
/// an empty reference.
@usableFromInline
final class ExpiredEntry<Key: Hashable & Sendable, Value: Sendable> {
  private var removed: RemovedEntries<Key, Value>
  @usableFromInline let observers: [CacheObserver<Key, Value>]

  @usableFromInline
  init(
    _ removed: consuming RemovedEntries<Key, Value>, _ observers: [CacheObserver<Key, Value>]
  ) {
    self.removed = removed
    self.observers = observers
  }

  @usableFromInline
  func takeRemoved() -> RemovedEntries<Key, Value> {
    exchange(&removed, with: RemovedEntries())
  }
}

extension MemoryState {
  /// Records an access.
  @inlinable
  @inline(__always)
  mutating func touch(_ slot: UInt32, at now: Int64) {
    // The access time never goes back, so a deadline in the heap is never too late.
    if now > table.nodes[Int(slot)].accessed {
      table.nodes[Int(slot)].accessed = now
    }
    table.list.touch(slot, policy: policy, &table.nodes)
  }

  /// Removes an expired entry that a read found.
  @inlinable
  @inline(never)
  mutating func drop(expired slot: UInt32) -> ExpiredEntry<Key, Value> {
    var removed = Removed()
    remove(slot, .expired, &removed)
    return ExpiredEntry(removed, observers)
  }
}
