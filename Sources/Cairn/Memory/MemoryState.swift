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
  @usableFromInline var statistics = MemoryCacheStatistics()
  @usableFromInline var observers: [CacheObserver<Key, Value>] = []
  /// IDs are never reused: a late cancellation must not end another observation.
  @usableFromInline var lastObserverID: UInt64 = 0
  /// Information about writes. Keys whose hashes have the same lowest bits share a stripe.
  @usableFromInline var stripes: SlotArray<WriteStripe>
  /// The number of times that all entries were removed.
  @usableFromInline var clears: UInt64 = 0
  /// The process that has scheduled a removal of expired entries, if one is scheduled.
  @usableFromInline var trimScheduler: ProcessMark?
  /// An upper bound on the number of entries with reads to report to the tier below.
  @usableFromInline var untoldReadCount = 0
  /// Keys of entries that were read and then evicted before the read was reported to the tier
  /// below.
  @usableFromInline var evictedUntold: [Key] = []
  /// The access time of the newest entry at the last report to the tier below.
  @usableFromInline var lastReport = Int64.min
  /// Whether a report of accesses to the tier below, if there is one, is scheduled.
  @usableFromInline var isTellingScheduled = false
  /// How long expired entries stay for readers of stale values, in milliseconds. It only increases.
  @usableFromInline var retention: Int64 = 0
  /// Entries with tags are doubtful if their version is below this one; 0 for none. See
  /// `MemoryCache.doubt`.
  @usableFromInline var doubtful: UInt64 = 0

  /// Whether this is a tier above another one.
  @usableFromInline let isAboveOther: Bool

  /// The maximum number of expired entries that a write also removes. It is higher than the number
  /// of entries that a write can add.
  @usableFromInline static var expiredPerWrite: Int { 4 }

  /// The maximum number of entries removed under one hold of the lock.
  @usableFromInline static var mostRemoved: Int { 256 }

  @inlinable
  init(countLimit: Int?, costLimit: Int?, policy: EvictionPolicy, isAboveOther: Bool = false) {
    self.countLimit = max(0, countLimit ?? .max)
    self.costLimit = costLimit.map { UInt128(max(0, $0)) } ?? .max
    self.policy = policy
    self.isAboveOther = isAboveOther
    stripes = SlotArray(repeating: WriteStripe(), count: isAboveOther ? 1024 : 64)
  }

  @inlinable
  mutating func noteWrite(hash: UInt32) {
    stripes[stripe(hash)].count &+= 1
  }

  /// Records a write with a known version of the tier below.
  @inlinable
  mutating func noteWrite(hash: UInt32, version: UInt64) {
    noteWrite(hash: hash)
    let stripe = stripe(hash)
    if version > stripes[stripe].newest { stripes[stripe].newest = version }
  }

  /// Records a write with an unknown version.
  @inlinable
  mutating func noteUnknown(hash: UInt32) {
    noteWrite(hash: hash)
    stripes[stripe(hash)].unknownCount &+= 1
  }

  @inlinable
  func stripe(_ hash: UInt32) -> Int { Int(hash) & (stripes.count &- 1) }

  @inlinable
  func ticket(hash: UInt32) -> CacheTicket {
    let stripe = stripe(hash)
    return CacheTicket(
      hash: hash, writes: stripes[stripe].count, unknowns: stripes[stripe].unknownCount,
      clears: clears)
  }

  // MARK: Removing

  @inlinable
  mutating func remove(_ slot: UInt32, _ cause: RemovalCause, _ removed: inout Removed) {
    statistics.note(cause)
    // An entry whose key was taken for a report is no longer recent.
    let isUntold = table.nodes[Int(slot)].isRead && table.nodes[Int(slot)].isRecent
    if let payload = table.remove(slot) {
      if isUntold { noteUntold(payload.key, cause) }
      removed.append(RemovedEntry(key: payload.key, value: payload.value, cause: cause))
    }
  }

  /// Keeps the key of an entry that was read, if the tier below still has the entry.
  ///
  /// If more entries are evicted between two reports than this tier holds, the later ones were read
  /// from below since the first report. So the tier below already knows of a recent read.
  @usableFromInline
  mutating func noteUntold(_ key: Key, _ cause: RemovalCause) {
    guard case .evicted = cause, evictedUntold.count < max(4096, table.count) else { return }
    evictedUntold.append(key)
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
    noteWrite(hash: hash)
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

  /// Whether only the tier below knows if reads may still find an entry.
  @inlinable
  @inline(__always)
  func isDoubtful(_ slot: UInt32) -> Bool {
    doubtful != 0 && table.nodes[Int(slot)].hasTags && table.nodes[Int(slot)].version < doubtful
  }

  @inlinable
  func info(_ slot: UInt32) -> CacheEntryInfo {
    CacheEntryInfo(table.nodes[Int(slot)])
  }
}

/// Marks when a fetch of a key's value began, and shows whether the key has been written since.
@usableFromInline
package struct CacheTicket: Sendable, Equatable {
  /// The hash of the key.
  @usableFromInline let hash: UInt32
  @usableFromInline let writes: UInt64
  @usableFromInline let unknowns: UInt64
  @usableFromInline let clears: UInt64

  @inlinable
  init(hash: UInt32 = 0, writes: UInt64 = 0, unknowns: UInt64 = 0, clears: UInt64 = 0) {
    self.hash = hash
    self.writes = writes
    self.unknowns = unknowns
    self.clears = clears
  }
}

/// Information about the writes to a group of keys. It does not distinguish the keys.
@usableFromInline
struct WriteStripe: Sendable {
  /// Increases with each write, and with each report about these keys.
  @usableFromInline var count: UInt64 = 0
  /// Increases with each report without a version.
  @usableFromInline var unknownCount: UInt64 = 0
  /// The highest reported version.
  @usableFromInline var newest: UInt64 = 0

  @inlinable init() {}
}
