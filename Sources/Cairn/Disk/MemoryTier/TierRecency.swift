internal import CairnStore
internal import Synchronization

/// Tells the tier on disk what was read from memory, so that what is in use is not what goes there first.
///
/// A read sets a bit in its entry and no more: the order of memory is the order of use, so that what was used since the
/// last telling stands at its front, and is told in that order.
final class TierRecency<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let memory: MemoryCache<TierKey<Key>, Value>
  private let keyCoder: KeyCoder<Key>
  /// Weak, since the store holds what holds this.
  private let store = Lock(WeakStore())
  private let background: any BackgroundQueue
  /// What was taken from memory to be told, in the order of use. Held for the walk through memory alone, so that
  /// who frees memory does not wait for the disk.
  private let taken = Lock<ArraySlice<TierKey<Key>>>([])
  /// One telling at a time, so that a trim that waited for it finds all of it done. Under it the store is called
  /// and a coder that is known to do nothing else; a user's coder is not.
  private let telling = Lock(())
  /// Evictions below since the last telling.
  private let evictionCount = Atomic(0)
  /// How many of them, and of reads that were not told, ask for the next: a sixty-fourth of what the store had
  /// when it was last told.
  private let countToTell = Atomic(0)
  /// Whether the background was asked for a telling that it has not begun.
  private let isAskedFor = Atomic(false)

  private struct WeakStore: Sendable {
    weak var store: Store?
  }

  init(
    memory: MemoryCache<TierKey<Key>, Value>, keyCoder: KeyCoder<Key>,
    background: any BackgroundQueue
  ) {
    self.memory = memory
    self.keyCoder = keyCoder
    self.background = background
  }

  func begin(_ store: Store) { self.store.withLock { $0.store = store } }

  /// Tells all that was used until now. Where the store cannot be used any more, nobody needs to know.
  ///
  /// - Parameter body: called before, when it is known what there is to tell; with no lock held.
  func tell(after body: () -> Void = {}) {
    guard let store = store.withLock({ $0.store }) else { return body() }
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
    // One by one, since the coder of a user runs with no lock held. Who comes meanwhile tells what is left, so that
    // nothing is when he returns, but for what others are just coding.
    while let key = taken.withLock({ $0.popFirst() }) { tell(key, store) }
    let told = taken.withLock { $0.isEmpty ? exchange(&$0, with: []) : [] }
    withExtendedLifetime(told) {}
  }

  /// Tells of one key that is just being read. What cannot be told is not worth failing a read for that has
  /// succeeded.
  func tell(_ key: TierKey<Key>) {
    guard let store = store.withLock({ $0.store }) else { return }
    tell(key, store, isBeingRead: true)
  }

  /// - Parameter isBeingRead: else it was read some time ago. That counts for nothing where what is on disk may not
  ///   be idle for long: either it was told at once, or the read was of another value.
  private func tell(_ key: TierKey<Key>, _ store: Store, isBeingRead: Bool = false) {
    memory.noteTold(key)
    let sparesIdle = !isBeingRead
    if let bytes = key.bytes {
      _ = try? bytes.withBytes { (bytes) throws(StoreError) in
        try store.touch(bytes, unlessIdleLimited: sparesIdle)
      }
    } else {
      _ = try? keyCoder.encode(key.key) { (bytes) throws(CacheError) in
        try callingStore { () throws(StoreError) in
          try store.touch(bytes, unlessIdleLimited: sparesIdle)
        }
      }
    }
  }

  /// Whether the store may ask of a key that is to go whether it is in use: not where the coder is a user's,
  /// and memory does not know keys by their bytes.
  var knowsKeysByBytes: Bool { Self.knowsKeysByBytes(keyCoder) }

  static func knowsKeysByBytes(_ keyCoder: KeyCoder<Key>) -> Bool { keyCoder.identity != .equality }

  /// Whether a key was read from memory and the disk not told of it, which it is by this. Runs under a lock of
  /// the store's.
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

  /// To be called before a write that may make entries go to keep limits: telling later, what was used before
  /// it would count as used after it. Where there are many, that is done after every sixty-fourth of them that
  /// goes or is read alone, since telling costs more than an eviction does; those in use are spared in between.
  ///
  /// - Parameters:
  ///   - count: how many entries are written.
  ///   - byteCount: how many bytes they have.
  func tellBeforeWrite(of count: Int, _ byteCount: Int) {
    if tells(beforeWriteOf: count, byteCount) { tell() }
  }

  /// Whether the disk is told before such a write.
  func tells(beforeWriteOf count: Int, _ byteCount: Int) -> Bool {
    guard let store = store.withLock({ $0.store }),
      store.isNearLimit(adding: count, byteCount: byteCount)
    else { return false }
    let untoldCount = evictionCount.load(ordering: .relaxed) + memory.untoldReadCount
    return untoldCount >= countToTell.load(ordering: .relaxed)
  }

  /// Has the background tell after a while, once for all hits until then.
  func tellLater(after interval: Duration) {
    background.run(after: interval) { [weak self] in
      // From here on a read asks for the next telling.
      self?.memory.endTelling()
      self?.tell()
    }
  }

  /// Drops from memory what went from the disk.
  func drop(_ event: RemovalEvent) {
    switch event {
    case .all(_, let count): memory.removeAll(cause: .removed, isToldOfNothing: count > 0)
    case .entry(let bytes, let version, let cause):
      // That of a record that is damaged is not known.
      let version = version == 0 ? nil : version
      if case .evicted = cause { evictionCount.add(1, ordering: .relaxed) }
      if keyCoder.identity == .bytes {
        let hash = MemoryTable<TierKey<Key>, Value>.hash(ofBytes: bytes)
        memory.invalidate(hash: hash, through: version, cause) { $0.bytes == bytes }
        return
      }
      do throws(CacheError) {
        let key = try bytes.withBytes { (bytes) throws(CacheError) -> Key in
          try keyCoder.decode(bytes)
        }
        memory.invalidate(TierKey(key), through: version, cause)
      } catch {
        // Whatever it was, it is not found any more. With a coder of those here that is none of this cache's.
        memory.removeAll(cause: cause)
      }
    }
  }

  /// Has the background tell, so that no write has to: to be called where many were read.
  func tellSoon() {
    if isAskedFor.exchange(true, ordering: .relaxed) { return }
    background.run { [weak self] in
      self?.isAskedFor.store(false, ordering: .relaxed)
      self?.tell()
    }
  }
}
