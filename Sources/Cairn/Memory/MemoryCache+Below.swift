package import CairnStore

/// What a front needs that holds a part of a tier below in this cache.
///
/// The rules that keep a read from finding what is older than another read has found:
/// - Every write has a version below. It takes a ticket, is made below, and then published here.
/// - What goes below is told here by its version before the call that removed it returns.
/// - A read that finds nothing here takes a ticket, reads below, and promotes what it found.
/// - Who has seen what is below must not find older things here later. So whatever is published, told or
///   promoted for a key, or was not found below, is noted, also where nothing comes of it. It makes tickets
///   of reads void, and those of writes as far as it may be newer than they are.
/// - A void ticket puts nothing in where there is nothing. At worst a value is not held that could have been:
///   keys are noted in stripes.
extension MemoryCache {
  /// To be asked for before a value is fetched that `promote` is to put in.
  @inlinable
  package func ticket(forKey key: Key) -> CacheTicket {
    let hash = MemoryTable<Key, Value>.hash(key)
    return lock.withLock { $0.ticket(hash: hash) }
  }

  /// The value of a key; where there is none, a ticket. Counts as an access.
  @inlinable
  @inline(__always)
  func readAbove(_ key: Key) -> BelowRead<Value> {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let read = lock.withLock { state -> BelowRead<Value> in
      var read = BelowRead<Value>()
      let slot = state.table.find(key, hash: hash)
      if slot == noSlot {
        state.statistics.missCount &+= 1
        read.ticket = state.ticket(hash: hash)
        return read
      }
      if state.table.nodes[Int(slot)].hasExpired(at: now) && !plantedInCache(.expiryIgnored) {
        state.statistics.missCount &+= 1
        expired = state.drop(expired: slot)
        read.ticket = state.ticket(hash: hash)
        return read
      }
      state.statistics.hitCount &+= 1
      // Within one millisecond once is enough.
      read.isToBeTold =
        state.table.nodes[Int(slot)].idleLimit != never
        && state.table.nodes[Int(slot)].accessed < now
      state.touch(slot, at: now)
      if !state.table.nodes[Int(slot)].isRead {
        state.table.nodes[Int(slot)].isRead = true
        state.untoldReadCount &+= 1
      }
      if !state.isTellingScheduled {
        state.isTellingScheduled = true
        read.schedulesTelling = true
      }
      read.value = state.table.payloads[Int(slot)]?.value
      return read
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return read
  }

  /// Puts a value in that was fetched, unless its key was written or removed since the ticket was taken,
  /// or has a value that is not older. So what was fetched never takes the place of something newer.
  ///
  /// Writes to other keys may, seldom, keep it from being put in.
  ///
  /// - Parameters:
  ///   - expires: the end of its lifetime; `nil`: none.
  ///   - idleLimit: `nil`: none.
  ///   - version: the one it has where it was fetched; `nil`: a new one, and any value is newer.
  /// - Returns: whether it was put in.
  @inlinable
  @discardableResult
  package func promote(
    _ value: Value, forKey key: Key, ticket: CacheTicket, cost: UInt64? = nil,
    expires: Timestamp? = nil, idleLimit: Duration? = nil, version: UInt64? = nil
  ) -> Bool {
    let cost = cost ?? defaultCost(of: value, forKey: key)
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(expires: expires, idleLimit: idleLimit)
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.promote(
        value, forKey: key, hash: hash, times, ticket: ticket, cost: cost, version: version,
        &removed)
      return (isInserted, state.observers, schedulesTrims && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return isInserted
  }

  /// Puts a value in that was written below, unless there is a newer one, or none and the ticket is void.
  ///
  /// - Parameters:
  ///   - ticket: from before the write.
  ///   - times: from before the write, so that it ends here no later than below.
  @inlinable
  func publish(
    _ value: Value, forKey key: Key, ticket: CacheTicket, version: UInt64, _ times: EntryTimes,
    cost: UInt64
  ) {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.publish(
        value, forKey: key, hash: hash, ticket: ticket, version: version, times, cost: cost,
        &removed)
      return (isInserted, state.observers, schedulesTrims && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
  }

  /// Drops the value of a key that went below, or that cannot be vouched for.
  ///
  /// - Parameter version: the one that went; newer ones stay. `nil`: whatever it is.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func invalidate(_ key: Key, through version: UInt64?, _ cause: CacheRemovalCause) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      if let version {
        state.noteWrite(hash: hash, version: version)
      } else {
        state.noteUnknown(hash: hash)
      }
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot, state.table.nodes[Int(slot)].version <= version ?? .max {
        state.remove(slot, cause, &removed)
      }
      return state.observers
    }
    let isRemoved = removed.count > 0
    deliver(removed, to: observers)
    return isRemoved
  }

  /// To be told when a read below found nothing. What came here since it began is found after all.
  @usableFromInline
  func noteAbsent(_ key: Key) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    return lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot, !state.table.nodes[Int(slot)].hasExpired(at: now) {
        return state.table.payloads[Int(slot)]?.value
      }
      if !plantedInCache(.absenceNotNoted) { state.noteUnknown(hash: hash) }
      return nil
    }
  }

  /// Notes an access that the tier below knows of.
  func noteAccess(_ key: Key) {
    let now = clock.now()
    _ = look(key, isRead: false) { state, slot in state.touch(slot, at: now) }
  }

  /// Has a value live until `expires` if that is later, where nothing was told of its key since the ticket
  /// was taken.
  func extendLifetime(of key: Key, to expires: Int64, ticket: CacheTicket) {
    let hash = MemoryTable<Key, Value>.hash(key)
    lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, state.ticket(hash: hash) == ticket || plantedInCache(.ticketIgnored),
        expires > state.table.nodes[Int(slot)].expires
      else { return }
      // The heap may have a deadline that is too early.
      state.table.nodes[Int(slot)].expires = expires
    }
  }

  // MARK: What was used

  /// Entries that one hold of the lock looks at at most.
  private static var recentGroupCount: Int { 256 }

  /// The keys of all entries that were read since a call that gave any, and of those that were written after
  /// one of them, in the order of use as far as the policy's order tells: told below in that order, reads and
  /// writes keep theirs. With `.sieve` those that were read alone.
  ///
  /// - Complexity: O(keys); with `.sieve` O(n). The lock is held for some hundreds at a time.
  func takeRecentKeys() -> [Key] {
    let count = lock.withLock { exchange(&$0.untoldReadCount, with: 0) }
    if count == 0 { return [] }
    return configuration.policy == .sieve ? takeRecentKeysBySweep() : takeRecentKeysByWalk()
  }

  private func takeRecentKeysByWalk() -> [Key] {
    // Whatever is used moves to the front, so those that were are the first of the list.
    var keys: [Key] = []
    // How many there are down to the one that was read longest ago.
    var count = 0
    var isStart = true
    while true {
      let isDone = lock.withLock { state in
        if isStart { state.table.list.walk = state.table.list.newest }
        for _ in 0..<Self.recentGroupCount {
          let slot = state.table.list.walk
          guard slot != noSlot, state.table.nodes[Int(slot)].isRecent else {
            state.table.list.walk = noSlot
            return true
          }
          // What may not be idle for long was told at once: a telling now would prolong its life.
          if let payload = state.table.payloads[Int(slot)],
            state.table.nodes[Int(slot)].idleLimit == never
          {
            keys.append(payload.key)
          }
          if state.table.nodes[Int(slot)].isRead { count = keys.count }
          state.table.nodes[Int(slot)].isRecent = false
          state.table.nodes[Int(slot)].isRead = false
          state.table.list.walk = state.table.nodes[Int(slot)].older
        }
        return false
      }
      isStart = false
      if isDone { return keys[..<count].reversed() }
    }
  }

  private func takeRecentKeysBySweep() -> [Key] {
    var found: [(key: Key, accessed: Int64)] = []
    var next = 0
    while true {
      let isDone = lock.withLock { state in
        let end = min(next + 4 * Self.recentGroupCount, state.table.nodes.count)
        while next < end {
          if let payload = state.table.payloads[next], state.table.nodes[next].isRead {
            state.table.nodes[next].isRecent = false
            state.table.nodes[next].isRead = false
            if state.table.nodes[next].idleLimit == never {
              found.append((payload.key, state.table.nodes[next].accessed))
            }
          }
          next += 1
        }
        return next >= state.table.nodes.count
      }
      if isDone { return found.sorted { $0.accessed < $1.accessed }.map(\.key) }
    }
  }

  /// How many entries were read, at most, that the tier below does not know of.
  var untoldReadCount: Int { lock.withLock { $0.untoldReadCount } }

  /// Whether the entry of a key was read, and the tier below does not know. From here on it counts as known.
  ///
  /// - Parameters:
  ///   - hash: the key's.
  ///   - isSought: whether a key is the one.
  func takeRead(hash: UInt32, where isSought: (Key) -> Bool) -> Bool {
    let now = clock.now()
    return lock.withLock { state in
      let mask = state.table.buckets.count - 1
      var bucket = Int(hash) & mask
      while state.table.buckets[bucket] != 0 {
        let word = state.table.buckets[bucket]
        let slot = Int(UInt32(truncatingIfNeeded: word) &- 1)
        if UInt32(truncatingIfNeeded: word >> 32) == hash, state.table.nodes[slot].isRead,
          let payload = state.table.payloads[slot], isSought(payload.key)
        {
          state.table.nodes[slot].isRead = false
          // What has expired is not brought back by reads from before.
          return !state.table.nodes[slot].hasExpired(at: now)
        }
        bucket = (bucket + 1) & mask
      }
      return false
    }
  }

  /// Has the next hit ask for a telling again.
  func endTelling() { lock.withLock { $0.isTellingScheduled = false } }
}

extension MemoryState {
  @inlinable
  mutating func promote(
    _ value: consuming Value, forKey key: Key, hash: UInt32, _ times: EntryTimes,
    ticket: CacheTicket, cost: UInt64, version: UInt64?, _ removed: inout Removed
  ) -> Bool {
    let found = table.find(key, hash: hash)
    var holdsValue = false
    if found != noSlot && !table.nodes[Int(found)].hasExpired(at: times.now) {
      holdsValue = table.nodes[Int(found)].version >= version ?? 0
    }
    if holdsValue && !plantedInCache(.promotionReplaces) { return false }
    let isValid = self.ticket(hash: hash) == ticket
    if let version, !plantedInCache(.refusedPromotionNotNoted) {
      noteWrite(hash: hash, version: version)
    }
    if isValid || plantedInCache(.ticketIgnored) {
      return put(
        value, forKey: key, hash: hash, times, cost: cost, version: version, &removed)
    }
    // What is older than what was just seen below must not be found any more.
    if let version, found != noSlot, table.nodes[Int(found)].version < version,
      !plantedInCache(.refusedPromotionNotNoted)
    {
      remove(found, .replaced, &removed)
    }
    return false
  }

  @inlinable
  mutating func publish(
    _ value: consuming Value, forKey key: Key, hash: UInt32, ticket: CacheTicket,
    version: UInt64, _ times: EntryTimes, cost: UInt64, _ removed: inout Removed
  ) -> Bool {
    let found = table.find(key, hash: hash)
    let known = stripes[stripe(hash)]
    noteWrite(hash: hash, version: version)
    if found == noSlot {
      let isValid =
        known.unknownCount == ticket.unknowns && clears == ticket.clears && version > known.newest
      guard isValid || plantedInCache(.lateWriteRevives) else { return false }
    } else if table.nodes[Int(found)].version >= version && !plantedInCache(.olderWriteReplaces) {
      return false
    }
    return put(value, forKey: key, hash: hash, times, cost: cost, version: version, &removed)
  }
}

/// What a cache in memory found for a front.
@usableFromInline
struct BelowRead<Value: Sendable>: Sendable {
  @usableFromInline var value: Value?
  /// For what is fetched from below, where there is no value.
  @usableFromInline var ticket = CacheTicket()
  /// Whether somebody is to tell the tier below, after a while, what is used.
  @usableFromInline var schedulesTelling = false
  /// Whether the tier below is to be told at once, since the entry may not be idle for long.
  @usableFromInline var isToBeTold = false

  @inlinable init() {}
}
