internal import CairnStore

/// A cache in memory: a dictionary with limits, which forgets what was not used for longest, what has
/// expired, and what there is no memory for.
///
///     var configuration = MemoryCacheConfiguration(countLimit: 10_000, costLimit: 64 << 20)
///     configuration.idleLimit = .seconds(600)
///     let cache = MemoryCache<String, [UInt8]>(configuration: configuration)
///     cache["greeting"] = Array("hello".utf8)
///     cache.setValue(page, forKey: url, lifetime: .seconds(60))
///
/// Its limits are hard: they hold whenever a call returns. Expiry is looked at with every read. All
/// methods may be called from any thread, take effect at one moment under one lock, and are as fast as a
/// dictionary under a lock, so they are synchronous and fit async code as they are.
///
/// Values are destroyed, observers called and closures run outside the lock, so all of them may use the
/// cache. What a key's `==` does runs under it, and must not.
///
/// The structure is the one that YYCache made known, a dictionary and a doubly linked list, over a slab of
/// slots that refer to each other by number, so that a hit counts no references but the value's.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let lock: CacheLock<MemoryState<Key, Value>>
  @usableFromInline let clock: CacheClock
  @usableFromInline let costing: (@Sendable (Key, Value) -> Int)?
  /// What values cost whose bytes are known, if no closure says.
  @usableFromInline let byteCosting: (@Sendable (Value) -> Int)?
  /// Whether removing what has expired is to be asked for.
  @usableFromInline let schedulesMaintenance: Bool
  /// How long after it was asked for; `nil`: never.
  let maintenanceInterval: Duration?
  /// As it was made, but for the limits and defaults, which may have changed since.
  let configuration: MemoryCacheConfiguration
  let environment: MemoryCacheEnvironment
  @usableFromInline let flights: SingleFlight<Key, Loaded<Value>?>
  /// What calls go by that load; `nil`: only fresh values, and no limits.
  @usableFromInline let loadPolicy: LoadPolicy?

  /// Makes an empty cache.
  ///
  /// - Parameters:
  ///   - configuration: the limits, and the other options.
  ///   - costing: what a value costs that is set without a cost, in the unit of the cost limit; called
  ///     outside the lock; below 0 is as 0. `nil`: its bytes, where values are `[UInt8]`, `String`, `Data` or another
  ///     `ByteSource`; else nothing.
  public convenience init(
    configuration: MemoryCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) {
    self.init(configuration: configuration, costing: costing, environment: .shared)
  }

  /// Makes one in an environment of the caller's: for tests, and for the memory tier of a cache on disk.
  ///
  /// - Parameter clockBelow: the clock of the tier below, where it holds a part of one.
  package init(
    configuration: MemoryCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    environment: MemoryCacheEnvironment, clockBelow: StoreClock? = nil
  ) {
    self.configuration = configuration
    self.environment = environment
    self.costing = costing
    byteCosting = costing == nil ? makeByteCosting() : nil
    clock = CacheClock(configuration, shared: clockBelow)
    flights = SingleFlight(
      clock: clock.source, background: environment.background, random: environment.random)
    loadPolicy = configuration.loadPolicy == .standard ? nil : configuration.loadPolicy
    // A timer that is due at once would do nothing else.
    maintenanceInterval = configuration.maintenanceInterval.flatMap {
      $0 > .zero ? max($0, .milliseconds(10)) : nil
    }
    schedulesMaintenance = maintenanceInterval != nil
    lock = CacheLock(
      MemoryState(
        countLimit: configuration.countLimit, costLimit: configuration.costLimit,
        policy: configuration.policy, isAboveOther: clockBelow != nil))
    if let loadPolicy { retain(loadPolicy) }
    if configuration.respondsToMemoryPressure { environment.pressureMonitor.add(self) }
  }

  /// Has what it holds destroyed where the configuration wants it. Observers are told nothing.
  deinit {
    var garbage = MemoryTable<Key, Value>()
    lock.withLock { swap(&garbage, &$0.table) }
    release(garbage)
  }

  // MARK: State

  /// Whether a read would find no key; as `count()`.
  public var isEmpty: Bool { count() == 0 }

  /// How many keys a read would find.
  ///
  /// - Complexity: O(1), and O(log n) for each entry that has expired since the last call, which is
  ///   removed; O(1) for each that a `LoadPolicy` keeps for stale reads.
  public func count() -> Int {
    removeUnretained()
    let now = clock.now()
    return lock.withLock { $0.found(at: now).count }
  }

  /// What all entries cost together that a read would find, or the greatest number where it is more.
  ///
  /// - Complexity: as `count`.
  public func totalCost() -> Int {
    removeUnretained()
    let now = clock.now()
    return lock.withLock { Int(clamping: $0.found(at: now).cost) }
  }

  /// What the cache has done, and what it holds.
  ///
  /// - Complexity: O(1).
  public func statistics() -> MemoryCacheStatistics {
    lock.withLock { state in
      var statistics = state.statistics
      statistics.heldCount = state.table.count
      statistics.heldCost = Int(clamping: state.table.totalCost)
      statistics.overheadByteCount = state.table.byteCount
      return statistics
    }
  }

  /// How many entries there may be; `nil`: any number. Where it becomes lower, entries go before the
  /// call returns.
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

  /// How much all entries may cost together; `nil`: any amount; below 0 is as 0. Where it becomes lower,
  /// entries go before the call returns.
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

  /// How long an entry lives that is written from now on without a lifetime; `nil`: for ever. Entries that are there
  /// keep theirs.
  public var lifetime: Duration? {
    get { clock.lifetime }
    set { clock.lifetime = newValue }
  }

  /// How long an entry may go unread and unwritten that is written from now on without an idle limit; `nil`: for
  /// ever. Entries that are there keep theirs.
  public var idleLimit: Duration? {
    get { clock.idleLimit }
    set { clock.idleLimit = newValue }
  }

  /// What a value costs that is set without a cost.
  @inlinable
  @inline(__always)
  func defaultCost(of value: Value, forKey key: Key) -> Int {
    knownCost(of: value, forKey: key) ?? 0
  }

  /// What `costing` says of a value, or else its bytes; `nil` where these are not known.
  @inlinable
  @inline(__always)
  func knownCost(of value: Value, forKey key: Key) -> Int? {
    if let costing { return costing(key, value) }
    guard let byteCosting else { return nil }
    // In code that is specialised for them these casts are none, and the call is 50 ns when measured.
    if let bytes = value as? [UInt8] { return bytes.count }
    if let text = value as? String { return text.utf8.count }
    return byteCosting(value)
  }

  // MARK: After the lock

  /// Tells observers of what one hold of the lock did, and destroys the values that went.
  @inlinable
  @inline(__always)
  func deliver(
    _ removed: consuming RemovedEntries<Key, Value>, inserted: (key: Key, value: Value)? = nil,
    to observers: [CacheObserver<Key, Value>]
  ) {
    // A value that went alone is destroyed where its last reference ends: here, in the caller.
    if observers.isEmpty && removed.others.isEmpty && !configurationReleasesElsewhere { return }
    deliverSlowly(removed, inserted: inserted, to: observers)
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
      // First what went from the key itself, then what is there now, then what had to make room.
      var isTold = inserted == nil
      removed.forEach { entry in
        if !isTold, let inserted, entry.key != inserted.key {
          tell(.inserted(key: inserted.key), inserted.value)
          isTold = true
        }
        // A removal is told of after its insertion only, as if the value had been held for a moment.
        if entry.isRefused { tell(.inserted(key: entry.key), entry.value) }
        tell(.removed(key: entry.key, cause: entry.cause), entry.value)
      }
      if !isTold, let inserted { tell(.inserted(key: inserted.key), inserted.value) }
    }
    release(removed)
  }

  private func release(_ removed: consuming RemovedEntries<Key, Value>) {
    let count = removed.count
    if destroysHere(count: count) { return }
    let crate = Crate(removed)
    destroyElsewhere { crate.empty() }
  }

  /// Has a table destroyed that was taken out.
  func release(_ table: consuming MemoryTable<Key, Value>) {
    let count = table.count
    if destroysHere(count: count) { return }
    let crate = Crate(table)
    destroyElsewhere { crate.empty() }
  }

  /// Whether so many values are destroyed on this thread.
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

/// What values cost whose bytes are known; `nil` where they are not.
private func makeByteCosting<Value>() -> (@Sendable (Value) -> Int)? {
  func costing<Bytes: ByteSource & SendableMetatype>(
    _ type: Bytes.Type
  ) -> @Sendable (Value) -> Int {
    { value in (value as? Bytes).map { $0.withBytes { $0.byteCount } } ?? 0 }
  }
  guard let type = Value.self as? any (ByteSource & SendableMetatype).Type else { return nil }
  return costing(type)
}

extension MemoryCache: CustomStringConvertible {
  /// How many entries it holds, and what they cost.
  public var description: String {
    let statistics = statistics()
    return "MemoryCache with \(DisplayText.count(statistics.heldCount, "entry", "entries")), cost "
      + DisplayText.count(statistics.heldCost)
  }
}
