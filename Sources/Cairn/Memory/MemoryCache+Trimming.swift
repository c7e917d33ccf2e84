public import CairnStore

/// Removing many entries at once.
///
/// A call holds the lock for a few hundred removals at a time, so other calls continue. It may miss
/// entries that are written in the meantime. If no other call uses the cache, the result is exact.
extension MemoryCache {
  /// Removes entries by count, cost, age or expiry. Expired entries go first.
  ///
  ///     cache.trim(.toCount(1_000))
  ///
  /// - Returns: a summary of the removed entries.
  /// - Complexity: O(removed); with `.largestFirst` O(n log n), holding the lock for O(n); with an
  ///   age O(n); with `.expired` O(1), plus O(log n) for each removed entry.
  @discardableResult
  public func trim(_ trim: Trim) -> RemovalSummary {
    switch trim {
    case .toCount(let count, let order):
      return self.trim(order: order, cause: .trim) { $0.table.count > max(0, count) }
    case .toBytes(let cost, let order):
      if cost <= 0 { return self.trim(.toCount(0, order: order)) }
      return self.trim(order: order, cause: .trim) { $0.table.totalCost > UInt128(cost) }
    case .unused(let age): return self.trim(olderThan: age) { $0.accessed }
    case .older(let age): return self.trim(olderThan: age) { $0.written }
    case .expired: return removeExpired { _, now in now }
    case .toFreeDiskSpace: return RemovalSummary()
    }
  }

  private func trim(
    olderThan age: Duration, since time: (borrowing EntryNode) -> Int64
  ) -> RemovalSummary {
    if age <= .zero { return trim(.toCount(0)) }
    var summary = trim(.expired)
    let (edge, isTooEarly) = clock.now().subtractingReportingOverflow(age.milliseconds)
    if !isTooEarly { summary.add(removeSlots { time($0) < edge ? .evicted(.trim) : nil }) }
    return summary
  }

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
  /// is called once, or twice if the cache gives memory back in the meantime. An entry that is
  /// rewritten after the closure has seen it stays. To decide by value, call `compareAndRemove` in
  /// `forEachEntry`.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Throws: any error of `shouldRemove`, unchanged; nothing is then removed.
  /// - Complexity: O(n).
  @discardableResult
  public func remove<Failure: Error>(
    where shouldRemove: (_ key: Key, _ info: EntryInfo) throws(Failure) -> Bool
  ) throws(Failure) -> RemovalSummary {
    var victims: [(key: Key, hash: UInt32, version: UInt64)] = []
    let now = clock.now()
    try forEachSlotGroup { state, slots in
      var group: [(key: Key, info: EntryInfo)] = []
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
    if lock.withLock({ $0.retention > 0 }) { trim(.expired) }
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
    var summary = trim(.expired)
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
