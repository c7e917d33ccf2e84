internal import CairnStore
internal import Synchronization

// A stopped disk takes no more writes, because a sync failed or its directory was removed. It keeps
// what it has until the cache is opened again, and reads still find that. So memory may keep a
// value that the disk has no part of:
//
// 1. Memory keeps a value only if no read could find another value of the key on disk. Otherwise,
//    an eviction from memory would bring that older value back. From then on, no read returns a
//    value whose lifetime has ended on disk.
// 2. The value's version is above all versions on disk and all values kept before. It is dropped
//    again if it is then no longer wanted. So a removal that comes in between, which marks the load
//    as outdated and then takes the key out of memory, wins.
// 3. A removal or batch takes its keys out of memory, also if it throws. A removal of all entries,
//    of a tag or by a predicate, which sees only the entries on disk, empties memory.
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
    _ key: Key, after error: CacheError, byteCount: Int, ifWanted isWanted: () -> Bool,
    _ tier: (TierStep) -> Void
  ) {
    guard error.isOfStoppedDisk, held != nil, !isReadable(key), isWanted() else { return }
    let count = events.keptCount.add(1, ordering: .relaxed).newValue
    tier(
      TierStep(version: store.lastVersion &+ count, byteCount: byteCount, isKept: true))
    if !isWanted() { dropKept(key) }
  }

  /// Whether a read could find a value on disk.
  private func isReadable(_ key: Key) -> Bool {
    do throws(CacheError) { return try peekStored(key) != nil } catch {
      switch error {
      case .changedType, .undecodableValue, .store(.corrupt): return false
      default: return true
      }
    }
  }

  /// Call if a removal of many entries has thrown. Loads in progress keep nothing, and memory drops
  /// what only memory has.
  func noteFailedRemoval(_ error: CacheError) {
    if error.isOfStoppedDisk { dropKept() }
  }

  /// Call after a removal of a key, even if it has thrown.
  func dropKept(_ key: Key) {
    guard events.keptCount.load(ordering: .relaxed) > 0, let key = try? tierKey(key) else { return }
    held?.drop(key, .removed)
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

extension CacheError {
  /// Whether the disk takes no more writes. The store has logged why.
  var isOfStoppedDisk: Bool {
    switch self {
    case .store(.poisoned), .store(.vanished): true
    default: false
    }
  }
}
