/// What the lock of a ``MemoryCache`` guards, and all that is done under it.
///
/// Nothing here calls out of the cache, but for `==` of keys: what a call removes goes into
/// `RemovedEntries`, which the caller hands over when the lock is given up.
@usableFromInline
struct MemoryState<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
  @usableFromInline typealias Removed = RemovedEntries<Key, Value>

  @usableFromInline var table = MemoryTable<Key, Value>()
  @usableFromInline var countLimit: Int
  /// Above every sum of costs where there is no limit.
  @usableFromInline var costLimit: UInt128
  @usableFromInline let policy: EvictionPolicy
  @usableFromInline var lastVersion: UInt64 = 0
  @usableFromInline var statistics = MemoryCacheStatistics()
  @usableFromInline var observers: [CacheObserver<Key, Value>] = []
  /// None is given twice: who cancels late must not end another's observation.
  @usableFromInline var lastObserverID: UInt64 = 0
  /// What is known of writes to keys, those with the same lowest bits of the hash together.
  @usableFromInline var stripes: SlotArray<WriteStripe>
  /// Counts the removals of all.
  @usableFromInline var clears: UInt64 = 0
  /// Whether a round of removing what has expired is asked for.
  @usableFromInline var isTrimScheduled = false
  /// How many entries, at most, were read that the tier below does not know of.
  @usableFromInline var untoldReadCount = 0
  /// Keys of entries that were read and evicted before the tier below knew.
  @usableFromInline var evictedUntold: [Key] = []
  /// Whether somebody was asked to tell the tier below what is used, where there is one.
  @usableFromInline var isTellingScheduled = false
  /// How long what has expired stays for readers of stale values, in milliseconds. It only grows.
  @usableFromInline var retention: Int64 = 0
  /// Entries with tags are in doubt up to this version; as `MemoryCache.doubt`.
  @usableFromInline var doubtful: UInt64 = 0

  /// Expired entries that a write removes at most on its way: more than it can add.
  @usableFromInline static var expiredPerWrite: Int { 4 }

  @inlinable
  init(countLimit: Int?, costLimit: Int?, policy: EvictionPolicy, isAboveOther: Bool = false) {
    self.countLimit = max(0, countLimit ?? .max)
    self.costLimit = costLimit.map { UInt128(max(0, $0)) } ?? .max
    self.policy = policy
    stripes = SlotArray(repeating: WriteStripe(), count: isAboveOther ? 1024 : 64)
  }

  @inlinable
  mutating func noteWrite(hash: UInt32) {
    stripes[stripe(hash)].count &+= 1
  }

  /// The same where the version is known, which is that of a tier below.
  @inlinable
  mutating func noteWrite(hash: UInt32, version: UInt64) {
    noteWrite(hash: hash)
    let stripe = stripe(hash)
    if version > stripes[stripe].newest { stripes[stripe].newest = version }
  }

  /// The same where it is not known.
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
      writes: stripes[stripe].count, unknowns: stripes[stripe].unknownCount, clears: clears)
  }

  // MARK: Taking out

  @inlinable
  mutating func remove(_ slot: UInt32, _ cause: RemovalCause, _ removed: inout Removed) {
    statistics.note(cause)
    // What was taken to be told is no more recent.
    let isUntold = table.nodes[Int(slot)].isRead && table.nodes[Int(slot)].isRecent
    if let payload = table.remove(slot) {
      if isUntold { noteUntold(payload.key, cause) }
      removed.append(RemovedEntry(key: payload.key, value: payload.value, cause: cause))
    }
  }

  /// Keeps the key of an entry that was read, where the tier below still has it. A telling is asked for when so
  /// many were read.
  @usableFromInline
  mutating func noteUntold(_ key: Key, _ cause: RemovalCause) {
    guard case .evicted = cause, evictedUntold.count < manyReadsCount else { return }
    evictedUntold.append(key)
  }

  /// Removes one entry that has expired.
  ///
  /// - Returns: what it cost; `nil` where there was none.
  @inlinable
  mutating func removeOneExpired(at now: Int64, _ removed: inout Removed) -> Int? {
    guard table.deadlines.isDue(at: now) else { return nil }
    let slot = table.deadlines.firstDue(at: now, &table.nodes)
    if slot == noSlot { return nil }
    let cost = table.nodes[Int(slot)].cost
    remove(slot, .expired, &removed)
    return cost
  }

  /// Removes one entry: an expired one where there is one, else the one that is next by the policy.
  ///
  /// - Returns: what it cost; `nil` where there was none.
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

  // MARK: Putting in

  /// Sets a value and keeps the limits.
  ///
  /// - Parameter cost: below 0 is as 0.
  /// - Returns: whether the value is held. Where not, it is the last of `removed`.
  @inlinable
  mutating func put(
    _ value: consuming Value, forKey key: Key, hash: UInt32, _ times: EntryTimes, cost: Int,
    version: UInt64?, _ removed: inout Removed
  ) -> Bool {
    let cost = max(0, cost)
    noteWrite(hash: hash)
    statistics.insertionCount += 1
    lastVersion = max(lastVersion + 1, version ?? 0)
    let found = table.find(key, hash: hash)
    var oldCause = RemovalCause.replaced
    if found != noSlot, table.nodes[Int(found)].hasExpired(at: times.now) { oldCause = .expired }
    if let refusal = refusal(of: times, cost: cost) {
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
      table.payloads[Int(slot)]?.exchange(&old)
      removed.append(RemovedEntry(key: key, value: old, cause: oldCause))
      table.list.touch(slot, policy: policy, &table.nodes)
    }
    table.set(slot, cost: cost, times, version: version ?? lastVersion)
    keepLimits(at: times.now, sparing: slot, &removed)
    return true
  }

  /// Why a value is not kept, if it is not.
  @inlinable
  func refusal(of times: EntryTimes, cost: Int) -> RemovalCause? {
    if times.hasExpiredAtOnce { return .expired }
    if countLimit == 0 { return .evicted(.countLimit) }
    if UInt128(cost) > costLimit { return .evicted(.costLimit) }
    return nil
  }

  /// Removes what is too much.
  ///
  /// - Parameter spared: an entry that fits by itself and is not to go.
  @inlinable
  mutating func keepLimits(at now: Int64, sparing spared: UInt32, _ removed: inout Removed) {
    var expiredCount = 0
    let end = retentionEnd(at: now)
    while expiredCount < Self.expiredPerWrite, removeOneExpired(at: end, &removed) != nil {
      expiredCount += 1
    }
    while table.count > countLimit,
      removeNext(at: now, .countLimit, sparing: spared, &removed) != nil
    {}
    while table.totalCost > costLimit,
      removeNext(at: now, .costLimit, sparing: spared, &removed) != nil
    {}
  }

  // MARK: What has expired and stays

  /// What had expired by then is not retained.
  @inlinable
  func retentionEnd(at now: Int64) -> Int64 {
    if retention == 0 { return now }
    let (end, overflow) = now.subtractingReportingOverflow(retention)
    return overflow ? .min : end
  }

  /// Whether an entry that has expired stays, for readers of stale values.
  @inlinable
  func retains(_ slot: UInt32, at now: Int64) -> Bool {
    if retention == 0 { return false }
    return table.nodes[Int(slot)].expires > retentionEnd(at: now)
      && !table.nodes[Int(slot)].isIdle(at: now)
  }

  /// How many entries a read would find, and what they cost together.
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

  // MARK: Looking at

  /// Whether only the tier below knows if an entry is still to be found.
  @inlinable
  @inline(__always)
  func isDoubtful(_ slot: UInt32) -> Bool {
    doubtful != 0 && table.nodes[Int(slot)].hasTags && table.nodes[Int(slot)].version <= doubtful
  }

  @inlinable
  func info(_ slot: UInt32) -> CacheEntryInfo {
    CacheEntryInfo(table.nodes[Int(slot)])
  }
}

extension EntryPayload {
  @inlinable
  mutating func exchange(_ other: inout Value) { swap(&value, &other) }
}

/// Proof of when somebody began to fetch a value: shows whether its key was written since.
@usableFromInline
package struct CacheTicket: Sendable, Equatable {
  @usableFromInline let writes: UInt64
  @usableFromInline let unknowns: UInt64
  @usableFromInline let clears: UInt64

  @inlinable
  init(writes: UInt64 = 0, unknowns: UInt64 = 0, clears: UInt64 = 0) {
    self.writes = writes
    self.unknowns = unknowns
    self.clears = clears
  }
}

/// What is known of the writes to some of the keys, which are not told apart.
@usableFromInline
struct WriteStripe: Sendable {
  /// Grows with each, and with all that is told of them.
  @usableFromInline var count: UInt64 = 0
  /// Grows with what is told without a version.
  @usableFromInline var unknownCount: UInt64 = 0
  /// The highest version that was told of.
  @usableFromInline var newest: UInt64 = 0

  @inlinable init() {}
}

/// How many entries are read before the tier below is to be told soon: some milliseconds' work.
@usableFromInline let manyReadsCount = 4096
