internal import CairnStore
internal import Synchronization

// A stopped disk takes no more writes, because a sync failed or its directory was removed. It keeps
// what it has until the cache is opened again, and reads still find that. So memory may keep a
// value that the disk has no part of:
//
// 1. Memory keeps a value only if no read could find another value of the key on disk. Otherwise,
//    an eviction from memory would bring that older value back. From then on, no read returns a
//    value whose lifetime has ended on disk.
// 2. The value's version is above all versions on disk and all values kept before. It is taken before
//    the last check that the value is wanted, and the value is dropped again if it then no longer
//    is. So a removal or a set that comes in between, which marks the load as outdated, wins.
// 3. A removal or batch takes its keys out of memory, also if the disk refuses it. A removal of all
//    entries, of a tag or by a predicate, which sees only the entries on disk, empties memory.
// 4. The value ends with its lifetime: no call receives it as a stale one.
//
// A load of a value that the disk has but cannot decode, or that a tag's removal hides, keeps
// nothing: the disk refuses it as it would refuse the replacement of another writer's value.
extension DiskCache {
  /// Keeps a value in memory alone after its write has thrown, if the disk takes no more writes.
  ///
  /// - Parameters:
  ///   - isWanted: whether memory may keep the value.
  ///   - tier: keeps the value in memory.
  func keepOnly(
    _ key: Key, after error: StoreError, byteCount: Int, ifWanted isWanted: () -> Bool,
    _ tier: (TierStep) -> Void
  ) {
    guard error.isOfStoppedDisk, held != nil, !isReadable(key) else { return }
    let version = store.lastVersion &+ events.keptCount.add(1, ordering: .relaxed).newValue
    guard isWanted() else { return }
    tier(TierStep(version: version, byteCount: byteCount, isKept: true))
    if !isWanted() { dropKept(key, through: version) }
  }

  /// Whether a read could find a value on disk.
  private func isReadable(_ key: Key) -> Bool {
    do throws(StoreError) { return try peekStored(key) != nil } catch {
      switch error {
      case .undecodable, .corrupt: return false
      default: return true
      }
    }
  }

  /// Call if a removal of many entries has thrown. Loads in progress keep nothing, and memory drops
  /// what only memory has.
  func noteFailedRemoval(_ error: StoreError) {
    if error.isOfStoppedDisk { dropKept() }
  }

  /// Call after a removal of a key, even if it has thrown.
  func dropKept(_ key: Key, through version: UInt64 = .max) {
    guard events.keptCount.load(ordering: .relaxed) > 0, let key = try? tierKey(key) else { return }
    held?.drop(
      hash: MemoryTable<TierKey<Key>, TierValue<Value>>.hash(key), through: version, .removed
    ) { $0 == key }
  }

  /// Call before a removal that chooses among the entries on disk.
  func dropAnyKept() {
    if events.keptCount.load(ordering: .relaxed) > 0 { dropKept() }
  }

  private func dropKept() {
    flights.noteRemovalOfAll()
    held?.removeAll(cause: .removed)
  }
}

extension StoreError {
  /// Whether the disk takes no more writes. The store has logged why.
  var isOfStoppedDisk: Bool {
    switch self {
    case .poisoned, .vanished: true
    default: false
    }
  }
}
