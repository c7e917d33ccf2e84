internal import CairnStore
internal import Synchronization

/// The observers and counters of a cache on disk.
///
/// A write of a value returns its removals to the cache, which reports them here. The store reports
/// all other removals. A separate object, because it must exist before the store, which needs it.
final class DiskEvents<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// - Parameter version: the version of the inserted or removed value. For a removal of all, the
  ///   last removed version. For damage and failed loads, 0.
  typealias Body = @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void

  private struct State: Sendable {
    var observers: [(id: UInt64, body: Body)] = []
    var lastID: UInt64 = 0
  }

  /// A value that a write inserted.
  struct Insertion {
    var key: Key
    /// The key's bytes.
    var bytes: [UInt8]
    var version: UInt64
  }

  let counters = DiskCounters()
  private let keyCoder: KeyCoder<Key>
  private let diagnostics: DiagnosticLog
  private let marks: TagMarks
  /// The location of the cache, for the log.
  private let path: String
  /// The observer from the store's configuration. Called after the cache's observers.
  private let storeObserver: (@Sendable (RemovalEvent) -> Void)?
  /// The memory tier, which is updated before observers are called. Set after the store is opened.
  let tier = AtomicLazyReference<TierHints<Key, Value>>()
  private let state = Lock(State())
  /// Lets calls skip decoding and locking if there are no observers.
  let isObserved = Atomic(false)
  /// What the store reports on threads that must not call an observer yet.
  private let heldBack = Lock<[(thread: ThreadID, events: [RemovalEvent])]>([])
  private let isHoldingBack = Atomic(0)
  /// The number of values that only memory keeps, because the disk takes no more writes.
  let keptCount = Atomic<UInt64>(0)
  /// Whether the disk had room for the last loaded value, if known.
  let hasRoom = Atomic(true)
  /// Whether a loaded value has found that the disk takes no more writes.
  let hasStopped = Atomic(false)

  init(
    path: String, keyCoder: KeyCoder<Key>, log: DiagnosticLog, marks: TagMarks,
    storeObserver: (@Sendable (RemovalEvent) -> Void)?
  ) {
    self.path = path
    self.keyCoder = keyCoder
    diagnostics = log
    self.marks = marks
    self.storeObserver = storeObserver
  }

  /// Logs a message. Call with no lock held, because the log may use the cache.
  func log(
    _ level: DiagnosticLog.Level, _ category: DiagnosticLog.Category,
    _ text: @autoclosure () -> String
  ) { diagnostics(level, category, path: path, text()) }

  func add(_ body: @escaping Body) -> CacheObservation {
    let id = state.withLock { state in
      state.lastID += 1
      state.observers.append((state.lastID, body))
      isObserved.store(true, ordering: .relaxed)
      return state.lastID
    }
    return CacheObservation { [weak self] in self?.cancel(id) }
  }

  private func cancel(_ id: UInt64) {
    let observers = state.withLock { state in
      defer {
        state.observers.removeAll { $0.id == id }
        isObserved.store(!state.observers.isEmpty, ordering: .relaxed)
      }
      return state.observers
    }
    // Release the observer's closure, and everything it refers to, outside the lock.
    withExtendedLifetime(observers) {}
  }

  private func tell(_ event: CacheEvent<Key>, _ version: UInt64) {
    for observer in state.withLock({ $0.observers }) { observer.body(event, version) }
  }

  /// Call after a write, once memory is updated. For each key, reports the removal of its old value
  /// and then the insertion. Then reports the evictions to make room. The store lists these
  /// evictions before the new version is known, so this method restores the order.
  func settle(_ insertions: [Insertion], after removals: [RemovalEvent]) {
    counters.insertions.add(insertions.count)
    for removal in removals { count(removal) }
    if isObserved.load(ordering: .relaxed) { tell(insertions, after: removals) }
    if let storeObserver { for removal in removals { storeObserver(removal) } }
  }

  /// Like the form above, for one value. Copies the key's bytes only for observers.
  func settle(
    _ key: Key, _ bytes: RawSpan, version: UInt64, replacing replaced: PendingWrite.Replacement?,
    after removals: [RemovalEvent]
  ) {
    counters.insertions.add()
    if let replaced { counters.note(replaced.cause) }
    for removal in removals { count(removal) }
    if isObserved.load(ordering: .relaxed) || storeObserver != nil {
      tell(key, bytes, version: version, replacing: replaced, after: removals)
    }
  }

  // A separate function, because the type of the array would be looked up wherever this is inlined.
  @inline(never)
  private func tell(
    _ key: Key, _ bytes: RawSpan, version: UInt64, replacing replaced: PendingWrite.Replacement?,
    after removals: [RemovalEvent]
  ) {
    var removals = removals
    replaced?.add(to: &removals, ofKey: bytes)
    if isObserved.load(ordering: .relaxed) {
      tell(
        [Insertion(key: key, bytes: [UInt8](copying: bytes), version: version)], after: removals)
    }
    if let storeObserver { for removal in removals { storeObserver(removal) } }
  }

  private func tell(_ insertions: [Insertion], after removals: [RemovalEvent]) {
    var versions: [[UInt8]: UInt64] = [:]
    if !removals.isEmpty {
      for insertion in insertions { versions[insertion.bytes] = insertion.version }
    }
    var replaced: [[UInt8]: [RemovalEvent]] = [:]
    var others: [RemovalEvent] = []
    for removal in removals {
      if case .entry(let bytes, let version, _) = removal, version < versions[bytes] ?? 0 {
        replaced[bytes, default: []].append(removal)
      } else {
        others.append(removal)
      }
    }
    for insertion in insertions {
      for removal in replaced[insertion.bytes] ?? [] { tell(removal) }
      tell(.inserted(key: insertion.key), insertion.version)
    }
    for removal in others { tell(removal) }
  }

  /// The store reports removals here, except those that writes of values return.
  func noteRemoval(_ event: RemovalEvent) {
    if event.isOfMarks { return }
    // An update of memory calls the observers of memory.
    if !holdsBack(event) { report(event) }
  }

  /// Updates memory and the counters, then calls the observers.
  func report(_ event: RemovalEvent) {
    var event = event
    if case .all(let version, let count) = event, marks.hasRecord(through: version) {
      event = .all(throughVersion: version, count: max(0, count - 1))
    }
    tier.load()?.drop(event)
    if case .all(let version, _) = event { marks.clear(through: version) }
    count(event)
    if isObserved.load(ordering: .relaxed) { tell(event) }
    storeObserver?(event)
  }

  /// Keeps back the removals that the store reports on this thread, until `takeHeldBack`. On a full
  /// disk, a write may evict entries first, and reports them before it is done.
  func holdBack() {
    isHoldingBack.add(1, ordering: .relaxed)
    heldBack.withLock { $0.append((.current, [])) }
  }

  /// What was kept back on this thread, for `report`.
  func takeHeldBack() -> [RemovalEvent] {
    defer { isHoldingBack.subtract(1, ordering: .relaxed) }
    return heldBack.withLock { held in
      held.lastIndex { $0.thread == .current }.map { held.remove(at: $0).events } ?? []
    }
  }

  private func holdsBack(_ event: RemovalEvent) -> Bool {
    if isHoldingBack.load(ordering: .relaxed) == 0 { return false }
    return heldBack.withLock { held in
      guard let index = held.lastIndex(where: { $0.thread == .current }) else { return false }
      held[index].events.append(event)
      return true
    }
  }

  private func count(_ event: RemovalEvent) {
    switch event {
    case .all(_, let count): counters.note(.removed, count: count)
    case .entry(_, _, let cause): counters.note(cause)
    }
  }

  /// The store reports the findings of a scrub here.
  func noteDamage(_ event: Damage) {
    guard isObserved.load(ordering: .relaxed) else { return }
    for bytes in event.keys where bytes != ReservedKey.marks {
      do throws(StoreError) {
        tell(.damaged(key: try keyCoder.decode(bytes.rawSpan)), 0)
      } catch {
        log(.warning, .coding, "observers could not be told of damage: \(error)")
      }
    }
  }

  /// Logs the kind of a failed load for which no caller waited, and tells the observers its error.
  /// The error is the caller's, and may contain the key, which the log never shows.
  func noteFailedLoad(of key: Key, _ error: any Error) {
    log(.warning, .reading, "a load in the background failed: \(type(of: error))")
    tell(.loadFailed(key: key, reason: String(describing: error)), 0)
  }

  private func tell(_ event: RemovalEvent) {
    switch event {
    // If the store was already empty, only memory needs to know.
    case .all(let version, let count): if count > 0 { tell(.removedAll(count: count), version) }
    case .entry(let bytes, let version, let cause):
      do throws(StoreError) {
        tell(.removed(key: try keyCoder.decode(bytes.rawSpan), cause: cause), version)
      } catch {
        log(.warning, .coding, "observers could not be told of a removal: \(error)")
      }
    }
  }
}
