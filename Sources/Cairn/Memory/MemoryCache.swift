internal import CairnStore

/// A cache in memory: a dictionary with limits. It drops entries when it exceeds its limits, when
/// they expire, and when memory is short.
///
///     var configuration = MemoryConfiguration(countLimit: 10_000, costLimit: 64 << 20)
///     configuration.idleLimit = .seconds(600)
///     let cache = MemoryCache<String, [UInt8]>(configuration: configuration)
///     cache["greeting"] = Array("hello".utf8)
///     cache.setValue(page, forKey: url, lifetime: .seconds(60))
///
/// The limits are hard: they hold whenever a call returns. Every read checks expiry. All methods
/// are safe to call from any thread, and each takes effect at one moment. Reads and writes usually
/// take less than a microsecond, so the cache has no async forms. Hits on several threads run in
/// parallel.
///
/// The cache destroys values, calls observers and runs closures outside its lock, so all of these
/// may use the cache. But a key's `==` runs under the lock and must not use the cache.
///
/// The structure is a dictionary and a doubly linked list, as in YYCache. Both refer to slots by
/// number, so a hit retains nothing but the value.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let lock: CacheLock<MemoryState<Key, Value>>
  @usableFromInline let clock: CacheClock
  @usableFromInline let costing: ValueCosting<Key, Value>
  /// Whether to schedule the removal of expired entries.
  @usableFromInline let schedulesMaintenance: Bool
  /// The delay of a scheduled removal, or `nil` for never.
  let maintenanceInterval: Duration?
  /// The configuration at creation. Limits and defaults may have changed since.
  let configuration: MemoryConfiguration
  let environment: MemoryCacheEnvironment
  @usableFromInline let flights: SingleFlight<Key, Loaded<Value>?>
  /// The policy of calls that load. `nil` means only fresh values, and no time limits.
  @usableFromInline let loadPolicy: LoadPolicy?

  /// Makes an empty cache.
  ///
  /// - Parameters:
  ///   - configuration: the limits, and the other options.
  ///   - costing: computes the cost of a value that is set without one, in the unit of the cost
  ///     limit. Called outside the lock. A negative cost counts as 0. With `nil`, the cost is the
  ///     value's size in bytes if values are `[UInt8]`, `String`, `Data` or another `ByteSource`,
  ///     and otherwise 0.
  public convenience init(
    configuration: MemoryConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) {
    self.init(configuration: configuration, costing: costing, environment: .system())
  }

  /// Makes a cache in an environment that the caller supplies: for tests, and for the memory tier
  /// of a cache on disk.
  ///
  /// - Parameter clockBelow: the clock of the tier below, if there is one.
  package init(
    configuration: MemoryConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    environment: MemoryCacheEnvironment, clockBelow: StoreClock? = nil
  ) {
    self.configuration = configuration
    self.environment = environment
    self.costing = ValueCosting(costing)
    clock = CacheClock(configuration, shared: clockBelow)
    flights = SingleFlight(
      clock: clock.source, timers: environment.timers, background: environment.background,
      random: environment.random)
    loadPolicy = configuration.loadPolicy == .standard ? nil : configuration.loadPolicy
    // A timer that is always due would keep a thread busy.
    maintenanceInterval = configuration.maintenanceInterval.flatMap {
      $0 > .zero ? max($0, .milliseconds(10)) : nil
    }
    schedulesMaintenance = maintenanceInterval != nil
    lock = CacheLock(
      MemoryState(
        countLimit: configuration.countLimit, costLimit: configuration.costLimit,
        policy: configuration.policy),
      sharing: configuration.policy == .leastRecentlyUsed ? .afterWaiting : .afterReading)
    if let loadPolicy { retain(loadPolicy) }
    if configuration.respondsToMemoryPressure {
      environment.pressureMonitor.add(self, on: environment.background)
    }
  }

  /// Destroys the values where the configured `release` specifies. Observers receive no events.
  deinit {
    var garbage = MemoryTable<Key, Value>()
    lock.withLock { swap(&garbage, &$0.table) }
    release(garbage)
  }

  // MARK: State

  /// The number of keys that a read would find.
  ///
  /// - Complexity: O(1), plus O(log n) for each expired entry that the call removes, plus O(1) for
  ///   each expired entry that a `LoadPolicy` keeps.
  public func count() -> Int {
    removeUnretained()
    let now = clock.now()
    return lock.withLock { $0.found(at: now).count }
  }

  /// The total cost of all entries that a read would find, at most `Int.max`.
  ///
  /// - Complexity: the same as `count()`.
  public func totalCost() -> Int {
    removeUnretained()
    let now = clock.now()
    return lock.withLock { Int(clamping: $0.found(at: now).cost) }
  }

  /// Counts of the cache's operations, and its current size.
  ///
  /// - Complexity: O(1).
  public func statistics() -> CacheStatistics {
    CacheStatistics(tierMetrics(), loads: flights.counts)
  }

  /// The cache's numbers, except those of loads.
  func tierMetrics() -> [Metric] {
    let (counts, count, cost, overhead) = lock.withLock { state in
      var counts = state.statistics
      let hitCount = counts.hitCount &+ lock.readers.hitCount
      state.shownHitCount = max(
        state.shownHitCount, hitCount - min(hitCount, state.takenBackCount))
      counts.hitCount = state.shownHitCount
      let cost = Int(clamping: state.table.totalCost)
      return (counts, state.table.count, cost, state.table.byteCount)
    }
    return counts.metrics + [
      Metric("count", count, isCounter: false), Metric("cost", cost, isCounter: false),
      Metric("overheadBytes", overhead, isCounter: false),
    ]
  }

  /// The maximum number of entries, or `nil` for no limit. Lowering the limit evicts entries at
  /// once.
  public var countLimit: Int? {
    get { lock.withLock { $0.countLimit == .max ? nil : $0.countLimit } }
    set {
      lock.withLock { state in
        state.countLimit = max(0, newValue ?? .max)
        state.table.list.isFilling = true
      }
      keepLimits()
    }
  }

  /// The maximum total cost of all entries, or `nil` for no limit. A negative limit means 0.
  /// Lowering the limit evicts entries at once.
  public var costLimit: Int? {
    get { lock.withLock { $0.costLimit == .max ? nil : Int(clamping: $0.costLimit) } }
    set {
      lock.withLock { state in
        state.costLimit = newValue.map { UInt128(max(0, $0)) } ?? .max
        state.table.list.isFilling = true
      }
      keepLimits()
    }
  }

  /// The cost of a value set without one.
  @inlinable
  @inline(__always)
  func defaultCost(of value: Value, forKey key: Key) -> Int {
    costing.cost(of: value, forKey: key) ?? 0
  }

  // MARK: After the lock

  /// Reports the changes made under one hold of the lock to observers, and destroys the removed
  /// values.
  @inlinable
  @inline(__always)
  func deliver(
    _ removed: consuming RemovedEntries<Key, Value>,
    inserted: @autoclosure () -> (key: Key, value: Value)? = nil,
    to observers: [CacheObserver<Key, Value>]
  ) {
    // A single removed value is destroyed with its last reference: here, in the caller.
    if observers.isEmpty && removed.others.isEmpty && !configurationReleasesElsewhere { return }
    deliverSlowly(removed, inserted: inserted(), to: observers)
  }

  @usableFromInline
  var configurationReleasesElsewhere: Bool {
    if case .on = configuration.release { true } else { false }
  }

  @usableFromInline
  func deliverSlowly(
    _ removed: consuming RemovedEntries<Key, Value>, inserted: (key: Key, value: Value)?,
    to observers: [CacheObserver<Key, Value>]
  ) {
    if !observers.isEmpty {
      func tell(_ event: CacheEvent<Key>, _ value: Value?) {
        for observer in observers { observer.body(event, value) }
      }
      // Report the removal of the key's old value, then the new value, then evictions.
      var isTold = inserted == nil
      removed.forEach { entry in
        if !isTold, let inserted, entry.key != inserted.key {
          tell(.inserted(key: inserted.key), inserted.value)
          isTold = true
        }
        // Report the insertion before the removal, as if the cache had held the value for a moment.
        if entry.isRefused { tell(.inserted(key: entry.key), entry.value) }
        tell(.removed(key: entry.key, cause: entry.cause), entry.value)
      }
      if !isTold, let inserted { tell(.inserted(key: inserted.key), inserted.value) }
    }
    let isCutShort = removed.count >= MemoryState<Key, Value>.mostRemoved
    release(removed)
    if isCutShort, let inserted { keepLimits(sparing: inserted.key) }
  }

  private func release(_ removed: consuming RemovedEntries<Key, Value>) {
    let count = removed.count
    if destroysHere(count: count) { return }
    let crate = Crate(removed)
    destroyElsewhere { crate.empty() }
  }

  /// Destroys a detached table.
  func release(_ table: consuming MemoryTable<Key, Value>) {
    let count = table.count
    if destroysHere(count: count) { return }
    let crate = Crate(table)
    destroyElsewhere { crate.empty() }
  }

  /// Whether to destroy this many values on this thread.
  private func destroysHere(count: Int) -> Bool {
    switch configuration.release {
    case .onCaller: true
    case .automatic: count < 16
    case .on: count == 0
    }
  }

  private func destroyElsewhere(_ job: @escaping @Sendable () -> Void) {
    if case .on(let run) = configuration.release {
      run(job)
    } else {
      // No lock is held here.
      if !environment.background.runIfPossible(job) { job() }
    }
  }
}

extension MemoryCache: CustomStringConvertible {
  /// The number of entries and their cost.
  public var description: String {
    let statistics = statistics()
    return "MemoryCache with \(DisplayText.count(statistics.count, "entry", "entries")), cost "
      + DisplayText.count(statistics.cost)
  }
}
