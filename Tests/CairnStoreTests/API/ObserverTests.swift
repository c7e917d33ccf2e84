import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Observers")
struct ObserverTests {
  /// Collects events, and uses the store from within the call, which must not hang.
  final class Observer: Sendable {
    private let state = Mutex<(events: [RemovalEvent], store: Store?)>(([], nil))
    var events: [RemovalEvent] { state.withLock { $0.events } }
    func watch(_ store: Store) { state.withLock { $0.store = store } }
    func forget() { state.withLock { $0.store = nil } }
    func note(_ event: RemovalEvent) {
      let store = state.withLock { state in
        state.events.append(event)
        return state.store
      }
      guard let store else { return }
      #expect(throws: Never.self) {
        _ = try store.value(forKey: "key")
        _ = try store.count()
        _ = try store.statistics()
        if events.count < 10 {
          try store.setValue("from the observer", forKey: "observer\(events.count)")
        }
      }
    }
  }

  let directory: TemporaryDirectory
  let clock = ManualClock()
  let observer = Observer()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    let observer = observer
    store = try Store(
      directory.store, .small(clock: clock) { $0.removalObserver = { observer.note($0) } })
    observer.watch(store)
  }

  func event(_ version: UInt64, _ cause: RemovalCause) -> RemovalEvent {
    .entry(key: Array("key".utf8), version: version, cause: cause)
  }

  @Test("A first write and a removal of an absent key report nothing")
  func nothing() throws {
    defer { observer.forget() }
    try store.setValue("v", forKey: "key")
    try store.removeValue(forKey: "none")
    try store.write { try $0.removeValue(forKey: "none") }
    #expect(observer.events == [])
  }

  @Test(
    "An overwrite reports the version that was replaced, also if its value is written aside",
    arguments: [1, 100_000])
  func replaced(byteCount: Int) throws {
    defer { observer.forget() }
    let version = try store.setValue("v", forKey: "key")
    try store.setValue(String(repeating: "w", count: byteCount), forKey: "key")
    #expect(observer.events == [event(version, .replaced)])
  }

  @Test("A removal reports the version that was removed")
  func removed() throws {
    defer { observer.forget() }
    let version = try store.setValue("v", forKey: "key")
    try store.removeValue(forKey: "key")
    #expect(observer.events == [event(version, .removed)])
  }

  @Test("A compare-and-set and a compare-and-remove report only if they succeed")
  func compared() throws {
    defer { observer.forget() }
    let version = try store.setValue("v", forKey: "key")
    _ = try store.compareAndSet("w", forKey: "key", expecting: nil)
    _ = try store.compareAndRemove(forKey: "key", expecting: version + 100)
    #expect(observer.events == [])
    guard case .stored(let second) = try store.compareAndSet("w", forKey: "key", expecting: version)
    else {
      Issue.record("not stored")
      return
    }
    #expect(try store.compareAndRemove(forKey: "key", expecting: second))
    #expect(observer.events == [event(version, .replaced), event(second, .removed)])
  }

  @Test("An overwrite of an expired value reports the expiry")
  func expired() throws {
    defer { observer.forget() }
    let version = try store.setValue("v", forKey: "key", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    try store.setValue("w", forKey: "key")
    #expect(observer.events == [event(version, .expired)])
  }

  @Test("A batch reports each removed entry, in order")
  func batch() throws {
    defer { observer.forget() }
    let version = try store.setValue("v", forKey: "key")
    try store.write { batch in
      try batch.setValue("w", forKey: "key")
      try batch.removeValue(forKey: "key")
    }
    #expect(observer.events.count == 2)
    #expect(observer.events.first == event(version, .replaced))
    #expect(observer.events.last == event(version + 1, .removed))
  }

  @Test("A removal of all reports once, with the last version")
  func all() throws {
    defer { observer.forget() }
    try store.setValue("v", forKey: "key")
    let last = try store.setValue("v", forKey: "other")
    try store.removeAll()
    #expect(observer.events == [.all(throughVersion: last, count: 2)])
  }

  @Test(
    "A write's removals are reported before the write waits for its sync", arguments: [false, true])
  func toldBeforeSync(inBatch: Bool) throws {
    // During that time, a cache must not show what the disk no longer has.
    let scene = try StoreScene()
    let told = Mutex(0)
    let toldAtSync = Mutex<Int?>(nil)
    let store = try scene.open {
      $0.countLimit = 1
      $0.removalObserver = { _ in told.withLock { $0 += 1 } }
    }
    try store.setValue("1", forKey: "evicted")
    scene.fileSystem.setHook { event in
      guard event.call == .synchronizeData else { return nil }
      toldAtSync.withLock { $0 = $0 ?? told.withLock { $0 } }
      return nil
    }
    if inBatch {
      try store.write(durability: .durable) { try $0.setValue("2", forKey: "new") }
    } else {
      try store.setValue("2", forKey: "new", durability: .durable)
    }
    #expect(toldAtSync.withLock { $0 } == 1)
  }
}
