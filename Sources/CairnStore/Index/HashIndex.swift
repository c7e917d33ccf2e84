internal import Synchronization

/// The index: for every key, the location of its newest record. It is sharded: threads rarely
/// contend, and a growing shard does not delay users of other shards.
///
/// The index stores hashes, not keys. A caller that finds an entry compares the key in the record,
/// outside the lock, and looks up the next entry if they differ.
///
/// A shard may be unloaded at first; the first lookup loads it. Changes need no loading, because
/// they name an entry that a lookup has found, or follow a lookup that found none.
package final class HashIndex: Sendable {
  package static let shardCount = 256

  /// The tables of the shards, for lookups without locks.
  let versions: VersionedWords
  let shards: LockArray<IndexShard>
  package let recency: RecencyClock
  private let entryCount = Atomic(0)
  private let expirableEntryCount = Atomic(0)
  /// The source of unloaded shards, while any remain.
  let source = Lock<(any ShardSource)?>(nil)
  let unloadedShardCount = Atomic(0)
  /// Incremented by each snapshot.
  private let epoch = Atomic(UInt64(0))
  private let snapshots = Lock<[SnapshotParts]>([])

  package init(recency: RecencyClock, memory: MemoryBudget = .unlimited) {
    self.recency = recency
    let origin = recency.lastNoted.millisecondsSinceEpoch
    versions = VersionedWords(count: Self.shardCount)
    shards = LockArray(count: Self.shardCount) {
      IndexShard(phase: Double($0) / Double(Self.shardCount), origin: origin, budget: memory)
    }
  }

  @inline(__always)
  package static func shard(of hash: UInt64) -> Int { Int(hash & 0xFF) }
  @inline(__always)
  package static func stored(_ hash: UInt64) -> UInt64 { hash >> 24 }

  /// The bits of a hash that the index knows: those of the shard and those that entries store.
  static func known(_ hash: UInt64) -> UInt64 { hash & ~0xFF_FF00 }

  deinit {
    // No lookups remain. Free the tables now, because no later call may do so.
    for shard in 0..<Self.shardCount { shards[shard].withLock { $0.removeAll() } }
    Reclamation.reclaimTables()
  }

  /// A lookup without the lock. Returns the first entry with this hash and the result of `resolve`
  /// for its location, both from one moment. Call under a pin. Does not count as an access.
  ///
  /// - Returns: `nil` if only a lookup under the lock can tell.
  @inline(__always)
  package func look<Value>(
    _ hash: UInt64, _ resolve: (Location) -> Value?
  ) -> (found: SeenEntry.Look, value: Value?)? {
    versions.look(at: Self.shard(of: hash)) { view in
      switch SeenEntry.first(of: Self.stored(hash), in: view) {
      case .none: (.none, nil)
      case .entry(let seen): (.entry(seen), resolve(seen.entry.location))
      }
    }
  }

  /// Calls `body` under the shard's lock with the entry with this hash that follows the entry at
  /// `location`, or with the first. Returns whether such an entry exists.
  ///
  /// With `touch`, an entry that cannot expire becomes the most recently read. For other entries,
  /// the caller calls `touch` once it knows that the entry has not expired.
  @inline(__always)
  package func find(
    _ hash: UInt64, after location: Location = .none, touch: Bool, _ body: (IndexEntry) -> Void
  ) throws(StoreError) -> Bool {
    let number = Self.shard(of: hash)
    return try shards[number].withLock { (shard) throws(StoreError) -> Bool in
      let stored = Self.stored(hash)
      while true {
        var slot = shard.slot(of: stored)
        if location != .none {
          // If that entry is gone, the caller checks all entries again.
          if let known = shard.slot(of: stored, location: location) {
            slot = shard.slot(of: stored, after: known)
          }
        }
        guard let slot else {
          // An unloaded shard has no entries to find, so a successful lookup needs no extra check.
          if !shard.isUnloaded { return false }
          try load(&shard, number)
          continue
        }
        let entry = shard[slot]
        if touch, !entry.flags.contains(.canExpire),
          let tick = recency.tickOfRead(after: entry.tick)
        {
          shard.setTick(tick, at: slot)
        }
        body(entry)
        return true
      }
    }
  }

  /// Prefetches the home slot of this hash for a later lookup.
  @inline(__always)
  package func prefetch(_ hash: UInt64) {
    versions.prefetch(at: Self.shard(of: hash)) { Int((Self.stored(hash) &* $0) >> 40) &* 2 }
  }

  /// Calls `body` under the shard's lock with the entry that has this hash and location. Returns
  /// whether it still exists. Does not count as an access.
  @inline(__always)
  package func find(
    _ hash: UInt64, at location: Location, _ body: (IndexEntry) -> Void
  ) -> Bool {
    shards[Self.shard(of: hash)].withLock { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location) else { return false }
      body(shard[slot])
      return true
    }
  }

  /// Makes an entry the most recently read, even if a compaction has moved its record in the
  /// meantime.
  package func touch(_ hash: UInt64, _ entry: IndexEntry) {
    shards[Self.shard(of: hash)].withLock { shard in
      let stored = Self.stored(hash)
      guard
        let slot = shard.slot(of: stored, location: entry.location)
          ?? shard.slot(of: stored, tick: entry.tick)
      else { return }
      if let tick = recency.tickOfIdleRead(after: shard[slot].tick) {
        shard.setTick(tick, at: slot)
      }
      shard.noteAccess(at: slot)
    }
  }

  /// Adds an entry for a key that has none. Room for it must exist.
  ///
  /// - Parameters:
  ///   - tick: the tick of the last access, or `nil` for now.
  ///   - deadline: for an entry that can expire, or `nil` if not known yet.
  package func insert(
    _ hash: UInt64, location: Location, flags: IndexEntry.Flags, tick: UInt64? = nil,
    deadline: Deadline? = nil
  ) {
    change(Self.shard(of: hash)) { shard in
      shard.insert(
        IndexEntry(
          hash: Self.stored(hash), location: location, tick: tick ?? recency.advance(),
          flags: flags), deadline: deadline)
    }
  }

  /// Replaces an entry's location, after calling `body` under the shard's lock. Returns `false` if
  /// no entry has the old location.
  ///
  /// - Parameter slot: where the entry was found, or -1.
  package func replace(
    _ hash: UInt64, old: Location, near slot: Int = -1, new: Location, flags: IndexEntry.Flags,
    tick: UInt64? = nil, deadline: Deadline? = nil, _ body: () -> Void = {}
  ) -> Bool {
    change(Self.shard(of: hash)) { shard in
      let stored = Self.stored(hash)
      guard let slot = shard.slot(of: stored, location: old, near: slot) else { return false }
      body()
      shard.replace(
        at: slot,
        with: IndexEntry(
          hash: stored, location: new, tick: tick ?? recency.advance(), flags: flags),
        deadline: deadline)
      return true
    }
  }

  /// Gives an entry the new location of the same record, and changes nothing else. Returns `false`
  /// if the entry no longer names the old location.
  package func relocate(_ hash: UInt64, from old: Location, to new: Location) -> Bool {
    change(Self.shard(of: hash)) { shard in
      let stored = Self.stored(hash)
      guard let slot = shard.slot(of: stored, location: old) else { return false }
      let entry = shard[slot]
      shard.replace(
        at: slot,
        with: IndexEntry(hash: stored, location: new, tick: entry.tick, flags: entry.flags))
      return true
    }
  }

  /// Removes an entry, after calling `body` under the shard's lock. Returns `false` if the entry is
  /// already gone.
  package func remove(
    _ hash: UInt64, location: Location, near slot: Int = -1, _ body: () -> Void = {}
  ) -> Bool {
    change(Self.shard(of: hash)) { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location, near: slot) else {
        return false
      }
      body()
      shard.remove(at: slot)
      return true
    }
  }

  package func removeAll() {
    for shard in 0..<Self.shardCount { change(shard, isRemovalOfAll: true) { $0.removeAll() } }
  }

  package func removeTombstones(inShard shard: Int) throws(StoreError) {
    try change(shard) { (shard) throws(StoreError) in try shard.removeTombstones() }
  }

  /// The entries of one shard, and the results of `resolve`, which is called under the shard's
  /// lock.
  package func entries<Value>(
    inShard number: Int, _ resolve: (Location) -> Value?
  ) throws(StoreError) -> [(entry: IndexEntry, value: Value?)] {
    try shards[number].withLock { (shard) throws(StoreError) in
      if shard.isUnloaded { try load(&shard, number) }
      return shard.allEntries().map { ($0, resolve($0.location)) }
    }
  }

  /// The entries of one shard, copied into a reused array.
  package func copyEntries(
    ofShard number: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    entries.removeAll(keepingCapacity: true)
    try shards[number].withLock { (shard) throws(StoreError) in
      if shard.isUnloaded { try load(&shard, number) }
      shard.appendEntries(to: &entries)
    }
  }

  /// The number of entries.
  package var count: Int { entryCount.load(ordering: .relaxed) }
  /// The number of entries that can expire.
  package var expirableCount: Int { expirableEntryCount.load(ordering: .relaxed) }

  /// Changes a shard under its lock.
  @inline(__always)
  func change<Value, Failure: Error>(
    _ number: Int, isRemovalOfAll: Bool = false,
    _ body: (inout IndexShard) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try shards[number].withLock { (shard) throws(Failure) in
      let (count, expirableCount) = (shard.count, shard.expirableCount)
      let wasUnloaded = shard.isUnloaded
      let value = try changing(&shard, number) { (shard) throws(Failure) in
        // A table that is handed over may be freed at once, so lookups must no longer see it.
        if shard.epoch != epoch.load(ordering: .relaxed) {
          preserve(&shard, number, handingOver: isRemovalOfAll)
        }
        return try body(&shard)
      }
      note(count, expirableCount, before: shard)
      if wasUnloaded != shard.isUnloaded { noteLoaded() }
      return value
    }
  }

  /// Makes lookups without the lock wait for the change or take the lock. Afterwards records
  /// whether the shard has room.
  @inline(__always)
  func changing<Value, Failure: Error>(
    _ shard: inout IndexShard, _ number: Int, _ body: (inout IndexShard) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let (count, capacity) = (shard.count, shard.capacity)
    versions.beginChange(number)
    defer {
      if shard.count != count || shard.capacity != capacity {
        versions.setNote(number, shard.hasRoom(for: 1))
      }
      versions.endChange(number, shard.entries.words, isKnown: !shard.isUnloaded)
    }
    return try body(&shard)
  }

  @inline(__always)
  func note(_ count: Int, _ expirableCount: Int, before shard: borrowing IndexShard) {
    if shard.count != count {
      entryCount.wrappingAdd(shard.count - count, ordering: .relaxed)
    }
    if shard.expirableCount != expirableCount {
      expirableEntryCount.wrappingAdd(
        shard.expirableCount - expirableCount, ordering: .relaxed)
    }
  }

  /// Bytes of memory that the tables take.
  package var byteCount: Int {
    var total = 0
    for shard in 0..<Self.shardCount { shards[shard].withLock { total += $0.byteCount } }
    return total
  }

  /// Gives all entries new ticks in the same order, from 1. Call before any access.
  ///
  /// - Complexity: O(n log n), and loads everything. Needed once in 2^40 accesses.
  package func compressTicks() throws(StoreError) {
    try loadAll()
    var ticks: [UInt64] = []
    var entries: [IndexEntry] = []
    for shard in 0..<Self.shardCount {
      try copyEntries(ofShard: shard, into: &entries)
      ticks += entries.map(\.tick)
    }
    ticks += recency.sampleTicks
    ticks.sort()
    let ranks = TickRanks(ticks)
    for shard in 0..<Self.shardCount {
      shards[shard].withLock { $0.updateTicks { ranks.rank(of: $0) } }
    }
    recency.update { ranks.rank(of: $0) }
  }

  // MARK: Snapshots

  /// Begins a snapshot: from now on, each shard's state is kept before the shard changes.
  func beginSnapshot() -> SnapshotParts {
    let parts = SnapshotParts(
      epoch: epoch.wrappingAdd(1, ordering: .relaxed).newValue, shardCount: Self.shardCount)
    snapshots.withLock { $0.append(parts) }
    return parts
  }

  func endSnapshot(_ parts: SnapshotParts) {
    snapshots.withLock { $0.removeAll { $0 === parts } }
  }

  /// Calls `body` with a shard, or returns `nil` if the shard has changed since an epoch began.
  func withShard<Value>(
    _ number: Int, before epoch: UInt64, _ body: (borrowing IndexShard) -> Value
  ) throws(StoreError) -> Value? {
    try shards[number].withLock { (shard) throws(StoreError) -> Value? in
      if shard.epoch >= epoch { return nil }
      if shard.isUnloaded { try load(&shard, number) }
      return body(shard)
    }
  }

  /// Before a shard changes, keeps its current state for the snapshots that see that state.
  @inline(never)
  private func preserve(_ shard: inout IndexShard, _ number: Int, handingOver: Bool) {
    let seeing = snapshots.withLock { snapshots in
      snapshots.filter { $0.epoch > shard.epoch && $0.needs(shard: number) }
    }
    if !seeing.isEmpty {
      let source = source.withLock { $0 }
      let count = shard.count
      var frozen: FrozenShard?
      if handingOver && !shard.isUnloaded {
        frozen = FrozenShard(IndexShard(emptying: &shard), number: number, source: source)
      } else {
        // If there is no memory for a copy, the change proceeds, and readers of the snapshot get
        // the error.
        do {
          frozen = FrozenShard(try IndexShard(copying: shard), number: number, source: source)
        } catch {}
      }
      for snapshot in seeing { snapshot.keep(frozen, shard: number, count: count) }
    }
    shard.epoch = epoch.load(ordering: .relaxed)
  }
}
