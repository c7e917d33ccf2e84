public import CairnStore

/// Removing many entries at once.
///
/// The lock is held for some dozens of removals at a time, so readers and writers get on. Entries that
/// are written meanwhile may be looked at or not; when nobody else uses the cache, what is left is exact.
extension MemoryCache: Trimming {
  /// Entries that one hold of the lock removes at most.
  private static var groupCount: Int { 64 }

  /// Slots that one hold of the lock looks at at most.
  private static var lookCount: Int { 1024 }

  /// Removes entries until at most so many are left. What has expired goes first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes everything.
  ///   - order: `.leastRecentlyUsed` is the order of the configuration's policy; `.largestFirst` begins with
  ///     the greatest cost, and among equals with the one used longest ago.
  /// - Returns: what was removed.
  /// - Complexity: O(removed); with `.largestFirst` O(n log n), and the lock is held for O(n).
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) -> RemovalSummary {
    trim(order: order, cause: .trim) { $0.table.count > max(0, count) }
  }

  /// Removes entries until the rest costs at most so much. What has expired goes first.
  ///
  /// - Parameters:
  ///   - cost: zero or less removes everything, also what costs nothing.
  ///   - order: as with `trim(toCount:order:)`.
  /// - Returns: what was removed.
  /// - Complexity: as `trim(toCount:order:)`.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) -> RemovalSummary {
    if cost <= 0 { return trim(toCount: 0, order: order) }
    return trim(order: order, cause: .trim) { $0.table.totalCost > UInt128(cost) }
  }

  /// Removes the entries that were last accessed, or written, longer ago than `age`, and what has
  /// expired.
  ///
  /// - Parameters:
  ///   - age: zero or less removes everything.
  ///   - basis: what the age is counted from.
  /// - Returns: what was removed.
  /// - Complexity: O(n).
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) -> RemovalSummary {
    if age <= .zero { return trim(toCount: 0) }
    let limit = age.milliseconds
    let (edge, isTooEarly) = clock.now().subtractingReportingOverflow(limit)
    if isTooEarly { return removeExpired() }
    return sweep { node in
      (basis == .access ? node.accessed : node.written) < edge ? .evicted(.trim) : nil
    }
  }

  /// Removes the entries whose lifetime has ended or that were idle for too long. No read finds them
  /// anyway.
  ///
  /// - Returns: what was removed.
  /// - Complexity: O(1), and O(log n) for each that is removed.
  @discardableResult
  public func removeExpired() -> RemovalSummary {
    let now = clock.now()
    return removeGroups { state, removed in state.removeOneExpired(at: now, &removed) }
  }

  /// The same, but for what is retained for readers of stale values.
  func removeUnretained() {
    let now = clock.now()
    _ = removeGroups { state, removed in
      state.removeOneExpired(at: state.retentionEnd(at: now), &removed)
    }
  }

  /// Removes every entry for which `shouldRemove` returns true: by key, cost, age.
  ///
  ///     cache.remove { key, _ in key.hasPrefix("session/") }
  ///
  /// The closure is called once with each entry, outside the lock; it may use the cache. An entry that was
  /// written anew since it was asked about stays. To remove by value, call `compareAndRemove` in `forEachEntry`.
  ///
  /// - Returns: what was removed.
  /// - Throws: what `shouldRemove` throws, unchanged: nothing was removed then.
  /// - Complexity: O(n).
  @discardableResult
  public func remove<Failure: Error>(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws(Failure) -> Bool
  ) throws(Failure) -> RemovalSummary {
    var victims: [(key: Key, hash: UInt32, version: UInt64)] = []
    for (key, info) in snapshot({ ($0.key, $1) }) where try shouldRemove(key, info) {
      victims.append((key, MemoryTable<Key, Value>.hash(key), info.version))
    }
    // Nobody was asked about what had expired. It must not be served after this.
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
        state.noteWrite(hash: victim.hash)
        state.remove(slot, .removed, &removed)
        return cost
      }
      return nil
    }
  }

  /// To be called when the program goes to the background: clears the cache where the configuration's
  /// `clearsInBackground` says so. Observers are told in any case.
  public func enterBackground() {
    tell(.enteredBackground)
    if configuration.clearsInBackground { removeAll(cause: .evicted(.background)) }
  }

  // MARK: The ways of removing

  /// Removes entries in an order while there is too much.
  func trim(
    order: TrimOrder, cause: EvictionCause,
    while isTooMuch: (borrowing MemoryState<Key, Value>) -> Bool
  ) -> RemovalSummary {
    let now = clock.now()
    var summary = removeExpired()
    if order == .largestFirst {
      summary.add(trimLargest(cause: cause, while: isTooMuch))
    }
    // With the largest first, this removes what was written meanwhile.
    summary.add(
      removeGroups { state, removed in
        isTooMuch(state) ? state.removeNext(at: now, cause, &removed) : nil
      })
    return summary
  }

  private func trimLargest(
    cause: EvictionCause, while isTooMuch: (borrowing MemoryState<Key, Value>) -> Bool
  ) -> RemovalSummary {
    // In the order of use, which sorting keeps among equals.
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
        // The slot may hold another entry by now, or another value.
        guard Int(candidate.slot) < state.table.nodes.count,
          state.table.payloads[Int(candidate.slot)] != nil,
          state.table.nodes[Int(candidate.slot)].version == candidate.version
        else { continue }
        state.remove(candidate.slot, .evicted(cause), &removed)
        return candidate.cost
      }
      return nil
    }
  }

  /// Looks at every slot once, and removes those that `cause` gives a cause for.
  private func sweep(_ cause: (EntryNode) -> RemovalCause?) -> RemovalSummary {
    var summary = removeExpired()
    var next = 0
    while true {
      var group = RemovalSummary()
      var removed = RemovedEntries<Key, Value>()
      let (observers, isDone) = lock.withLock { state in
        let end = min(next + Self.lookCount, state.table.nodes.count)
        while next < end, group.count < Self.groupCount {
          if state.table.payloads[next] != nil, let cause = cause(state.table.nodes[next]) {
            group.add(cost: state.table.nodes[next].cost)
            state.remove(UInt32(next), cause, &removed)
          }
          next += 1
        }
        return (state.observers, next >= state.table.nodes.count)
      }
      deliver(removed, to: observers)
      summary.add(group)
      if isDone { return summary }
    }
  }

  /// Removes entries one by one, some dozens with each hold of the lock, until `removeOne` returns `nil`
  /// instead of what the one cost that it removed.
  private func removeGroups(
    _ removeOne: (inout MemoryState<Key, Value>, inout RemovedEntries<Key, Value>) -> Int?
  ) -> RemovalSummary {
    var summary = RemovalSummary()
    while true {
      var removed = RemovedEntries<Key, Value>()
      let (observers, isDone) = lock.withLock { state in
        while removed.count < Self.groupCount {
          guard let cost = removeOne(&state, &removed) else {
            return (state.observers, true)
          }
          summary.add(cost: cost)
        }
        return (state.observers, false)
      }
      deliver(removed, to: observers)
      if isDone { return summary }
    }
  }

  /// Removes what is too much after a limit was lowered.
  func keepLimits() {
    let now = clock.now()
    _ = removeGroups { state, removed in
      if state.table.count > state.countLimit {
        return state.removeNext(at: now, .countLimit, &removed)
      }
      if state.table.totalCost > state.costLimit {
        return state.removeNext(at: now, .costLimit, &removed)
      }
      return nil
    }
  }

  // MARK: Now and then

  /// Has what has expired removed after the configured interval. One round is asked for at a time, however many
  /// writes there are.
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
      state.isTrimScheduled = false
      return state.schedulesTrim()
    }
    if goesOn { scheduleTrim() }
  }
}

/// An entry that a trim may take, if it is still the same when its turn comes.
private struct TrimCandidate {
  var slot: UInt32
  var version: UInt64
  var cost: Int
}
