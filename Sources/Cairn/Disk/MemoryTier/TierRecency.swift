internal import CairnStore
internal import Synchronization

/// Reports reads from memory to the disk tier, so that trims on disk spare entries in use.
///
/// A read only sets a bit in its entry. The order of memory is the access order, so entries
/// accessed since the last report are at its front, and are reported in that order.
final class TierRecency<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let memory: MemoryCache<TierKey<Key>, Value>
  private let keyCoder: KeyCoder<Key>
  /// Strong, because a weak reference would make every use of a store slower. `end` breaks the
  /// cycle.
  private let store = Lock<Store?>(nil)
  private let background: any BackgroundQueue
  /// Keys taken from memory to be reported, in access order. The lock is held only for the walk
  /// through memory, so that freeing memory does not wait for the disk.
  private let taken = Lock<ArraySlice<TierKey<Key>>>([])
  /// Allows one report at a time, so that a trim that waited for the lock finds everything
  /// reported. The store and built-in coders are called under this lock, but custom coders are not.
  private let telling = Lock(())
  /// Evictions below since the last report.
  private let evictionCount = Atomic(0)
  /// The number of evictions and unreported reads after which a write reports: a sixty-fourth of
  /// the store's entries at the last report.
  private let countToTell = Atomic(0)
  /// Whether a background report has been requested and has not begun.
  private let isAskedFor = Atomic(false)
  /// The number of reports being made. A write does not wait for them.
  private let tellingCount = Atomic(0)

  init(
    memory: MemoryCache<TierKey<Key>, Value>, keyCoder: KeyCoder<Key>,
    background: any BackgroundQueue
  ) {
    self.memory = memory
    self.keyCoder = keyCoder
    self.background = background
  }

  func begin(_ store: Store) { replace(store) }

  /// Releases the store. Later reports do nothing.
  func end() { replace(nil) }

  private func replace(_ store: Store?) {
    // Release the old store outside the lock.
    let old = self.store.withLock { exchange(&$0, with: store) }
    withExtendedLifetime(old) {}
  }

  /// Reports everything accessed until now. Does nothing if the store can no longer be used.
  ///
  /// - Parameter body: called beforehand, once the keys to report are known, with no lock held.
  func tell(after body: () -> Void = {}) {
    guard let store = store.withLock({ $0 }) else { return body() }
    tellingCount.add(1, ordering: .relaxed)
    defer { tellingCount.subtract(1, ordering: .relaxed) }
    evictionCount.store(0, ordering: .relaxed)
    let count = (try? store.usage().indexedKeyCount) ?? 0
    countToTell.store(count / 64, ordering: .relaxed)
    taken.withLock { $0 += memory.takeRecentKeys() }
    body()
    if knowsKeysByBytes {
      let told = telling.withLock { _ in
        let keys = taken.withLock { exchange(&$0, with: []) }
        for key in keys { tell(key, store) }
        return keys
      }
      withExtendedLifetime(told) {}
      return
    }
    // One by one, because a custom coder runs with no lock held. A caller that arrives in the
    // meantime reports the rest. When that call returns, no key is left, except keys that other
    // threads are encoding.
    while let key = taken.withLock({ $0.popFirst() }) { tell(key, store) }
    let told = taken.withLock { $0.isEmpty ? exchange(&$0, with: []) : [] }
    withExtendedLifetime(told) {}
  }

  /// Reports one key that is being read. A failure to report must not fail a read that has
  /// succeeded.
  func tell(_ key: TierKey<Key>) {
    guard let store = store.withLock({ $0 }) else { return }
    tell(key, store, isBeingRead: true)
  }

  /// - Parameter isBeingRead: `false` if the key was read some time ago. Such a read does not count
  ///   if the entry on disk has an idle limit: either the read was reported at once, or it was a
  ///   read of another value.
  private func tell(_ key: TierKey<Key>, _ store: Store, isBeingRead: Bool = false) {
    memory.noteTold(key)
    let sparesIdle = !isBeingRead
    if let bytes = key.bytes {
      _ = try? store.touch(bytes.rawSpan, unlessIdleLimited: sparesIdle)
    } else {
      _ = try? keyCoder.encode(key.key) { (bytes) throws(CacheError) in
        try callingStore { () throws(StoreError) in
          try store.touch(bytes, unlessIdleLimited: sparesIdle)
        }
      }
    }
  }

  /// Whether the store may call `isInUse` for a key that it is about to remove. `false` for a
  /// custom coder if memory does not know keys by their bytes.
  var knowsKeysByBytes: Bool { Self.knowsKeysByBytes(keyCoder) }

  static func knowsKeysByBytes(_ keyCoder: KeyCoder<Key>) -> Bool { keyCoder.identity != .equality }

  /// Whether a key has a read from memory that was not reported to the disk. The call counts as the
  /// report. Runs under a lock of the store.
  func isInUse(_ bytes: RawSpan) -> Bool {
    if keyCoder.identity == .bytes {
      let bytes = [UInt8](copying: bytes)
      let hash = MemoryTable<TierKey<Key>, Value>.hash(ofBytes: bytes)
      return memory.takeRead(hash: hash) { $0.bytes == bytes }
    }
    guard let key = try? keyCoder.decode(bytes) else { return false }
    let tierKey = TierKey(key)
    let hash = MemoryTable<TierKey<Key>, Value>.hash(tierKey)
    return memory.takeRead(hash: hash) { $0 == tierKey }
  }

  /// Call before a write that may evict entries. In a later report, earlier accesses would count as
  /// later than the write. A report costs more than an eviction, so the call reports only if a
  /// sixty-fourth of the entries have been evicted or read since the last report. If a report is
  /// too much work for a write, it runs in the background. Between reports, evictions spare entries
  /// in use, up to a limit.
  ///
  /// A write that may evict many entries always reports.
  ///
  /// - Parameters:
  ///   - count: the number of entries to write.
  ///   - byteCount: the size of these entries in bytes.
  ///   - store: the store that they are written to.
  func tellBeforeWrite(of count: Int, _ byteCount: Int, to store: Store) {
    if tells(beforeWriteOf: count, byteCount, to: store) { tell() }
  }

  /// Whether to report to the disk before a write of this size. Requests a background report if a
  /// report would be too much work for the write.
  func tells(beforeWriteOf count: Int, _ byteCount: Int, to store: Store) -> Bool {
    switch store.evictions(byAdding: count, byteCount: byteCount) {
    case .none: return false
    case .few: break
    case .many: return true
    }
    let readCount = memory.untoldReadCount
    let evictionCount = evictionCount.load(ordering: .relaxed)
    let countToTell = countToTell.load(ordering: .relaxed)
    if evictionCount + readCount < countToTell { return false }
    // The store cannot call `isInUse` for such keys.
    if !knowsKeysByBytes { return true }
    let isMuch =
      max(readCount, countToTell) > Self.fewCount || tellingCount.load(ordering: .relaxed) > 0
    // Each report makes the next read of each entry slower, so report only if many entries were
    // evicted.
    if isMuch, evictionCount >= (countToTell > 64 ? 4 : 1) * countToTell { tellSoon() }
    return !isMuch
  }

  /// The maximum number of keys that a write reports. That takes about a tenth of a millisecond.
  private static var fewCount: Int { 256 }

  /// Schedules one background report of all hits until then.
  func tellLater(after interval: Duration) {
    background.run(after: interval) { [weak self] in
      // From here on, a read requests the next report.
      self?.memory.endTelling()
      self?.tell()
    }
  }

  /// Drops entries from memory that were removed from disk.
  func drop(_ event: RemovalEvent) {
    switch event {
    case .all(_, let count): memory.removeAll(cause: .removed, isToldOfNothing: count > 0)
    case .entry(let bytes, let version, let cause):
      // The version of a damaged record is unknown.
      let version = version == 0 ? nil : version
      if case .evicted = cause { evictionCount.add(1, ordering: .relaxed) }
      if keyCoder.identity == .bytes {
        let hash = MemoryTable<TierKey<Key>, Value>.hash(ofBytes: bytes)
        memory.invalidate(hash: hash, through: version, cause) { $0.bytes == bytes }
        return
      }
      do throws(CacheError) {
        memory.invalidate(TierKey(try keyCoder.decode(bytes.rawSpan)), through: version, cause)
      } catch {
        // No read may find the removed entry, but its key is unknown. A built-in coder never made
        // such a key.
        memory.removeAll(cause: cause)
      }
    }
  }

  private func tellSoon() {
    if isAskedFor.exchange(true, ordering: .acquiringAndReleasing) { return }
    background.run { [weak self] in
      _ = self?.isAskedFor.exchange(false, ordering: .acquiringAndReleasing)
      self?.tell()
    }
  }
}
