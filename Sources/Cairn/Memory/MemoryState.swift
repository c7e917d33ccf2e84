/// The state that the lock of a ``MemoryCache`` guards, and all work under it.
///
/// Nothing here calls code outside the cache, except `==` of keys. Removed entries go into
/// `RemovedEntries`, which the caller passes on after releasing the lock.
@usableFromInline
struct MemoryState<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
  @usableFromInline typealias Removed = RemovedEntries<Key, Value>

  @usableFromInline var table = MemoryTable<Key, Value>()
  @usableFromInline var countLimit: Int
  /// If there is no limit, this is higher than any sum of costs.
  @usableFromInline var costLimit: UInt128
  @usableFromInline let policy: EvictionPolicy
  @usableFromInline var lastVersion: UInt64 = 0
  @usableFromInline var statistics = MemoryCounts()
  /// Hits that the caller could not use. See `MemoryCache.takeBackHit`.
  @usableFromInline var takenBackCount: UInt64 = 0
  /// The highest number of hits that statistics have shown. They never show fewer.
  var shownHitCount: UInt64 = 0
  @usableFromInline var observers: [CacheObserver<Key, Value>] = []
  /// IDs are never reused: a late cancellation must not end another observation.
  @usableFromInline var lastObserverID: UInt64 = 0
  /// The process that has scheduled a removal of expired entries, if one is scheduled.
  @usableFromInline var trimScheduler: ProcessMark?
  /// How long expired entries stay for readers of stale values, in milliseconds. It only increases.
  @usableFromInline var retention: Int64 = 0

  /// The maximum number of expired entries that a write also removes. It is higher than the number
  /// of entries that a write can add.
  @usableFromInline static var expiredPerWrite: Int { 4 }

  /// The maximum number of entries removed under one hold of the lock.
  @usableFromInline static var mostRemoved: Int { 256 }

  @inlinable
  init(countLimit: Int?, costLimit: Int?, policy: EvictionPolicy) {
    self.countLimit = max(0, countLimit ?? .max)
    self.costLimit = costLimit.map { UInt128(max(0, $0)) } ?? .max
    self.policy = policy
  }

  // MARK: Removing

  @inlinable
  mutating func remove(_ slot: UInt32, _ cause: RemovalCause, _ removed: inout Removed) {
    statistics.note(cause)
    if let payload = table.remove(slot) {
      removed.append(RemovedEntry(key: payload.key, value: payload.value, cause: cause))
    }
  }

  /// Removes one expired entry.
  ///
  /// - Returns: the entry's cost, or `nil` if nothing was removed. An entry may then still be due;
  ///   see `DeadlineHeap.firstDue`.
  @inlinable
  mutating func removeOneExpired(at now: Int64, _ removed: inout Removed) -> Int? {
    guard table.deadlines.isDue(at: now) else { return nil }
    let slot = table.deadlines.firstDue(at: now, &table.nodes)
    if slot == noSlot { return nil }
    let cost = table.nodes[Int(slot)].cost
    remove(slot, .expired, &removed)
    return cost
  }

  /// Removes one entry: an expired one if it is found quickly, otherwise the one that the policy
  /// chooses.
  ///
  /// - Returns: the entry's cost, or `nil` if nothing was removed.
  @inlinable
  mutating func removeNext(
    at now: Int64, _ cause: EvictionCause, sparing spared: UInt32 = noSlot,
    _ removed: inout Removed
  ) -> Int? {
    if let cost = removeOneExpired(at: now, &removed) { return cost }
    let slot =
      policy == .s3FIFO
      ? queueVictim(cause, sparing: spared)
      : table.list.victim(policy: policy, sparing: spared, of: table.count, &table.nodes)
    if slot == noSlot { return nil }
    let cost = table.nodes[Int(slot)].cost
    remove(slot, .evicted(cause), &removed)
    return cost
  }

  // MARK: Inserting

  /// Sets a value and enforces the limits. If that needs more than `mostRemoved` removals, the
  /// caller does the rest in groups, when it delivers these; see `MemoryCache.deliverSlowly`.
  ///
  /// Inlined, like `refusal`.
  ///
  /// - Parameters:
  ///   - found: the slot of the key, or `noSlot`.
  ///   - cost: a negative cost counts as 0.
  /// - Returns: whether the value is held. If not, it is the last entry of `removed`.
  @inlinable
  @inline(__always)
  mutating func put(
    _ value: consuming Value, forKey key: Key, hash: UInt32, at found: UInt32, _ times: EntryTimes,
    cost: Int, version: UInt64?, _ removed: inout Removed
  ) -> Bool {
    let cost = max(0, cost)
    statistics.insertionCount += 1
    lastVersion = max(lastVersion + 1, version ?? 0)
    var oldCause = RemovalCause.replaced
    if found != noSlot, table.nodes[Int(found)].hasExpired(at: times.now) { oldCause = .expired }
    if let refusal = refusal(of: times, cost: cost, version) {
      if found != noSlot {
        remove(found, oldCause, &removed)
      }
      statistics.note(refusal)
      removed.append(RemovedEntry(key: key, value: value, cause: refusal, isRefused: true))
      return false
    }
    var slot = found
    if slot == noSlot {
      let isSmall = policy == .s3FIFO && goesToSmall(hash: hash, cost: cost)
      slot = table.insert(key, value, hash: hash, isSmall: isSmall)
    } else {
      statistics.note(oldCause)
      var old = value
      table.exchangeValue(of: slot, with: &old)
      removed.append(RemovedEntry(key: key, value: old, cause: oldCause))
      table.list.touch(slot, policy: policy, &table.nodes)
    }
    table.set(slot, cost: cost, times, version: version ?? lastVersion)
    keepLimits(at: times.now, sparing: slot, &removed)
    return true
  }

  /// Why a value is not kept, or `nil` if it is.
  ///
  /// Inlined, because a call from a mutating method copies the whole state.
  @inlinable
  @inline(__always)
  func refusal(of times: EntryTimes, cost: Int, _ version: UInt64?) -> RemovalCause? {
    if times.hasExpiredAtOnce { return .expired }
    // Only a damaged or forged store has such a version.
    if let version, version > EntryNode.highestVersion { return .evicted(.trim) }
    if countLimit == 0 { return .evicted(.countLimit) }
    if UInt128(cost) > costLimit { return .evicted(.costLimit) }
    return nil
  }

  /// The limit that the entries exceed, or `nil`.
  @inlinable
  var exceededLimit: EvictionCause? {
    if table.count > countLimit { return .countLimit }
    return table.totalCost > costLimit ? .costLimit : nil
  }

  /// Removes entries until the limits hold, or `mostRemoved` are removed.
  ///
  /// - Parameter spared: an entry that fits by itself and must stay.
  @inlinable
  mutating func keepLimits(at now: Int64, sparing spared: UInt32, _ removed: inout Removed) {
    var expiredCount = 0
    let end = retentionEnd(at: now)
    while expiredCount < Self.expiredPerWrite, removeOneExpired(at: end, &removed) != nil {
      expiredCount += 1
    }
    while removed.count < Self.mostRemoved, let limit = exceededLimit,
      removeNext(at: now, limit, sparing: spared, &removed) != nil
    {}
  }

  // MARK: Retained entries

  /// An expired entry can be retained only if its lifetime ended after this time.
  @inlinable
  func retentionEnd(at now: Int64) -> Int64 {
    if retention == 0 { return now }
    let (end, overflow) = now.subtractingReportingOverflow(retention)
    return overflow ? .min : end
  }

  /// Whether an expired entry stays, for readers of stale values.
  @inlinable
  func retains(_ slot: UInt32, at now: Int64) -> Bool {
    if retention == 0 { return false }
    return table.nodes[Int(slot)].expires > retentionEnd(at: now)
      && !table.nodes[Int(slot)].isIdle(at: now)
  }

  /// The number of entries that a read would find, and their total cost.
  func found(at now: Int64) -> (count: Int, cost: UInt128) {
    var found = (count: table.count, cost: table.totalCost)
    if retention == 0 { return found }
    table.deadlines.forEachDue(at: now) { slot in
      guard table.nodes[Int(slot)].hasExpired(at: now) else { return }
      found.count -= 1
      found.cost -= UInt128(table.nodes[Int(slot)].cost)
    }
    return found
  }

  // MARK: Lookups

  @inlinable
  func info(_ slot: UInt32) -> EntryInfo {
    EntryInfo(table.nodes[Int(slot)])
  }
}
