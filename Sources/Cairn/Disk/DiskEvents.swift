internal import CairnStore
internal import Synchronization

/// Who is told what happens to a cache on disk, and the counts of it. The store tells it what goes.
///
/// An object beside the cache, since the store is made with it.
final class DiskEvents<Key: Hashable & Sendable>: Sendable {
  /// - Parameter version: of the value that came or went; of a removal of all, the last that went.
  typealias Body = @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void

  private struct State: Sendable {
    var observers: [(id: UInt64, body: Body)] = []
    var lastID: UInt64 = 0
  }

  let counters = DiskCounters()
  private let keyCoder: KeyCoder<Key>
  private let log: (@Sendable (String) -> Void)?
  /// A tier in front, which is told before everybody else.
  let front: DiskFront<Key>?
  private let state = Lock(State())
  /// So that nothing is decoded, and no lock taken, where nobody listens.
  private let isObserved = Atomic(false)

  init(
    keyCoder: KeyCoder<Key>, log: (@Sendable (String) -> Void)?,
    front: DiskFront<Key>?
  ) {
    self.keyCoder = keyCoder
    self.front = front
    self.log = log
  }

  func tellLog(_ message: @autoclosure () -> String) {
    if let log { log(message()) }
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

  /// To be told of a write that did not come from the front.
  func tellFront(_ key: Key, version: UInt64) { front?.didWrite(key, version) }

  func noteInsertion(of key: Key, version: UInt64) {
    counters.insertions.add()
    if plantedInCache(.diskInsertNotTold) { return }
    if isObserved.load(ordering: .relaxed) { tell(.inserted(key: key), version) }
  }

  /// To be told by the store of all that goes.
  func noteRemoval(_ event: RemovalEvent) {
    front?.didRemove(event)
    switch event {
    case .all(let version, let count):
      if count == 0 { return }
      counters.note(.removed, count: count)
      if isObserved.load(ordering: .relaxed) { tell(.removedAll(count: count), version) }
    case .entry(let bytes, let version, let cause):
      let cause = plantedInCache(.diskCauseLost) ? .removed : CacheRemovalCause(cause)
      counters.note(cause)
      guard isObserved.load(ordering: .relaxed) else { return }
      do throws(CacheError) {
        let key = try bytes.withBytes { (bytes) throws(CacheError) in try keyCoder.decode(bytes) }
        tell(.removed(key: key, cause: cause), version)
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
  /// A write that did not come from the front, with its version. What it replaced may have been removed
  /// before, and the front not told of that yet.
  var didWrite: @Sendable (_ key: Key, _ version: UInt64) -> Void
  /// That a trim is about to return after which nothing is there from before it. Somebody else may have removed
  /// some of it, and the front not told of that yet. A removal of all is told by `didRemove` always.
  var didTrimToZero: @Sendable () -> Void
  /// That the store is about to be closed; by `close`, not by the end of the cache.
  var willClose: @Sendable () -> Void
  /// That it is closed.
  var didClose: @Sendable () -> Void
}
