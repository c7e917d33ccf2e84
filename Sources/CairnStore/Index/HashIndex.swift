internal import Synchronization

/// The index: for every key the location of its newest record. Sharded, so that threads seldom
/// meet and growing one shard stalls nobody else.
///
/// It knows hashes, not keys: whoever finds an entry compares the key in the record, outside the
/// lock, and asks for the next entry where they differ.
package final class HashIndex: Sendable {
  package static let shardCount = 256

  private let shards: InlineArray<256, Lock<IndexShard>>
  package let recency: RecencyClock
  private let entryCount = Atomic(0)
  private let expirableEntryCount = Atomic(0)

  package init(recency: RecencyClock) {
    self.recency = recency
    shards = InlineArray { Lock(IndexShard(phase: Double($0) / Double(Self.shardCount))) }
  }

  @inline(__always)
  private static func shard(of hash: UInt64) -> Int { Int(hash & 0xFF) }
  @inline(__always)
  private static func stored(_ hash: UInt64) -> UInt64 { hash >> 24 }

  /// Whether finding an entry counts as reading it.
  package enum Touch: Sendable {
    case no, yes
  }

  /// Calls `body` under the shard's lock with the entry with this hash that follows the one at
  /// `location`, or with the first; returns whether there is one.
  ///
  /// With `.yes`, the entry becomes the most recently read, unless it can expire: then whoever
  /// asked calls `touch` once it is known that it has not expired.
  @inline(__always)
  package func find(
    _ hash: UInt64, after location: Location = .none, touch: Touch, _ body: (IndexEntry) -> Void
  ) -> Bool {
    shards[Self.shard(of: hash)].withLock { shard in
      let stored = Self.stored(hash)
      var slot = shard.slot(of: stored)
      if location != .none {
        // Where that entry went meanwhile, the caller looks at all of them again.
        if let known = shard.slot(of: stored, location: location) {
          slot = shard.slot(of: stored, after: known)
        }
      }
      guard let slot else { return false }
      let entry = shard[slot]
      if touch == .yes, !entry.flags.contains(.canExpire), recency.isNewer(than: entry.tick) {
        shard.setTick(recency.advance(), at: slot)
      }
      body(entry)
      return true
    }
  }

  /// Calls `body` under the shard's lock with the entry that has this hash and location; returns
  /// whether it is still there. This is no access.
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

  /// Makes an entry the most recently read, also where a compaction has moved its record meanwhile.
  package func touch(_ hash: UInt64, _ entry: IndexEntry) {
    shards[Self.shard(of: hash)].withLock { shard in
      let stored = Self.stored(hash)
      guard
        let slot = shard.slot(of: stored, location: entry.location)
          ?? shard.slot(of: stored, tick: entry.tick)
      else { return }
      if recency.isNewer(than: shard[slot].tick) { shard.setTick(recency.advance(), at: slot) }
    }
  }

  /// Adds an entry for a key that has none.
  ///
  /// - Parameter tick: when it was accessed; `nil`: now.
  package func insert(
    _ hash: UInt64, location: Location, flags: IndexEntry.Flags, tick: UInt64? = nil
  ) {
    change(Self.shard(of: hash)) { shard in
      shard.insert(
        IndexEntry(
          hash: Self.stored(hash), location: location, tick: tick ?? recency.advance(),
          flags: flags))
    }
  }

  /// Puts a new location in the place of an old one; `false` where the old one is gone.
  package func replace(
    _ hash: UInt64, old: Location, new: Location, flags: IndexEntry.Flags, tick: UInt64? = nil
  ) -> Bool {
    change(Self.shard(of: hash)) { shard in
      let stored = Self.stored(hash)
      guard let slot = shard.slot(of: stored, location: old) else { return false }
      shard.replace(
        at: slot,
        with: IndexEntry(
          hash: stored, location: new, tick: tick ?? recency.advance(), flags: flags))
      return true
    }
  }

  /// Gives an entry another location, where the same record now lies, and leaves all else as it is;
  /// `false` where the entry does not name the old location any more.
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

  /// Removes an entry; `false` where it is gone.
  package func remove(_ hash: UInt64, location: Location) -> Bool {
    change(Self.shard(of: hash)) { shard in
      guard let slot = shard.slot(of: Self.stored(hash), location: location) else { return false }
      shard.remove(at: slot)
      return true
    }
  }

  package func removeAll() {
    for shard in 0..<Self.shardCount { change(shard) { $0.removeAll() } }
  }

  package func removeTombstones() {
    for shard in 0..<Self.shardCount { change(shard) { $0.removeTombstones() } }
  }

  /// The entries of one shard that have these flags, and what `resolve` makes of each under the
  /// shard's lock.
  package func entries<Value>(
    inShard shard: Int, with flags: IndexEntry.Flags = [], _ resolve: (Location) -> Value?
  ) -> [(entry: IndexEntry, value: Value?)] {
    shards[shard].withLock { shard in
      if flags.contains(.canExpire), shard.expirableCount == 0 { return [] }
      let entries = shard.allEntries()
      if flags.isEmpty { return entries.map { ($0, resolve($0.location)) } }
      return entries.filter { $0.flags.isSuperset(of: flags) }.map { ($0, resolve($0.location)) }
    }
  }

  /// The entries of one shard, copied into an array that is used again and again.
  package func copyEntries(ofShard shard: Int, into entries: inout [IndexEntry]) {
    entries.removeAll(keepingCapacity: true)
    shards[shard].withLock { $0.appendEntries(to: &entries) }
  }

  /// How many entries there are.
  package var count: Int { entryCount.load(ordering: .relaxed) }
  /// How many of them can expire.
  package var expirableCount: Int { expirableEntryCount.load(ordering: .relaxed) }

  /// Changes a shard under its lock.
  @inline(__always)
  private func change<Value>(_ shard: Int, _ body: (inout IndexShard) -> Value) -> Value {
    shards[shard].withLock { shard in
      let (count, expirableCount) = (shard.count, shard.expirableCount)
      let value = body(&shard)
      if shard.count != count {
        entryCount.wrappingAdd(shard.count - count, ordering: .relaxed)
      }
      if shard.expirableCount != expirableCount {
        expirableEntryCount.wrappingAdd(
          shard.expirableCount - expirableCount, ordering: .relaxed)
      }
      return value
    }
  }

  /// Bytes of memory that the tables take.
  package var byteCount: Int {
    var total = 0
    for shard in 0..<Self.shardCount { shards[shard].withLock { total += $0.byteCount } }
    return total
  }
}
