public import CairnStore
internal import Synchronization

/// A cache on disk, with or without a tier in memory: typed keys and values over a `Store`.
///
///     var configuration = DiskCacheConfiguration(countLimit: nil, byteLimit: 1 << 30)
///     configuration.memory = MemoryTierConfiguration(countLimit: nil, costLimit: 64 << 20)
///     configuration.lifetime = .seconds(86_400)
///     let cache = try DiskCache<String, Page>.open(.name("pages"), configuration: configuration)
///     try cache.setValue(page, forKey: url)
///     let page = try cache.value(forKey: url)
///
/// What it holds is there when it is opened again. Its limits are hard: they hold whenever a write returns,
/// and what is least recently used goes. Expiry is looked at with every read. A read never writes to disk.
/// A value that fails its checksum is an error for its key, never a wrong value and never a miss.
///
/// With a tier in memory, the disk holds everything, and memory a part of it. A write goes to disk first and then to
/// memory. A read that finds nothing in memory looks on disk and keeps what it finds in memory, with its cost, its
/// lifetime and its version; a value that comes from disk is decoded once. What goes from the disk goes from memory; what
/// memory drops to keep its own limits stays on disk. Keys are told apart by their bytes, as on disk: two strings that
/// are canonically equal and differ in their UTF-8 are two keys.
///
/// No read finds what is older than what a read before it has found, or than a write that has returned. With memory,
/// `count`, `keys`, `forEachKey`, `remove(where:)` and `trim(toCount:)` are no such reads: while a removal is under way,
/// a key that they do not show or count any more may still be found. A write that throws has not happened, and the old
/// value stays; but after `durabilityUnknown` the new one is on disk as far as anybody can tell, and memory holds neither.
///
/// All methods may be called from any thread; each takes effect at one moment. A get or a set that stays in
/// the page cache takes less than a thread hop, so they are synchronous and fit async code as they are, but for a
/// set of class `durable`, which waits for a sync of the disk; what takes long has an asynchronous form under a name
/// with `perform`, and `perform` itself takes any work. Coders and observers run with no lock held
/// and may use the cache.
///
/// Cost is measured in bytes, as counted by `StoreStatistics.liveByteCount`. The `cost` that a value is
/// given counts in memory, and is kept on disk for when the value comes back from there.
public final class DiskCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  // What is inlinable is specialised where it is called, for its types: keys and values are handed from one
  // closure to the next there, and everything else is done here, where only bytes are seen.
  /// The store that the cache was opened with.
  private let original: Store
  /// The one that took its place, once its directory was removed.
  private let replacement = ReferenceTable<Store>(slotCount: 1)
  /// Opens another that goes on from a store: with higher versions, and at its time.
  private let reopen: @Sendable (_ old: Store) throws(CacheError) -> Store
  private let reopening = Lock(Reopening(), waits: true)
  @usableFromInline let keyCoder: KeyCoder<Key>
  @usableFromInline let valueCoder: ValueCoder<Value>
  /// The metadata of a value that was given none.
  let bareMetadata: [UInt8]
  let events: DiskEvents<Key, Value>
  let marks: TagMarks
  /// The tier in memory; `nil`: none, or one that follows.
  @usableFromInline let held: MemoryCache<TierKey<Key>, Value>?
  /// The tier in memory of a cache that follows another process. What else asks for `held` finds none there, and goes to
  /// the disk.
  @usableFromInline let following: FollowingTier<Key, Value>?
  let recency: TierRecency<Key, Value>?
  /// Whether `==` of keys may not agree with their bytes.
  @usableFromInline let comparesBytes: Bool

  private struct Reopening {
    /// Whether the thread that asks is to open another store.
    enum Answer { case done, isMine, isCircle }

    /// The thread that does.
    var thread: ThreadID?
    /// Whether the cache was closed. Then no other store takes the place of the one there is.
    var isClosed = false
    /// Those whose places were taken. They hold nothing, and are kept, since a call may be about to use one.
    var abandoned: [Store] = []
  }
  let streams = StreamEnds<CacheEvent<Key>>()
  var workers: WorkQueue { store.workers }
  /// By the bytes of keys.
  let flights: SingleFlight<[UInt8], Loaded<Value>?>
  /// What calls go by that load; `nil`: only fresh values, and no limits.
  @usableFromInline let loadPolicy: LoadPolicy?
  /// As it was opened.
  public let configuration: DiskCacheConfiguration
  /// The name it was opened with, or the last part of its path.
  public let name: String
  /// What was salvaged where the store was corrupt and the configuration wanted that; else `nil`.
  public let salvageReport: SalvageReport?

  /// The directory, as it was given, or made of the name.
  public var path: String { store.path }

  /// Opens one in environments of the caller's: for tests.
  ///
  /// - Parameter freshness: where it follows another process, when it sees what that writes; `nil`: it follows none.
  package init(
    path: String, name: String? = nil, configuration: DiskCacheConfiguration,
    keyCoder: KeyCoder<Key>, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    following freshness: Freshness? = nil,
    environment: Environment, memory: MemoryCacheEnvironment = .shared
  ) throws(CacheError) {
    var storeConfiguration = configuration.store
    let marks = TagMarks()
    let events = DiskEvents<Key, Value>(
      path: path, keyCoder: keyCoder, log: configuration.store.log, marks: marks,
      storeObserver: storeConfiguration.removalObserver)
    storeConfiguration.removalObserver = { event in events.noteRemoval(event) }
    if configuration.memory != nil, TierRecency<Key, Value>.knowsKeysByBytes(keyCoder) {
      storeConfiguration.isInUse = { events.recency.load()?.isInUse($0) ?? false }
    }
    storeConfiguration.reservedKey = ReservedKey.marks
    storeConfiguration.chore = { () throws(StoreError) in try marks.sweep() }
    // What it holds can be made again.
    storeConfiguration.evictsOnFullDisk = true
    let damageObserver = storeConfiguration.damageObserver
    storeConfiguration.damageObserver = { event in
      events.noteDamage(event)
      damageObserver?(event)
    }
    if freshness == nil, let place = CacheLocation.store(around: path, environment.fileSystem) {
      throw .insideStore(path: path, store: place)
    }
    self.configuration = configuration
    self.keyCoder = keyCoder
    self.valueCoder = valueCoder
    bareMetadata = CacheMetadata(tag: valueCoder.tag, rest: []).encoded
    self.events = events
    self.marks = marks
    self.name = name ?? path.split(separator: "/").last.map(String.init) ?? path
    let policy = configuration.corruptStorePolicy
    if let freshness {
      original = try callingStore { () throws(StoreError) in
        try Store(
          following: path, freshness: freshness, configuration: storeConfiguration,
          environment: environment)
      }
      salvageReport = nil
    } else {
      (original, salvageReport) = try Self.openStore(path, storeConfiguration, policy, environment)
    }
    comparesBytes = keyCoder.identity == .bytes
    flights = SingleFlight(
      clock: original.clock, background: memory.background, random: memory.random)
    loadPolicy = configuration.loadPolicy == .standard ? nil : configuration.loadPolicy
    if let tier = configuration.memory {
      var ofTier: (@Sendable (TierKey<Key>, Value) -> Int)?
      if let costing { ofTier = { key, value in costing(key.key, value) } }
      // Memory goes by the clock of the store, so it is made once that is open. What went from the store before that is
      // nothing to an empty tier.
      let held = MemoryCache<TierKey<Key>, Value>(
        configuration: tier.held(configuration), costing: ofTier, environment: memory,
        clockBelow: original.clock)
      if freshness == nil {
        self.held = held
        following = nil
        recency = events.recency.storeIfNil(
          TierRecency(memory: held, keyCoder: keyCoder, background: memory.background))
      } else {
        (self.held, recency) = (nil, nil)
        following = FollowingTier(held)
      }
    } else {
      (held, following, recency) = (nil, nil, nil)
    }
    reopen = { [storeConfiguration] old throws(CacheError) in
      try callingStore { () throws(StoreError) in
        try Directory.createParents(of: path, fileSystem: environment.fileSystem)
      }
      var configuration = storeConfiguration
      // One more, so that a load that begins in the new one can be told from one that began before.
      let version = old.lastVersion + 1
      configuration.precedingVersion = version
      configuration.clock = old.clock
      (configuration.countLimit, configuration.byteLimit) = old.limits
      return try Self.openStore(path, configuration, policy, environment).0
    }
    recency?.begin(original)
    if let held {
      marks.begin(
        telling: TagMarks.Memory(
          doubt: { held.doubt(through: $0) }, dropDoubtful: { held.dropDoubtful() }))
    }
    if freshness == nil { try loadMarks() } else { marks.follow(original) }
    if let loadPolicy { retain(loadPolicy) }
    if configuration.memory?.respondsToMemoryPressure == true { memory.pressureMonitor.add(self) }
  }

  /// The store under the cache.
  var store: Store {
    @inline(__always) get { replacement[0] ?? original }
  }

  /// Calls the store; what it throws becomes the cache's error. Where the store's directory was removed, it is made anew,
  /// and called once more.
  func storing<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result
  ) throws(CacheError) -> Result {
    do throws(StoreError) { return try body() } catch {
      guard case .vanished = error else { throw .store(error) }
    }
    try recreate()
    do throws(StoreError) { return try body() } catch { throw .store(error) }
  }

  /// What a read finds. As long as the store is the first, it is called without a reference of the thread's own, whose
  /// count all threads would share.
  func readingPinnedEntry(
    forKey key: RawSpan, part: Record.Part, isAccess: Bool
  ) throws(CacheError) -> PinnedEntry? {
    do throws(StoreError) {
      if replacement.isEmpty(0) {
        return try original.pinnedEntry(forKey: key, part: part, isAccess: isAccess)
      }
      return try store.pinnedEntry(forKey: key, part: part, isAccess: isAccess)
    } catch { throw .store(error) }
  }

  /// Opens another store where the one there was has noticed that its directory is gone. To observers and to memory
  /// that is a removal of all.
  func recreate() throws(CacheError) {
    let thread = ThreadID.current
    let answer = reopening.waitUntil { state -> Reopening.Answer? in
      if state.isClosed || !store.hasVanished { return .done }
      // The log of the configuration, which opening calls, may use the cache.
      if state.thread == thread { return .isCircle }
      if state.thread != nil { return nil }
      state.thread = thread
      return .isMine
    }
    switch answer {
    case .done: return
    case .isCircle: throw .store(.vanished(path: path))
    case .isMine: break
    }
    defer {
      reopening.withLock { $0.thread = nil }
      reopening.wakeAll()
    }
    let old = store
    let new = try reopen(old)
    // By the log of the configuration, which opening calls.
    if reopening.withLock({ $0.isClosed }) {
      _ = try? new.closeOnce()
      throw .store(.closed(path: path))
    }
    recency?.begin(new)
    marks.begin(new, after: old.lastVersion)
    reopening.withLock { state in
      state.abandoned.append(old)
      // They may be changed until here, under this lock.
      (new.lifetime, new.idleLimit) = (old.lifetime, old.idleLimit)
      new.retainExpired(for: flights.retained)
      replacement.set(0, to: new)
    }
    events.log(
      .warning, .recovery,
      "its directory was removed while it was open; what it held is lost, and it was made anew")
    old.abandon()
  }

  /// The lifetime of entries that later writes give none; `nil`: for ever. Existing entries keep theirs.
  ///
  /// The next open goes by its configuration again.
  public var lifetime: Duration? {
    get { store.lifetime }
    set {
      changeDefaults {
        store.lifetime = newValue
        held?.lifetime = newValue
      }
    }
  }

  /// The idle limit of entries that later writes give none; `nil`: for ever. Otherwise as `lifetime`.
  public var idleLimit: Duration? {
    get { store.idleLimit }
    set {
      changeDefaults {
        store.idleLimit = newValue
        held?.idleLimit = newValue
      }
    }
  }

  /// Changes what both tiers give an entry that asks for nothing. Of a write that may have got the one there and the
  /// other here, memory keeps nothing.
  private func changeDefaults(_ change: () -> Void) {
    reopening.withLock { _ in
      held?.clock.changes.add(1, ordering: .acquiringAndReleasing)
      change()
      held?.clock.changes.add(1, ordering: .acquiringAndReleasing)
    }
  }

  private static func openStore(
    _ path: String, _ configuration: StoreConfiguration, _ policy: CorruptStorePolicy,
    _ environment: Environment
  ) throws(CacheError) -> (Store, SalvageReport?) {
    func open() throws(StoreError) -> Store {
      let store = try Store(
        path: path, configuration: configuration, environment: environment, readOnly: false)
      if policy == .quarantine {
        // DURABILITY: a process that put the store in the place of a corrupt one may have died before
        // that was durable. What is written here must not be lost with its name.
        try Directory.synchronizeParent(of: path, fileSystem: environment.fileSystem)
      }
      return store
    }
    return try callingStore { () throws(StoreError) in
      do throws(StoreError) { return (try open(), nil) } catch {
        guard case .corrupt = error, policy == .quarantine else { throw error }
        let quarantine = StoreQuarantine(
          path: path, environment: environment, clock: configuration.clock,
          segmentByteLimit: configuration.segmentByteLimit, log: configuration.log)
        return try quarantine.recover(from: error, open: open)
      }
    }
  }

  // MARK: State

  /// How many keys a read would find, those with them whose records are damaged, and those that a removal by tag has left
  /// to the background: `statistics().sweepingTagCount` is 0 where there are none of these.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`, `system`.
  /// - Complexity: as `Store.count()`; `statistics().heldCount` is O(1) always.
  public func count() throws(CacheError) -> Int {
    try storing { () throws(StoreError) in max(0, try store.count() - marks.recordCount()) }
  }

  /// Whether a read would find no key; as `count()`.
  public var isEmpty: Bool { get throws(CacheError) { try count() == 0 } }

  /// The bytes of the log that are live: what the byte limit counts. Those of entries that have expired
  /// are among them until they are removed.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: as `statistics`.
  public func totalCost() throws(CacheError) -> Int {
    try storing { () throws(StoreError) in try store.usage().liveByteCount }
  }

  /// What the cache has done, and what it holds. `storeStatistics` tells more of the files.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), which are of 64 MiB; no system call.
  public func statistics() throws(CacheError) -> DiskCacheStatistics {
    let usage = try storing { () throws(StoreError) in try store.usage() }
    let (table, record) = try storing { () throws(StoreError) in try marks.current() }
    var statistics = events.counters.statistics
    statistics.heldCount = max(0, usage.indexedKeyCount - (record == nil ? 0 : 1))
    statistics.sweepingTagCount = table.count
    statistics.liveByteCount = usage.liveByteCount
    statistics.deadByteCount = usage.deadByteCount
    statistics.allocatedByteCount = usage.allocatedByteCount
    statistics.pinnedByteCount = usage.pinnedByteCount
    statistics.memory = heldCache?.statistics()
    statistics.hitCount += statistics.memory?.hitCount ?? 0
    statistics.loads = loadStatistics
    return statistics
  }

  /// The state of the store under the cache: its segments, the version of its format, what the last open
  /// did.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), with a system call for each.
  public func storeStatistics() throws(CacheError) -> StoreStatistics {
    try storing { () throws(StoreError) in try store.statistics() }
  }

  /// Makes every write durable that was acknowledged before, marks the store clean and gives its lock up.
  /// Every later call throws `closed`; a second `close` does nothing. Streams of events end.
  ///
  /// Loads that nobody waits for are cancelled, and nothing that they bring is kept; none is begun any more.
  ///
  /// Nothing acknowledged is lost without it, but the next open takes longer.
  ///
  /// - Throws: as `Store.close()`. It is closed all the same.
  public func close() throws(CacheError) {
    SharedCaches.beginClosing(self)
    flights.close()
    recency?.tell()
    // Of several that close it at once, one closes the store, and may still be doing that when others return.
    var hasEnded = true
    defer {
      // What is under way cannot put anything in any more: its tickets are void.
      heldCache?.removeAll(cause: .evicted(.trim), isToldOfNothing: false)
      if hasEnded {
        streams.end()
        SharedCaches.endClosing(self)
      }
    }
    let thread = ThreadID.current
    reopening.waitUntil { state -> Void? in
      if state.thread != nil, state.thread != thread { return nil }
      state.isClosed = true
      return ()
    }
    do throws(StoreError) { hasEnded = try store.closeOnce() } catch { throw .store(error) }
  }

  /// Closes the store, if `close` was not called. Errors go to the log: call `close` to have them thrown.
  deinit {
    recency?.tell()
    store.closeAtEnd()
    marks.end()
    streams.end()
    SharedCaches.endClosing(self)
  }
}

extension DiskCache: CustomStringConvertible {
  /// The name and the path.
  public var description: String { "DiskCache \(name) at \(path)" }
}
