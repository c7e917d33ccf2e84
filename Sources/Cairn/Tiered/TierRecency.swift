internal import CairnStore
internal import Synchronization

/// Tells the tier on disk what was read from memory, so that what is in use is not what goes there first.
///
/// Nothing is noted with a read: the order of memory is the order of use, so that what was used since the
/// last telling stands at its front, and is told in that order.
final class TierRecency<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let memory: MemoryCache<TierKey<Key>, Value>
  private let keyCoder: KeyCoder<Key>
  /// Weak, since the store holds what holds this.
  private let store = Lock(WeakStore())
  /// One telling at a time, so that a trim that waited for it finds all of it done. Under it the store is
  /// called and a coder that is known to do nothing else; a user's coder is not.
  private let telling = Lock(())
  /// Evictions below since the last telling.
  private let evictionCount = Atomic(0)

  private struct WeakStore: Sendable {
    weak var store: Store?
  }

  init(memory: MemoryCache<TierKey<Key>, Value>, keyCoder: KeyCoder<Key>) {
    self.memory = memory
    self.keyCoder = keyCoder
  }

  func begin(_ store: Store) { self.store.withLock { $0.store = store } }

  func noteEviction() { evictionCount.add(1, ordering: .relaxed) }

  /// Tells all that was used until now. Where the store cannot be used any more, nobody needs to know.
  func tell() {
    if plantedInCache(.recencyNotTold) { return }
    guard let store = store.withLock({ $0.store }) else { return }
    evictionCount.store(0, ordering: .relaxed)
    if keyCoder.identity == .equality {
      // The walk is one alone; the coder of a user runs under no lock.
      let keys = telling.withLock { _ in memory.takeRecentKeys() }
      for key in keys { tell(key, store) }
    } else {
      telling.withLock { _ in
        for key in memory.takeRecentKeys() { tell(key, store) }
      }
    }
  }

  /// Tells of one key. What cannot be told is not worth failing a read for that has succeeded.
  func tell(_ key: TierKey<Key>) {
    guard let store = store.withLock({ $0.store }) else { return }
    tell(key, store)
  }

  private func tell(_ key: TierKey<Key>, _ store: Store) {
    if let bytes = key.bytes {
      _ = try? bytes.withBytes { (bytes) throws(StoreError) in try store.touch(bytes) }
    } else {
      _ = try? keyCoder.encode(key.key) { (bytes) throws(CacheError) in
        try storing { () throws(StoreError) in try store.touch(bytes) }
      }
    }
  }

  /// Whether the store may ask of a key that is to go whether it is in use: not where the coder is a user's,
  /// and memory does not know keys by their bytes.
  var knowsKeysByBytes: Bool { keyCoder.identity != .equality }

  /// Whether a key was read from memory and the disk not told of it, which it is by this. Runs under a lock of
  /// the store's.
  func isInUse(_ bytes: RawSpan) -> Bool {
    if plantedInCache(.victimInUse) { return false }
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

  /// To be called before a write that may make entries go to keep limits: telling later, what was used before
  /// it would count as used after it. Where many are held, that is done after every sixty-fourth of them that
  /// goes or is read alone, since telling costs more than an eviction does; those in use are spared in between.
  func tellBeforeWrite() {
    guard let store = store.withLock({ $0.store }), store.isNearLimit else { return }
    let heldCount = (try? store.usage().indexedKeyCount) ?? 0
    let count = evictionCount.load(ordering: .relaxed) + memory.untoldReadCount
    if count >= heldCount / 64 { tell() }
  }
}
