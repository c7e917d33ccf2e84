public import CairnStore
internal import Synchronization

/// A cache on disk, with or without a memory tier: typed keys and values over a `Store`.
///
///     var configuration = DiskCacheConfiguration(byteLimit: 1 << 30)
///     configuration.memory = MemoryConfiguration(costLimit: 64 << 20)
///     configuration.lifetime = .seconds(86_400)
///     let cache = try DiskCache<String, Page>.open(.name("pages"), configuration: configuration)
///     try cache.setValue(page, forKey: url)
///     let page = try cache.value(forKey: url)
///
/// The contents survive a restart. The limits are hard: they hold whenever a write returns, and the
/// least recently used entries go first. Every read checks expiry, and no read writes to disk. If a
/// value fails its checksum, reads of its key throw. They never return a wrong value or a miss.
///
/// With a memory tier, the disk holds every entry, and memory holds some of them. A write goes to
/// disk first and then to memory. A read that finds nothing in memory reads the disk and keeps the
/// value in memory, so a value from disk is decoded once. An entry that leaves the disk leaves
/// memory too. An entry that memory evicts stays on disk. Both tiers compare keys by their bytes:
/// two strings that are equal in Swift but differ in their UTF-8 are two keys. For values that the
/// disk must not have, use a ``MemoryCache`` beside the cache.
///
/// No read returns an older value than an earlier read returned or a completed write stored. If a
/// write throws, nothing was written, and the old value stays. There are two exceptions. After
/// `durabilityUnknown`, the new value may be on disk, and reads may show it. After `poisoned` or
/// `vanished`, the disk takes no more writes until the cache is opened again: if the disk has no
/// value for the key, the memory tier keeps the one that was set or loaded, until its lifetime ends.
/// `value`, `contains`, `peekValue` and loads find it; other calls look at the disk alone. A removal
/// takes such a value out of memory, also if it throws. `statistics().isMemoryOnly` tells of this
/// state.
///
/// All methods are safe to call from any thread, and each takes effect at one moment. Reads are
/// synchronous. If the value is in memory or in the page cache, a read takes less time than a
/// change of thread, so call it directly from async code. Writes and long operations have a
/// synchronous form and an async form: in async code, use `try await`. `perform` runs any other
/// work. Coders and observers run with no lock held and may use the cache.
///
/// On disk, cost means bytes, as in `StoreStatistics.liveByteCount`. The `cost` given to a value
/// counts only in memory. The disk stores it for when the value returns to memory.
public final class DiskCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  // Inlinable code is specialised for its types at the call site. There, closures pass on the keys
  // and values. All other code is here and sees only bytes.
  let store: Store
  @usableFromInline let keyCoder: KeyCoder<Key>
  @usableFromInline let valueCoder: ValueCoder<Value>
  /// The metadata of a value that was set without any.
  let bareMetadata: [UInt8]
  let events: DiskEvents<Key, Value>
  let marks: TagMarks
  /// The memory tier, if there is one.
  @usableFromInline let held: MemoryCache<TierKey<Key>, TierValue<Value>>?
  /// Computes the costs of values in memory.
  @usableFromInline let costing: ValueCosting<Key, Value>
  @usableFromInline let process = ProcessMark()
  /// Whether `==` of keys may disagree with their bytes.
  @usableFromInline let comparesBytes: Bool
  let streams = StreamEnds<CacheEvent<Key>>()
  let calls: CallTimes
  var workers: WorkQueue { store.workers }
  /// Keyed by the bytes of keys.
  @usableFromInline let flights: SingleFlight<[UInt8], Loaded<Value>?>
  /// The policy of calls that load. `nil` means only fresh values, and no limits.
  @usableFromInline let loadPolicy: LoadPolicy?
  /// The configuration that the cache was opened with. Later changes of limits and defaults do not
  /// appear in it.
  public let configuration: DiskCacheConfiguration
  /// The name that the cache was opened with, or the last part of its path.
  public let name: String
  /// Where the open moved a corrupt store, if it found one and `quarantinesCorruptStores` is set.
  /// Otherwise `nil`.
  public let quarantinePath: String?

  /// The cache's directory.
  public var path: String { store.path }

  /// Opens a cache in environments that the caller supplies: for tests.
  ///
  /// - Parameter freshness: when a following cache sees the writer's changes, or `nil` if it
  ///   follows none.
  package init(
    path: String, name: String? = nil, configuration: DiskCacheConfiguration,
    keyCoder: KeyCoder<Key>, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    following freshness: Freshness? = nil,
    environment: Environment, memory: MemoryCacheEnvironment = .system()
  ) throws(StoreError) {
    var storeConfiguration = configuration.store
    let marks = TagMarks()
    let events = DiskEvents<Key, Value>(
      path: path, keyCoder: keyCoder, log: configuration.store.log, marks: marks,
      storeObserver: storeConfiguration.removalObserver)
    storeConfiguration.removalObserver = { event in events.noteRemoval(event) }
    storeConfiguration.reservedKey = ReservedKey.marks
    storeConfiguration.chore = { () throws(StoreError) in try marks.sweep() }
    // The contents of a cache can be recreated.
    storeConfiguration.isOfCache = true
    let damageObserver = storeConfiguration.damageObserver
    storeConfiguration.damageObserver = { event in
      events.noteDamage(event)
      damageObserver?(event)
    }
    if freshness == nil, let place = CacheLocation.store(around: path, environment.fileSystem) {
      throw .inside(place, path)
    }
    self.configuration = configuration
    self.keyCoder = keyCoder
    self.valueCoder = valueCoder
    bareMetadata = CacheMetadata(tag: valueCoder.tag, rest: []).encoded
    self.events = events
    self.marks = marks
    self.name = name ?? path.split(separator: "/").last.map(String.init) ?? path
    if let freshness {
      store = try Store(
        following: path, freshness: freshness, configuration: storeConfiguration,
        environment: environment)
      quarantinePath = nil
    } else {
      let quarantine = StoreQuarantine(
        path: path, fileSystem: environment.fileSystem, configuration: storeConfiguration)
      func open() throws(StoreError) -> Store {
        try Store(
          path: path, configuration: storeConfiguration, environment: environment, readOnly: false)
      }
      (store, quarantinePath) =
        configuration.quarantinesCorruptStores
        ? try quarantine.open(open) : (try open(), nil)
    }
    comparesBytes = keyCoder.comparesBytes
    calls = CallTimes(
      threshold: configuration.slowCallThreshold, log: configuration.store.log, path: path)
    flights = SingleFlight(
      clock: store.clock, timers: memory.timers, background: memory.background,
      random: memory.random,
      noteLoad: { [calls] in calls.noteLoad($0) })
    loadPolicy = configuration.loadPolicy == .standard ? nil : configuration.loadPolicy
    self.costing = ValueCosting(costing)
    // Memory uses the store's clock, so it is made once the store is open. Removals from the store
    // before that do not concern it, because it is empty.
    let clock = store.clock
    held = configuration.memory.map {
      MemoryCache(configuration: $0.held(configuration), environment: memory, clockBelow: clock)
    }
    if let held { _ = events.tier.storeIfNil(TierHints(held, store.keyHash)) }
    if freshness == nil { try loadMarks() } else { marks.follow(store) }
    if let loadPolicy { retain(loadPolicy) }
    if configuration.memory?.respondsToMemoryPressure == true {
      memory.pressureMonitor.add(self, on: memory.background)
    }
  }

  /// The number of keys on disk that have not expired. Includes keys whose records are damaged.
  /// Also includes entries of removed tags until they are removed in the background: there are none
  /// if `sweepingTags` of `statistics()` is 0.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`.
  /// - Complexity: the same as `Store.count()`.
  public func count() throws(StoreError) -> Int {
    max(0, try store.count() - marks.recordCount())
  }

  /// The live bytes on disk, which the byte limit counts. Includes expired entries until they are
  /// removed.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: the same as `statistics()`.
  public func totalCost() throws(StoreError) -> Int {
    try store.usage().liveByteCount
  }

  /// Counts of the cache's operations, and its current size. `storeStatistics()` says more about
  /// the files.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), without a system call.
  public func statistics() throws(StoreError) -> CacheStatistics {
    let usage = try store.usage()
    let (table, record) = try marks.current()
    let gauges = [
      ("count", max(0, usage.indexedKeyCount - (record == nil ? 0 : 1))),
      ("memoryOnly", store.isStopped ? 1 : 0), ("sweepingTags", table.count),
      ("liveBytes", usage.liveByteCount), ("deadBytes", usage.deadByteCount),
      ("allocatedBytes", usage.allocatedByteCount), ("pinnedBytes", usage.pinnedByteCount),
    ].map { Metric($0.0, $0.1, isCounter: false) }
    let memory = held?.tierMetrics() ?? []
    let counters = events.counters.metrics(memoryHitCount: memory.first?.value ?? 0)
    var statistics = CacheStatistics(counters + gauges, memory: memory, loads: flights.counts)
    (statistics.readDurations, statistics.writeDurations) = calls.durations
    return statistics
  }

  /// The state of the cache's store: its segments, the version of its format, and the result of the
  /// last open.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), with a system call for each.
  public func storeStatistics() throws(StoreError) -> StoreStatistics {
    try store.statistics()
  }

  /// Makes every acknowledged write durable, marks the store clean and releases its lock. Later
  /// calls throw `closed`, but a second `close` does nothing. Event streams end.
  ///
  /// Cancels background loads, whose values are then not kept. Loads that callers wait for
  /// continue.
  ///
  /// If you do not close the cache, no acknowledged write is lost, but the next open takes longer.
  ///
  /// - Throws: see `Store.close()`. The cache is closed even if the call throws.
  public func close() throws(StoreError) {
    try checkProcess()
    SharedCaches.beginClosing(self)
    flights.close()
    // If calls overlap, one closes the store. It may still be closing it when the others return.
    var hasEnded = true
    defer {
      held?.removeAll(cause: .evicted(.trim), isToldOfNothing: false)
      if hasEnded {
        streams.end()
        SharedCaches.endClosing(self)
      }
    }
    hasEnded = try store.closeOnce()
  }

  /// Closes the store if `close` was not called. Errors go to the log, whereas `close` throws them.
  deinit {
    if process.isForeign { return }
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
