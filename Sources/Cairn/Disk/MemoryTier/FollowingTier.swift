internal import CairnStore
internal import Synchronization

/// The memory tier of a cache that follows another process.
///
/// 1. The writer does not report its changes. A read therefore looks up the current version of the
///    key on disk, and uses only a value of that version. So a value returned from here is the
///    value on disk. No value here has tags, because the writer may have removed a tag since.
/// 2. Within one history (`Store.look(at:)`), a version identifies one value. All values here were
///    read in the history recorded in `history`, or in a later one. When the history changes, the
///    tier drops all values, and does not keep the values of reads in progress.
@usableFromInline
final class FollowingTier<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let held: MemoryCache<TierKey<Key>, Value>
  private let history = Atomic<UInt64>(0)

  init(_ held: MemoryCache<TierKey<Key>, Value>) { self.held = held }

  /// Call before using a value from the tier, with the history of the version looked up.
  func enter(_ history: UInt64) {
    if self.history.load(ordering: .acquiring) == history { return }
    held.removeAll(cause: .removed, isToldOfNothing: false)
    self.history.store(history, ordering: .releasing)
  }
}

extension DiskCache {
  /// The value of a key, from memory if memory has the value that is on disk.
  @usableFromInline
  func value(
    forKey key: Key, in tier: FollowingTier<Key, Value>
  ) throws(CacheError) -> Value? {
    let tierKey = try tierKey(key)
    if let found = try vouchedValue(of: tierKey, in: tier) { return found.value }
    // Taken after `enter`, so that no value read in an earlier history is inserted.
    let ticket = tier.held.ticket(forKey: tierKey)
    let found = try fetch(key) { (record) throws(CacheError) in
      (try decode(record), record.info, CacheMetadata.hasTags(record.metadata))
    }
    guard let (value, info, hasTags) = found else { return nil }
    if !hasTags { promote(value, info, hasTags: false, forKey: tierKey, ticket, to: tier.held) }
    return value
  }

  /// The entries of a key in memory and on disk, if both have the same version. Removes the entry
  /// from memory if the disk has no value.
  ///
  /// - Parameter isRead: whether this is an access.
  func vouchedValue(
    of key: TierKey<Key>, in tier: FollowingTier<Key, Value>, isRead: Bool = true
  ) throws(CacheError) -> (value: Value, info: EntryInfo)? {
    let (info, history) = try keyCoder.encode(key.key) { (bytes) throws(CacheError) in
      try callingStore { () throws(StoreError) in try store.look(at: bytes) }
    }
    tier.enter(history)
    guard let info else {
      tier.held.invalidate(key, through: nil, .removed)
      return nil
    }
    let value = tier.held.value(forKey: key, ofVersion: info.version, isRead: isRead)
    return value.map { ($0, info) }
  }

  /// The fresh value of a key, for a call with a loader.
  func heldValue(
    forKey key: Key, in tier: FollowingTier<Key, Value>
  ) throws(CacheError) -> HeldValue<Value>? {
    guard let (value, info) = try vouchedValue(of: tierKey(key), in: tier) else { return nil }
    return HeldValue(
      value: value, version: info.version, written: info.written.millisecondsSinceEpoch,
      expires: info.expires?.millisecondsSinceEpoch ?? never)
  }
}

extension MemoryCache {
  /// The value of a key, if it has this version.
  ///
  /// - Parameter isRead: whether this is an access and counts as a hit or a miss.
  func value(forKey key: Key, ofVersion version: UInt64, isRead: Bool) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    return lock.withLock(forReading: true) { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, state.table.nodes[Int(slot)].version == version,
        !state.table.nodes[Int(slot)].hasExpired(at: now)
      else {
        if isRead { state.statistics.missCount &+= 1 }
        return nil
      }
      if isRead {
        state.statistics.hitCount &+= 1
        state.touch(slot, at: now)
      }
      return state.table.value(slot)
    }
  }
}
