/// When entries expire. Deadlines lie in the shard of their entry and go with it; a record is read only where
/// its entry's deadline has come and is not exact.
extension HashIndex {
  /// Calls `body` under the shard's lock with each entry whose deadline has come, what that says, and to when
  /// the entry's lifetime was extended (`Int64.min`: it was not).
  ///
  /// - Parameters:
  ///   - loads: whether an entry may be due where nothing is known of them yet, since the shard is not
  ///     loaded.
  ///   - visitsPassed: whether `body` is called also with entries that have expired for certain.
  ///   - earliest: before when an entry does not expire that has no deadline yet; called under the lock.
  /// - Returns: how many entries the shard has at that moment, without those that have expired for certain.
  @inline(__always)
  package func forEachDue(
    inShard number: Int, by now: Timestamp, loads: Bool, visitsPassed: Bool,
    earliest: (IndexEntry) -> Int64,
    _ body: (IndexEntry, Deadline.State, Int64) -> Void
  ) throws(StoreError) -> Int {
    try shards[number].withLock { (shard) throws(StoreError) -> Int in
      if shard.expirableCount == 0 { return shard.count }
      if shard.isUnloaded {
        if !loads { return shard.count }
        try load(&shard, number)
      }
      try shard.addDeadlines(earliest)
      let passedCount = shard.forEachDue(
        by: now.millisecondsSinceEpoch, visitsPassed: visitsPassed, body)
      return shard.count - passedCount
    }
  }

  /// Notes what a look at the record and the last access of an entry has told, unless something has changed
  /// since.
  ///
  /// - Parameter end: to when its lifetime was extended, as that was known for the look.
  package func settleDeadline(
    _ deadline: Deadline, of hash: UInt64, _ entry: IndexEntry, extendedTo end: Int64,
    by now: Timestamp
  ) {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: entry.location),
        shard[slot].tick == entry.tick,
        (shard.extensionOfEntry(at: slot)?.expires ?? .min) == end
      else { return }
      shard.settleDeadline(deadline, at: slot, by: now.millisecondsSinceEpoch)
    }
  }

  /// Calls `body` under the shard's lock with each entry that can expire, and with its deadline, as far as
  /// that is known; `false` where the shard is not loaded.
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
