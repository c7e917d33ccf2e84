public import CairnStore

/// Removing many entries at once.
///
/// A call holds the lock for a few hundred removals at a time, so other calls continue. It may miss
/// entries that are written in the meantime. If no other call uses the cache, the result is exact.
extension MemoryCache: Trimming {
  /// Removes entries until at most `count` are left. Expired entries go first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes every entry.
  ///   - order: `.leastRecentlyUsed` means the order of the configured policy. `.largestFirst`
  ///     begins with the largest cost and, among equal costs, with the least recently used entry.
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(removed); with `.largestFirst` O(n log n), holding the lock for O(n).
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) -> RemovalSummary {
    trim(order: order, cause: .trim) { $0.table.count > max(0, count) }
  }

  /// Removes entries until the total cost is at most `cost`. Expired entries go first.
  ///
  /// - Parameters:
  ///   - cost: zero or less removes every entry, including entries that cost nothing.
  ///   - order: see `trim(toCount:order:)`.
  /// - Returns: a summary of the removed entries.
  /// - Complexity: the same as `trim(toCount:order:)`.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) -> RemovalSummary {
    if cost <= 0 { return trim(toCount: 0, order: order) }
    return trim(order: order, cause: .trim) { $0.table.totalCost > UInt128(cost) }
  }

  /// Removes entries whose last access (with `.write`, whose write) was more than `age` ago. Also
  /// removes expired entries.
  ///
  /// - Parameters:
  ///   - age: zero or less removes every entry.
  ///   - basis: whether the age counts from the last access or from the write.
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(n).
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) -> RemovalSummary {
    if age <= .zero { return trim(toCount: 0) }
    let limit = age.milliseconds
    let (edge, isTooEarly) = clock.now().subtractingReportingOverflow(limit)
    if isTooEarly { return removeExpired() }
    var summary = removeExpired()
    summary.add(
      removeSlots { node in
        (basis == .access ? node.accessed : node.written) < edge ? .evicted(.trim) : nil
      })
    return summary
  }

  /// Removes expired entries: those whose lifetime has ended or that have been idle for too long.
  /// No read finds them.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(1), plus O(log n) for each removed entry.
  @discardableResult
  public func removeExpired() -> RemovalSummary { removeExpired { _, now in now } }

  /// Removes expired entries, except those retained for readers of stale values.
  func removeUnretained() { _ = removeExpired { state, now in state.retentionEnd(at: now) } }

  private func removeExpired(
    by end: (borrowing MemoryState<Key, Value>, _ now: Int64) -> Int64
  ) -> RemovalSummary {
    let now = clock.now()
    return removeGroups(while: { $0.table.deadlines.isDue(at: end($0, now)) }) { state, removed in
      state.removeOneExpired(at: end(state, now), &removed)
    }
  }

  /// Removes every entry for which `shouldRemove` returns `true`. The closure can decide by key,
  /// cost or age.
  ///
  ///     cache.remove { key, _ in key.hasPrefix("session/") }
  ///
  /// The closure is called for each unexpired entry, outside the lock, so it may use the cache. It
  /// is called once, or twice if the cache gives memory back in the meantime. An entry that is rewritten after the closure has seen it stays. To decide by value,
  /// call `compareAndRemove` in `forEachEntry`.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Throws: any error of `shouldRemove`, unchanged; nothing is then removed.
  /// - Complexity: O(n).
  @discardableResult
  public func remove<Failure: Error>(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws(Failure) -> Bool
  ) throws(Failure) -> RemovalSummary {
    var victims: [(key: Key, hash: UInt32, version: UInt64)] = []
    let now = clock.now()
    try forEachSlotGroup { state, slots in
      var group: [(key: Key, info: CacheEntryInfo)] = []
      group.reserveCapacity(slots.count)
      for slot in slots where !state.table.nodes[slot].hasExpired(at: now) {
        guard let key = state.table.key(UInt32(slot)) else { continue }
        group.append((key, state.info(UInt32(slot))))
      }
      return group
    } then: { (group) throws(Failure) in
      for (key, info) in group where try shouldRemove(key, info) {
        flights.noteWrite(key)
        victims.append((key, MemoryTable<Key, Value>.hash(key), info.version))
      }
    }
    // The closure was not called for expired entries. No later call may return them.
    if lock.withLock({ $0.retention > 0 }) { removeExpired() }
    flights.history.forgetAll()
    var rest = victims[...]
    return removeGroups { state, removed in
      while let victim = rest.popFirst() {
        let slot = state.table.find(victim.key, hash: victim.hash)
        if slot == noSlot { continue }
        if state.table.nodes[Int(slot)].version != victim.version {
          continue
        }
        let cost = state.table.nodes[Int(slot)].cost
        state.remove(slot, .removed, &removed)
        return cost
      }
      return nil
    }
  }

  /// Tells the cache that the program is moving to the background. Clears the cache if the
  /// configuration sets `clearsInBackground`. Observers receive the event in any case.
  public func enterBackground() {
    tell(.enteredBackground)
    if configuration.clearsInBackground { removeAll(cause: .evicted(.background)) }
  }

  // MARK: Ways to remove

  /// Removes entries in the given order while the cache exceeds the target.
  func trim(
    order: TrimOrder, cause: EvictionCause,
    while isTooMuch: (borrowing MemoryState<Key, Value>) -> Bool
  ) -> RemovalSummary {
    let now = clock.now()
    var summary = removeExpired()
    if order == .largestFirst {
      summary.add(trimLargest(cause: cause, while: isTooMuch))
    }
    // With `.largestFirst`, entries written in the meantime may exceed the target again.
    summary.add(
      removeGroups { state, removed in
        isTooMuch(state) ? state.removeNext(at: now, cause, &removed) : nil
      })
    return summary
  }

  private func trimLargest(
    cause: EvictionCause, while isTooMuch: (borrowing MemoryState<Key, Value>) -> Bool
  ) -> RemovalSummary {
    // In access order, which the sort keeps among equal costs.
    var candidates = lock.withLock { state in
      var candidates: [TrimCandidate] = []
      var slot = isTooMuch(state) ? state.table.list.oldest : noSlot
      while slot != noSlot {
        let node = state.table.nodes[Int(slot)]
        candidates.append(TrimCandidate(slot: slot, version: node.version, cost: node.cost))
        slot = node.newer
      }
      return candidates
    }
    candidates.sort { $0.cost > $1.cost }
    var rest = candidates[...]
    return removeGroups { state, removed in
      while isTooMuch(state), let candidate = rest.popFirst() {
        // The slot may now contain another entry, or another value.
        guard Int(candidate.slot) < state.table.nodes.count,
          state.table.isUsed(Int(candidate.slot)),
          state.table.nodes[Int(candidate.slot)].version == candidate.version
        else { continue }
        state.remove(candidate.slot, .evicted(cause), &removed)
        return candidate.cost
      }
      return nil
    }
  }

  /// Removes entries one by one, many under each hold of the lock. `removeOne` returns the cost of
  /// the entry that it removed. `nil` ends the loop, unless `goesOn` returns `true`.
  private func removeGroups(
    while goesOn: (borrowing MemoryState<Key, Value>) -> Bool = { _ in false },
    _ removeOne: (inout MemoryState<Key, Value>, inout RemovedEntries<Key, Value>) -> Int?
  ) -> RemovalSummary {
    var summary = RemovalSummary()
    while true {
      var removed = RemovedEntries<Key, Value>()
      let (observers, isDone) = lock.withLock { state in
        while removed.count < MemoryState<Key, Value>.mostRemoved {
          guard let cost = removeOne(&state, &removed) else {
            return (state.observers, !goesOn(state))
          }
          summary.add(cost: cost)
        }
        return (state.observers, false)
      }
      deliver(removed, to: observers)
      if isDone { return summary }
      lock.giveWay()
    }
  }

  /// Removes entries until the limits hold.
  ///
  /// - Parameter spared: the key of an entry that fits by itself and must stay.
  func keepLimits(sparing spared: Key? = nil) {
    let now = clock.now()
    let hash = spared.map { MemoryTable<Key, Value>.hash($0) }
    _ = removeGroups { state, removed in
      guard let limit = state.exceededLimit else { return nil }
      let slot = spared.flatMap { key in hash.map { state.table.find(key, hash: $0) } }
      return state.removeNext(at: now, limit, sparing: slot ?? noSlot, &removed)
    }
  }

  /// Moves entries together, and gives the memory of the free slots back.
  func dropFreeSlots() {
    while lock.withLock({ state in
      (0..<MemoryState<Key, Value>.mostRemoved).allSatisfy { _ in state.table.dropLastSlot() }
    }) { lock.giveWay() }
  }

  // MARK: Background maintenance

  /// Schedules the removal of expired entries after the configured interval. Only one round is
  /// scheduled at a time, however many writes request one.
  @usableFromInline
  func scheduleTrim() {
    guard let maintenanceInterval else { return }
    environment.background.run(after: maintenanceInterval) { [weak self] in
      self?.runScheduledMaintenance()
    }
  }

  private func runScheduledMaintenance() {
    removeUnretained()
    let goesOn = lock.withLock { state in
      state.trimScheduler = nil
      return state.schedulesTrim()
    }
    if goesOn { scheduleTrim() }
  }
}

/// An entry that a trim may remove, if it is unchanged when its turn comes.
private struct TrimCandidate {
  var slot: UInt32
  var version: UInt64
  var cost: Int
}
