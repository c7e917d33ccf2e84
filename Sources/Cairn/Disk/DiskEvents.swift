internal import CairnStore
internal import Synchronization

/// Who is told what happens to a cache on disk, and the counts of it. The store tells it what goes.
///
/// An object beside the cache, since the store is made with it.
final class DiskEvents<Key: Hashable & Sendable>: Sendable {
  /// - Parameter version: of the value that came or went; of a removal of all, the last that went; of damage, 0.
  typealias Body = @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void

  private struct State: Sendable {
    var observers: [(id: UInt64, body: Body)] = []
    var lastID: UInt64 = 0
    /// What observers are told only when a write is done, by the threads that write.
    var held: [(thread: ThreadID, removals: [RemovalEvent])] = []
  }

  /// A value that a write brought.
  struct Insertion {
    var key: Key
    /// The key's.
    var bytes: [UInt8]
    var version: UInt64
  }

  let counters = DiskCounters()
  private let keyCoder: KeyCoder<Key>
  private let log: (@Sendable (String) -> Void)?
  /// Where the cache is, for the log.
  private let path: String
  /// A tier in front, which is told before everybody else.
  let front: DiskFront<Key>?
  private let state = Lock(State())
  /// So that nothing is decoded, and no lock taken, where nobody listens.
  private let isObserved = Atomic(false)
  /// Whether the last value that was loaded found room, as far as it is known.
  let hasRoom = Atomic(true)

  init(
    path: String, keyCoder: KeyCoder<Key>, log: (@Sendable (String) -> Void)?,
    front: DiskFront<Key>?
  ) {
    self.path = path
    self.keyCoder = keyCoder
    self.front = front
    self.log = log
  }

  func tellLog(_ message: @autoclosure () -> String) {
    if let log { log("\(path): \(message())") }
  }

  var observerCount: Int { state.withLock { $0.observers.count } }

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
    // What the closure holds goes out of the lock.
    withExtendedLifetime(observers) {}
  }

  private func tell(_ event: CacheEvent<Key>, _ version: UInt64) {
    for observer in state.withLock({ $0.observers }) { observer.body(event, version) }
  }

  /// To be told before a write.
  func tellFrontBeforeWrite(of count: Int, _ byteCount: Int) { front?.willWrite(count, byteCount) }

  /// To be told of a write that did not come from the front.
  ///
  /// - Parameter cause: what became by it of a value from before: it was replaced or removed.
  func tellFront(_ key: Key, version: UInt64, cause: CacheRemovalCause = .replaced) {
    front?.didWrite(key, version, cause)
  }

  /// Does a write to the store. What that removes on this thread is told to observers only by the
  /// `noteInsertions` that is to follow; where the write throws, at once.
  ///
  /// The store tells what had to make room before anybody knows the version of what it made room for.
  ///
  /// - Returns: what is still to be told.
  func holdingRemovals(
    _ write: () throws(CacheError) -> Void
  ) throws(CacheError) -> [RemovalEvent] {
    guard isObserved.load(ordering: .relaxed) else {
      try write()
      return []
    }
    let thread = ThreadID.current
    state.withLock { $0.held.append((thread, [])) }
    func takeHeld() -> [RemovalEvent] {
      state.withLock { state in
        // An observer of the store may write too, on the same thread, in the middle of a write.
        guard let index = state.held.lastIndex(where: { $0.thread == thread }) else { return [] }
        return state.held.remove(at: index).removals
      }
    }
    do throws(CacheError) { try write() } catch {
      for removal in takeHeld() { tellRemoval(removal) }
      throw error
    }
    return takeHeld()
  }

  func noteInsertion(
    of key: Key, bytes: RawSpan, version: UInt64, after removals: [RemovalEvent]
  ) {
    counters.insertions.add()
    if isObserved.load(ordering: .relaxed) { tell(of: key, bytes, version, after: removals) }
  }

  /// Out of line, so that nothing is made for generic types where nobody listens.
  @inline(never)
  private func tell(
    of key: Key, _ bytes: RawSpan, _ version: UInt64, after removals: [RemovalEvent]
  ) {
    let insertion = Insertion(key: key, bytes: [UInt8](copying: bytes), version: version)
    tell([insertion], after: removals)
  }

  /// - Parameter removals: what `holdingRemovals` has given.
  func noteInsertions(_ insertions: [Insertion], after removals: [RemovalEvent]) {
    counters.insertions.add(insertions.count)
    if isObserved.load(ordering: .relaxed) { tell(insertions, after: removals) }
  }

  /// Tells of each key what went from it and that it came, and then what had to make room.
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
      for removal in replaced[insertion.bytes] ?? [] { tellRemoval(removal) }
      tell(.inserted(key: insertion.key), insertion.version)
    }
    for removal in others { tellRemoval(removal) }
  }

  /// To be told by the store of all that goes.
  func noteRemoval(_ event: RemovalEvent) {
    front?.didRemove(event)
    switch event {
    case .all(_, let count):
      // Where nothing was left, it is the front alone that has to know.
      if count == 0 { return }
      counters.note(.removed, count: count)
      // Told at once, also in the middle of a write, which then comes after it.
      if isObserved.load(ordering: .relaxed) { tellRemoval(event) }
      return
    case .entry(_, _, let cause): counters.note(CacheRemovalCause(cause))
    }
    guard isObserved.load(ordering: .relaxed) else { return }
    let thread = ThreadID.current
    let isHeld = state.withLock { state in
      guard let index = state.held.lastIndex(where: { $0.thread == thread }) else { return false }
      state.held[index].removals.append(event)
      return true
    }
    if !isHeld { tellRemoval(event) }
  }

  /// To be told by the store of what a scrub has found.
  func noteDamage(_ event: DamageEvent) {
    guard isObserved.load(ordering: .relaxed) else { return }
    for bytes in event.keys {
      do throws(CacheError) {
        let key = try bytes.withBytes { (bytes) throws(CacheError) in try keyCoder.decode(bytes) }
        tell(.damaged(key: key), 0)
      } catch {
        tellLog("damage could not be told to observers: \(error)")
      }
    }
  }

  private func tellRemoval(_ event: RemovalEvent) {
    switch event {
    case .all(let version, let count): tell(.removedAll(count: count), version)
    case .entry(let bytes, let version, let cause):
      do throws(CacheError) {
        let key = try bytes.withBytes { (bytes) throws(CacheError) in try keyCoder.decode(bytes) }
        tell(.removed(key: key, cause: CacheRemovalCause(cause)), version)
      } catch {
        tellLog("a removal could not be told to observers: \(error)")
      }
    }
  }
}

extension CacheRemovalCause {
  init(_ cause: RemovalCause) {
    self =
      switch cause {
      case .removed: .removed
      case .replaced: .replaced
      case .expired: .expired
      case .evicted(.countLimit): .evicted(.countLimit)
      case .evicted(.liveByteLimit): .evicted(.costLimit)
      case .evicted(.freeDiskSpace): .evicted(.freeDiskSpace)
      case .evicted(.trim): .evicted(.trim)
      }
  }
}

/// What a tier in front of a cache on disk is told, whether anybody else listens or not.
struct DiskFront<Key: Sendable>: Sendable {
  /// What went, whoever caused it.
  var didRemove: @Sendable (RemovalEvent) -> Void
  /// A write that did not come from the front, or a removal in a batch, with its version, and why what was there
  /// before is gone. That may have been removed before, and the front not told of it yet.
  var didWrite: @Sendable (_ key: Key, _ version: UInt64, _ cause: CacheRemovalCause) -> Void
  /// That a trim is about to return after which nothing is there from before it. Somebody else may have removed
  /// some of it, and the front not told of that yet. A removal of all is told by `didRemove` always.
  var didTrimToZero: @Sendable () -> Void
  /// That so many entries are about to be written, which have so many bytes. Runs under no lock, and not before the
  /// bytes are known.
  var willWrite: @Sendable (_ count: Int, _ byteCount: Int) -> Void
  /// That another store takes the place of one whose directory was removed; before anything is written to it.
  var didReopen: @Sendable (Store) -> Void
  /// That the store is about to be closed; by `close`, not by the end of the cache.
  var willClose: @Sendable () -> Void
  /// That it is closed.
  var didClose: @Sendable () -> Void
}
