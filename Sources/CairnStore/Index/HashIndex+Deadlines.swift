/// When entries expire. A deadline is stored in its entry's shard and moves with the entry. A
/// record is read only if its entry's deadline has come and is not exact.
extension HashIndex {
  /// Calls `body` under the shard's lock with each entry whose deadline has come, and with the
  /// state of the deadline.
  ///
  /// - Parameters:
  ///   - present: the present, or `nil` for `now`.
  ///   - loads: whether to load an unloaded shard, whose deadlines are unknown and may have come.
  ///   - visitsPassed: whether to call `body` also for entries that have certainly expired.
  ///   - earliest: returns the earliest expiry of an entry without a deadline; called under the
  ///     lock.
  /// - Returns: the number of entries in the shard at that moment, without those that have
  ///   certainly expired.
  @inline(__always)
  package func forEachDue(
    inShard number: Int, by now: Timestamp, present: Timestamp? = nil, loads: Bool,
    visitsPassed: Bool,
    earliest: (IndexEntry) -> Int64,
    _ body: (IndexEntry, Deadline.State) -> Void
  ) throws(StoreError) -> Int {
    try shards[number].withLock { (shard) throws(StoreError) -> Int in
      if shard.expirableCount == 0 { return shard.count }
      if shard.isUnloaded {
        if !loads { return shard.count }
        try load(&shard, number)
      }
      try shard.addDeadlines(earliest)
      let passedCount = shard.forEachDue(
        by: now.millisecondsSinceEpoch, present: (present ?? now).millisecondsSinceEpoch,
        visitsPassed: visitsPassed, body)
      return shard.count - passedCount
    }
  }

  /// Sets the deadline found by reading an entry's record and last access, unless either has
  /// changed since.
  package func settleDeadline(
    _ deadline: Deadline, of hash: UInt64, _ entry: IndexEntry, by now: Timestamp
  ) {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: entry.location),
        shard[slot].tick == entry.tick
      else { return }
      shard.settleDeadline(deadline, at: slot, by: now.millisecondsSinceEpoch)
    }
  }

  /// Calls `body` under the shard's lock with each entry that can expire, and with its deadline, if
  /// known. Returns `false` if the shard is not loaded.
  package func forEachDeadline(
    inShard number: Int, _ body: (IndexEntry, Int64?) -> Void
  ) -> Bool {
    shards[number].withLock { shard in
      if shard.expirableCount == 0 { return true }
      if shard.isUnloaded { return false }
      shard.forEachExpirable { body(shard[$0], shard.deadline(at: $0)) }
      return true
    }
  }
}
