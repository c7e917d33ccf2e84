package import CairnStore

/// What a cache on disk needs that holds a part of it in this cache.
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

  /// The value of a key. Counts as an access.
  ///
  /// - Parameters:
  ///   - ticket: where there is no value, one for what is fetched from below.
  ///   - notice: what the caller is to tell the tier below.
  @inlinable
  @inline(__always)
  func readAbove(_ key: Key, ticket: inout CacheTicket, notice: inout PendingNotice) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let value = lock.withLock { state -> Value? in
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
      return state.table.payloads[Int(slot)]?.value
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return value
  }

  /// The value of a key, fresh or retained; otherwise as `readAbove`. What is read of a stale one is told to nobody.
  func readHeldAbove(
    _ key: Key, ticket: inout CacheTicket, notice: inout PendingNotice
  ) -> HeldValue<Value>? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let held = lock.withLock { state -> HeldValue<Value>? in
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

  /// Puts a value in that was fetched, unless its key was written or removed since the ticket was taken,
  /// or has a value that is not older. So what was fetched never takes the place of something newer.
  ///
  /// Writes to other keys may, seldom, keep it from being put in.
  ///
  /// - Parameters:
  ///   - expires: the end of its lifetime; `nil`: none.
  ///   - idleLimit: `nil`: none.
  ///   - version: the one it has where it was fetched; `nil`: a new one, and any value is newer.
  ///   - written: when it was written there; `nil`: now.
  ///   - hasTags: whether a mark there may hide it.
  /// - Returns: whether it was put in.
  @inlinable
  @discardableResult
  package func promote(
    _ value: Value, forKey key: Key, ticket: CacheTicket, cost: Int? = nil,
    expires: Timestamp? = nil, idleLimit: Duration? = nil, version: UInt64? = nil,
    written: Timestamp? = nil, hasTags: Bool = false
  ) -> Bool {
    let cost = cost ?? defaultCost(of: value, forKey: key)
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(expires: expires, idleLimit: idleLimit, written: written)
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.promote(
        value, forKey: key, hash: hash, times, ticket: ticket, cost: cost, version: version,
        hasTags: hasTags, &removed)
      return (isInserted, state.observers, schedulesMaintenance && state.schedulesTrim())
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
    cost: Int, hasTags: Bool
  ) {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let isInserted = state.publish(
        value, forKey: key, hash: hash, ticket: ticket, version: version, times, cost: cost,
        hasTags: hasTags, &removed)
      return (isInserted, state.observers, schedulesMaintenance && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
  }

  /// Drops the value of a key that went below, or that cannot be vouched for.
  ///
  /// - Parameter version: the one that went; newer ones stay. `nil`: whatever it is.
  ///
  /// - Returns: whether there was one.
  @usableFromInline
  @discardableResult
  func invalidate(_ key: Key, through version: UInt64?, _ cause: RemovalCause) -> Bool {
    invalidate(hash: MemoryTable<Key, Value>.hash(key), through: version, cause) { $0 == key }
  }

  /// Notes what a caller was shown of a key below. Nothing older must be shown here after that.
  ///
  /// - Parameter version: the version that was shown; `nil`: nothing was there.
  @usableFromInline
  func noteShown(_ version: UInt64?, of key: Key) {
    if let version {
      invalidate(key, through: version - 1, .replaced)
    } else {
      invalidate(key, through: nil, .removed)
    }
  }

  /// The same of the key that is the one by `isSought`.
  ///
  /// - Parameter hash: the key's.
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
        state.remove(slot, cause, &removed)
      }
      return state.observers
    }
    let isRemoved = removed.count > 0
    deliver(removed, to: observers)
    return isRemoved
  }

  /// To be told when a read below found nothing. What came here since it began is found after all.
  ///
  /// - Parameter counts: whether that is a hit then.
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
        return state.table.payloads[Int(slot)]?.value
      }
      state.noteUnknown(hash: hash)
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
      guard slot != noSlot, state.ticket(hash: hash) == ticket,
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
  /// writes keep theirs. With `.sieve` and `.s3FIFO` those that were read alone. Who tells of a key says so by
  /// `noteTold`.
  ///
  /// - Complexity: O(keys); with `.sieve` and `.s3FIFO` O(n). The lock is held for some hundreds at a time.
  ///
  /// Before them come those that were read and then evicted here.
  func takeRecentKeys() -> [Key] {
    let (hasRead, evicted) = lock.withLock { state in
      let newest = state.table.list.newest
      // A read of what was taken and not told yet counts for nothing, and moves it to the front.
      let hasMoved = newest != noSlot && state.table.nodes[Int(newest)].isRecent
      let count = exchange(&state.untoldReadCount, with: 0)
      return (count > 0 || hasMoved, exchange(&state.evictedUntold, with: []))
    }
    if !hasRead { return evicted }
    return evicted
      + (configuration.policy == .leastRecentlyUsed
        ? takeRecentKeysByWalk() : takeRecentKeysBySweep())
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
          let isRead = state.table.nodes[Int(slot)].isRead
          if let payload = state.table.payloads[Int(slot)], state.takesToTell(slot) {
            keys.append(payload.key)
          }
          if isRead { count = keys.count }
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
          if let payload = state.table.payloads[next], state.table.nodes[next].isRead,
            state.takesToTell(UInt32(next))
          {
            found.append((payload.key, state.table.nodes[next].accessed))
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
      let slot = state.table.find(hash: hash, where: isSought)
      guard slot != noSlot, state.table.nodes[Int(slot)].isRead else { return false }
      state.table.nodes[Int(slot)].isRead = false
      // What has expired is not brought back by reads from before.
      return !state.table.nodes[Int(slot)].hasExpired(at: now)
    }
  }

  /// To be told just before the tier below is told of a key that was taken: until then it counts as in use.
  func noteTold(_ key: Key) {
    let hash = MemoryTable<Key, Value>.hash(key)
    lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot { state.table.nodes[Int(slot)].isRead = false }
    }
  }

  /// How many entries are held, expired ones too.
  var heldCount: Int { lock.withLock { $0.table.count } }

  /// Has the next hit ask for a telling again.
  func endTelling() { lock.withLock { $0.isTellingScheduled = false } }
}

extension MemoryState {
  /// Notes what the tier below is to be told of a read. To be called before the entry is touched.
  @inlinable
  @inline(__always)
  mutating func noteUse(_ slot: UInt32, at now: Int64, _ notice: inout PendingNotice) {
    // Within one millisecond once is enough.
    let isToldAtOnce = table.nodes[Int(slot)].idleLimit != never
    if isToldAtOnce, table.nodes[Int(slot)].accessed < now { notice.insert(.atOnce) }
    // What was told at once is not told or spared later, which would prolong its life.
    if !table.nodes[Int(slot)].isRead, !isToldAtOnce {
      table.nodes[Int(slot)].isRead = true
      untoldReadCount &+= 1
      if untoldReadCount == manyReadsCount { notice.insert(.soon) }
    }
    if !isTellingScheduled {
      isTellingScheduled = true
      notice.insert(.later)
    }
  }

  /// Notes that an entry is about to be told below.
  ///
  /// - Returns: whether it is to be. What may not be idle for long was told at once: a telling now would prolong
  ///   its life.
  mutating func takesToTell(_ slot: UInt32) -> Bool {
    table.nodes[Int(slot)].isRecent = false
    let isToBeTold = table.nodes[Int(slot)].idleLimit == never
    if !isToBeTold { table.nodes[Int(slot)].isRead = false }
    return isToBeTold
  }

  @inlinable
  mutating func promote(
    _ value: consuming Value, forKey key: Key, hash: UInt32, _ times: EntryTimes,
    ticket: CacheTicket, cost: Int, version: UInt64?, hasTags: Bool, _ removed: inout Removed
  ) -> Bool {
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
        value, forKey: key, hash: hash, times, cost: cost, version: version, &removed)
      if isIn, hasTags { noteTags(key, hash: hash) }
      return isIn
    }
    // What is older than what was just seen below must not be found any more.
    if let version, found != noSlot, table.nodes[Int(found)].version < version {
      remove(found, .replaced, &removed)
    }
    return false
  }

  @inlinable
  mutating func publish(
    _ value: consuming Value, forKey key: Key, hash: UInt32, ticket: CacheTicket,
    version: UInt64, _ times: EntryTimes, cost: Int, hasTags: Bool,
    _ removed: inout Removed
  ) -> Bool {
    let found = table.find(key, hash: hash)
    let known = stripes[stripe(hash)]
    noteWrite(hash: hash, version: version)
    if found == noSlot {
      let isValid =
        known.unknownCount == ticket.unknowns && clears == ticket.clears && version > known.newest
      guard isValid else { return false }
    } else if table.nodes[Int(found)].version >= version {
      return false
    }
    let isIn = put(
      value, forKey: key, hash: hash, times, cost: cost, version: version, &removed)
    if isIn, hasTags { noteTags(key, hash: hash) }
    return isIn
  }

  /// Notes that the entry of a key has tags.
  @usableFromInline
  mutating func noteTags(_ key: Key, hash: UInt32) {
    let slot = table.find(key, hash: hash)
    if slot != noSlot { table.nodes[Int(slot)].hasTags = true }
  }
}

/// What the disk is to be told of a read.
@usableFromInline
struct PendingNotice: OptionSet, Sendable {
  @usableFromInline var rawValue: UInt8

  @inlinable
  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// After a while: all that is used until then.
  @inlinable static var later: PendingNotice { PendingNotice(rawValue: 1) }
  /// The same soon, since it is much.
  @inlinable static var soon: PendingNotice { PendingNotice(rawValue: 2) }
  /// Now, of the entry alone: it may not be idle for long.
  @inlinable static var atOnce: PendingNotice { PendingNotice(rawValue: 4) }
}
