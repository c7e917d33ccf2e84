package import CairnStore

/// The operations of a memory cache in front of a cache on disk.
///
/// These rules keep a read from returning an older value than another read returned:
///
/// - Every write takes a ticket, is made below, where it gets its version, and is then published
///   here.
/// - A removal below is reported here with its version before the removing call returns.
/// - A read that misses here takes a ticket, reads below, and promotes the value that it finds.
/// - A caller that has seen a version below must not find an older one here later. So the tier
///   notes every version that is published, reported or promoted, and every absence, even if
///   nothing else happens. A note voids the tickets of reads, and of writes that may be older than
///   the note.
/// - A void ticket inserts nothing for a key without an entry. At worst, a value is not cached,
///   because notes cover whole stripes of keys.
extension MemoryCache {
  /// Call before fetching a value that `promote` will insert.
  @inlinable
  package func ticket(forKey key: Key) -> CacheTicket {
    let hash = MemoryTable<Key, Value>.hash(key)
    return lock.withLock { $0.ticket(hash: hash) }
  }

  /// The value of a key. Counts as an access.
  ///
  /// - Parameters:
  ///   - ticket: if there is no value, set to a ticket for fetching it from below.
  ///   - notice: set to the report that the caller must make to the tier below.
  @inlinable
  @inline(__always)
  func readAbove(_ key: Key, ticket: inout CacheTicket, notice: inout PendingNotice) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    if let value = lock.sharedFind(key, SharedQuery(hash: hash, at: now)) { return value }
    var expired: ExpiredEntry<Key, Value>?
    let value = lock.withLock(forReading: true) { state -> Value? in
      let slot = state.table.find(key, hash: hash)
      if slot == noSlot {
        state.statistics.missCount &+= 1
        ticket = state.ticket(hash: hash)
        return nil
      }
      if state.table.nodes[Int(slot)].hasExpired(at: now) {
        state.statistics.missCount &+= 1
        if !state.retains(slot, at: now) { expired = state.drop(expired: slot) }
        ticket = state.ticket(hash: hash)
        return nil
      }
      if state.isDoubtful(slot) {
        state.statistics.missCount &+= 1
        ticket = state.ticket(hash: hash)
        return nil
      }
      state.statistics.hitCount &+= 1
      state.noteUse(slot, at: now, &notice)
      state.touch(slot, at: now)
      return state.table.value(slot)
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return value
  }

  /// The value of a key, fresh or retained. Otherwise like `readAbove`. Reads of stale values are
  /// not reported.
  func readHeldAbove(
    _ key: Key, ticket: inout CacheTicket, notice: inout PendingNotice
  ) -> HeldValue<Value>? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let held = lock.withLock(forReading: true) { state -> HeldValue<Value>? in
      let slot = state.table.find(key, hash: hash)
      let held = slot == noSlot ? nil : state.held(slot, at: now, drops: &expired)
      if let held, held.expires > now { state.noteUse(slot, at: now, &notice) }
      state.noteRead(slot, held, at: now)
      if held == nil { ticket = state.ticket(hash: hash) }
      return held
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return held
  }

  /// Inserts a fetched value, unless its key has been written or removed since the ticket was
  /// taken, or has a value that is not older. So a fetched value never replaces a newer one.
  /// Rarely, writes to other keys prevent the insertion.
  ///
  /// - Parameters:
  ///   - expires: the end of the value's lifetime, or `nil` for none.
  ///   - idleLimit: the idle limit, or `nil` for none.
  ///   - version: the value's version at the source. With `nil`, the value gets a new version, and
  ///     any existing value counts as newer.
  ///   - written: when the value was written at the source, or `nil` for now.
  ///   - hasTags: whether a mark at the source may hide the value.
  @inlinable
  @discardableResult
  package func promote(
    _ value: Value, forKey key: Key, ticket: CacheTicket, cost: Int? = nil,
    expires: Timestamp? = nil, idleLimit: Duration? = nil, version: UInt64? = nil,
    written: Timestamp? = nil, hasTags: Bool = false
  ) -> Bool {
    promote(
      value, forKey: key, ticket: ticket,
      clock.times(expires: expires, idleLimit: idleLimit, written: written),
      cost: cost ?? defaultCost(of: value, forKey: key), version: version, hasTags: hasTags)
  }

  /// Like the form above, with times that are already known.
  @inlinable
  @discardableResult
  func promote(
    _ value: Value, forKey key: Key, ticket: CacheTicket, _ times: EntryTimes, cost: Int,
    version: UInt64?, hasTags: Bool
  ) -> Bool {
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.promote(
        value, forKey: key, times, ticket: ticket, cost: cost, version: version, hasTags: hasTags,
        &removed)
      return (isInserted, state.observers, schedulesMaintenance && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return isInserted
  }

  /// Inserts a value that was written below, unless the key has a newer value, or has none and the
  /// ticket is void.
  ///
  /// - Parameters:
  ///   - ticket: taken before the write.
  ///   - times: taken before the write, so that the value ends here no later than below.
  @inlinable
  func publish(
    _ value: Value, forKey key: Key, ticket: CacheTicket, version: UInt64, _ times: EntryTimes,
    cost: Int, hasTags: Bool
  ) {
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.publish(
        value, forKey: key, ticket: ticket, version: version, times, cost: cost, hasTags: hasTags,
        &removed)
      return (isInserted, state.observers, schedulesMaintenance && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
  }

  /// Drops the value of a key if the value was removed below or can no longer be trusted.
  ///
  /// - Parameter version: the version that was removed. Newer ones stay. `nil` means any version.
  ///
  /// - Returns: whether the key had a value.
  @usableFromInline
  @discardableResult
  func invalidate(_ key: Key, through version: UInt64?, _ cause: RemovalCause) -> Bool {
    invalidate(hash: MemoryTable<Key, Value>.hash(key), through: version, cause) { $0 == key }
  }

  /// Records the version of a key below that a caller has seen. The tier may show no older version
  /// afterwards.
  ///
  /// - Parameter version: the version that the caller has seen, or `nil` for none.
  @usableFromInline
  func noteShown(_ version: UInt64?, of key: Key) {
    invalidate(
      hash: MemoryTable<Key, Value>.hash(key), through: version.map { $0 - 1 },
      version == nil ? .removed : .replaced
    ) { $0 == key }
  }

  /// Like the form above, for the key that `isSought` accepts.
  ///
  /// - Parameter hash: the hash of the key.
  @discardableResult
  func invalidate(
    hash: UInt32, through version: UInt64?, _ cause: RemovalCause,
    where isSought: (Key) -> Bool
  ) -> Bool {
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      if let version {
        state.noteWrite(hash: hash, version: version)
      } else {
        state.noteUnknown(hash: hash)
      }
      let slot = state.table.find(hash: hash, where: isSought)
      if slot != noSlot, state.table.nodes[Int(slot)].version <= version ?? .max {
        // The tier below no longer has the entry, so its reads need no report.
        state.table.nodes[Int(slot)].isRead = false
        state.remove(slot, cause, &removed)
      }
      return state.observers
    }
    let isRemoved = removed.count > 0
    deliver(removed, to: observers)
    return isRemoved
  }

  /// Call when a read below found no value. A value that arrived here since the read began counts
  /// as found.
  ///
  /// - Parameter counts: whether such a value counts as a hit.
  @usableFromInline
  func noteAbsent(_ key: Key, counts: Bool = false) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    return lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot, !state.table.nodes[Int(slot)].hasExpired(at: now),
        !state.isDoubtful(slot)
      {
        if counts { state.statistics.hitCount &+= 1 }
        return state.table.value(slot)
      }
      state.noteUnknown(hash: hash)
      return nil
    }
  }

  /// Records an access that the tier below knows of.
  func noteAccess(_ key: Key) {
    let now = clock.now()
    _ = look(key, isRead: false) { state, slot in state.touch(slot, at: now) }
  }

  // MARK: Reads to report

  /// The number of list entries visited under one hold of the lock.
  private static var recentGroupCount: Int { 512 }

  /// The keys of all entries read since the last call that returned any, and of entries written
  /// after one of them, in access order as far as the policy tracks it. Reporting the keys below in
  /// this order preserves the order of reads and writes. Call `noteTold` when reporting a key. Keys
  /// that were read and then evicted here come first.
  ///
  /// - Complexity: O(keys), or O(n) with `.sieve` and `.s3FIFO`. Holds the lock for several hundred
  ///   keys at a time.
  func takeRecentKeys() -> [Key] {
    let isLRU = configuration.policy == .leastRecentlyUsed
    let (hasRead, evicted) = lock.withLock { state in
      let newest = state.table.list.newest
      // With LRU, a read of an entry that was taken but not yet reported is not counted, but it
      // moves the entry to the front.
      let hasMoved = isLRU && newest != noSlot && state.table.nodes[Int(newest)].isRecent
      let count = exchange(&state.untoldReadCount, with: 0)
      return (count > 0 || hasMoved, exchange(&state.evictedUntold, with: []))
    }
    if !hasRead { return evicted }
    return evicted + (isLRU ? takeRecentKeysByWalk() : takeRecentKeysBySweep())
  }

  private func takeRecentKeysByWalk() -> [Key] {
    // Every access moves an entry to the front, so the accessed entries are at the front of the
    // list. Between them are entries that an eviction moved long after their last access.
    var last = Int64.min
    var keys: [Key] = []
    // The number of keys, down to the entry that was read least recently.
    var count = 0
    var isStart = true
    while true {
      let isDone = lock.withLock { state in
        if isStart {
          let newest = state.table.list.newest
          state.table.list.walk = newest
          if newest != noSlot {
            last = exchange(&state.lastReport, with: state.table.nodes[Int(newest)].accessed)
          }
        }
        for _ in 0..<Self.recentGroupCount {
          let slot = state.table.list.walk
          guard slot != noSlot, state.table.nodes[Int(slot)].isRecent else {
            state.table.list.walk = noSlot
            return true
          }
          let isRead = state.table.nodes[Int(slot)].isRead
          let isNew = isRead || state.table.nodes[Int(slot)].accessed >= last
          if let key = state.table.key(slot), state.takesToTell(slot), isNew {
            keys.append(key)
          }
          if isRead { count = keys.count }
          state.table.list.walk = state.table.nodes[Int(slot)].older
        }
        return false
      }
      isStart = false
      if isDone { return keys[..<count].reversed() }
      lock.giveWay()
    }
  }

  private func takeRecentKeysBySweep() -> [Key] {
    var found: [(key: Key, accessed: Int64, isRead: Bool)] = []
    forEachSlotGroup { state, slots in
      for slot in slots {
        let node = state.table.nodes[slot]
        if let key = state.table.key(UInt32(slot)), node.isRead || node.isRecent,
          state.takesToTell(UInt32(slot))
        {
          found.append((key, node.accessed, node.isRead))
        }
      }
    } then: { _ in
    }
    return found.sorted { $0.accessed < $1.accessed }.drop { !$0.isRead }.map(\.key)
  }

  /// An upper bound on the number of entries with reads to report to the tier below.
  var untoldReadCount: Int { lock.withLock { $0.untoldReadCount } }

  /// Whether the entry of a key has a read that was not reported to the tier below. Marks the read
  /// as reported.
  ///
  /// - Parameters:
  ///   - hash: the hash of the key.
  ///   - isSought: whether a key is the one to find.
  func takeRead(hash: UInt32, where isSought: (Key) -> Bool) -> Bool {
    let now = clock.now()
    return lock.withLock { state in
      let slot = state.table.find(hash: hash, where: isSought)
      guard slot != noSlot, state.table.nodes[Int(slot)].isRead else { return false }
      state.table.nodes[Int(slot)].isRead = false
      // An earlier read does not bring back an expired entry.
      return !state.table.nodes[Int(slot)].hasExpired(at: now)
    }
  }

  /// Call just before reporting a taken key to the tier below. Until then, the key counts as in
  /// use.
  func noteTold(_ key: Key) {
    let hash = MemoryTable<Key, Value>.hash(key)
    lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot { state.table.nodes[Int(slot)].isRead = false }
    }
  }

  /// The number of entries held, including expired ones.
  var heldCount: Int { lock.withLock { $0.table.count } }

  /// Lets the next hit request another report.
  func endTelling() { lock.withLock { $0.isTellingScheduled = false } }
}

extension MemoryState {
  /// Records that a read must be reported to the tier below. Call before touching the entry.
  @inlinable
  @inline(__always)
  mutating func noteUse(_ slot: UInt32, at now: Int64, _ notice: inout PendingNotice) {
    // One report per millisecond is enough.
    let isToldAtOnce = table.nodes[Int(slot)].idleLimit != never
    if isToldAtOnce, table.nodes[Int(slot)].accessed < now { notice.insert(.atOnce) }
    // An access that was reported at once must not be reported again or spare the entry later.
    // Either would prolong the entry's lifetime.
    if !table.nodes[Int(slot)].isRead, !isToldAtOnce {
      table.nodes[Int(slot)].isRead = true
      untoldReadCount &+= 1
    }
    if !isTellingScheduled {
      isTellingScheduled = true
      notice.insert(.later)
    }
  }

  /// Marks an entry as taken for a report to the tier below.
  ///
  /// - Returns: whether to report it. Entries with an idle limit were reported at once, and a
  ///   report now would prolong their lifetime.
  mutating func takesToTell(_ slot: UInt32) -> Bool {
    table.nodes[Int(slot)].isRecent = false
    let isToBeTold = table.nodes[Int(slot)].idleLimit == never
    if !isToBeTold { table.nodes[Int(slot)].isRead = false }
    return isToBeTold
  }

  @inlinable
  mutating func promote(
    _ value: consuming Value, forKey key: Key, _ times: EntryTimes, ticket: CacheTicket, cost: Int,
    version: UInt64?, hasTags: Bool, _ removed: inout Removed
  ) -> Bool {
    let hash = ticket.hash
    let found = table.find(key, hash: hash)
    var holdsValue = false
    if found != noSlot && !table.nodes[Int(found)].hasExpired(at: times.now) {
      holdsValue = table.nodes[Int(found)].version >= version ?? 0
    }
    if holdsValue { return false }
    let isValid = self.ticket(hash: hash) == ticket
    if let version {
      noteWrite(hash: hash, version: version)
    }
    if isValid {
      let isIn = put(
        value, forKey: key, hash: hash, at: found, times, cost: cost, version: version, &removed)
      if isIn, hasTags { noteTags(key, hash: hash) }
      return isIn
    }
    // From here on, no read may find a value older than the version seen below.
    if let version, found != noSlot, table.nodes[Int(found)].version < version {
      remove(found, .replaced, &removed)
    }
    return false
  }

  @inlinable
  mutating func publish(
    _ value: consuming Value, forKey key: Key, ticket: CacheTicket, version: UInt64,
    _ times: EntryTimes, cost: Int, hasTags: Bool, _ removed: inout Removed
  ) -> Bool {
    let hash = ticket.hash
    let found = table.find(key, hash: hash)
    let known = stripes[stripe(hash)]
    noteWrite(hash: hash, version: version)
    if found == noSlot {
      let isValid =
        known.unknownCount == ticket.unknowns && clears == ticket.clears && version > known.newest
      guard isValid else { return false }
    } else if table.nodes[Int(found)].version >= version {
      return false
    } else if hasTags, clears != ticket.clears {
      // A removal of tags may have removed the new value below, and then ended the doubt.
      remove(found, .replaced, &removed)
      return false
    }
    let isIn = put(
      value, forKey: key, hash: hash, at: found, times, cost: cost, version: version, &removed)
    if isIn, hasTags { noteTags(key, hash: hash) }
    return isIn
  }
}
