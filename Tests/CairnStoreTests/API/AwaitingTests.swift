import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Whether the pool that tasks run on still makes progress: more tasks get through than it has
/// threads.
private func poolAnswers() async -> Bool {
  await withTaskGroup(of: Int.self) { group in
    for number in 0..<64 { group.addTask { number } }
    return await group.reduce(0, +) == 64 * 63 / 2
  }
}

private final class Total: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }
  func add() { count.withLock { $0 += 1 } }
}

/// If a call blocked a thread that tasks run on, each test would hang, or throw at its time limit.
@Suite("Writes of async code block no thread", .timeLimit(.minutes(30)))
struct AwaitingTests {
  let directory: TemporaryDirectory
  let system = FaultyFileSystem()

  init() throws { directory = try TemporaryDirectory() }

  private func open(
    _ durability: Durability = .durable, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws -> Store {
    var configuration = StoreConfiguration.small(durability: durability)
    change(&configuration)
    return try Store(
      path: directory.store, configuration: configuration,
      environment: Environment(
        fileSystem: system, background: ThreadBackgroundQueue(),
        maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue()), readOnly: false)
  }

  @Test("A thousand durable writes wait for a sync, hold no thread, and share the next sync")
  func durable() async throws {
    let store = try open()
    // The first write begins the session and allocates its room.
    try await store.setValue("v", forKey: "first")
    let gate = Mutex(true)
    let returned = Total()
    system.setHook { event in
      while event.call == .synchronizeData, gate.withLock({ $0 }) { usleep(1000) }
      return nil
    }
    let syncCount = system.count(of: .synchronizeData)
    let tasks = (0..<1000).map { number in
      Task {
        let version = try await store.setValue("v", forKey: "key \(number)")
        returned.add()
        return version
      }
    }
    // All writes are in the log and can be read, but none has returned.
    while try store.count() < 1001 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(await poolAnswers())
    #expect(returned.value == 0)
    gate.withLock { $0 = false }
    var versions: Set<UInt64> = []
    for task in tasks { versions.insert(try await task.value) }
    #expect(versions.count == 1000)
    #expect(system.count(of: .synchronizeData) - syncCount < 100)
    try await store.close()
  }

  @Test("With one thread for calls, every kind of write waits for its sync and holds no thread")
  func oneThread() async throws {
    let system = SlowSyncFileSystem()
    let (events, told) = AsyncStream.makeStream(of: RemovalEvent.self)
    var iterator = events.makeAsyncIterator()
    let store = try Store(
      path: directory.store,
      configuration: .small(durability: .durable) {
        $0.concurrentCallLimit = 1
        $0.removalObserver = { told.yield($0) }
      },
      environment: Environment(
        fileSystem: system, background: ThreadBackgroundQueue(),
        maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue()), readOnly: false)
    for number in 0..<40 {
      try await store.setValue(
        "v", forKey: "key \(number)", lifetime: .hours(24), durability: .process)
    }
    try await store.sync()
    system.holdSyncs()
    defer { system.releaseSyncs() }
    let returned = Total()
    func begin(_ write: @escaping @Sendable () async throws -> Void) -> Task<Void, any Error> {
      Task {
        try await write()
        returned.add()
      }
    }
    var tasks = [
      begin { try await store.removeValue(forKey: "key 0") },
      begin { _ = try await store.compareAndRemove(forKey: "key 1", expecting: 2) },
      begin { try await store.removeValues(forKeys: ["key 2", "absent"]) },
      begin { try await store.write { try $0.removeValue(forKey: "key 3") } },
      begin {
        try await store.remove { key, _ in key.byteCount == 5 && String(copying: key) == "key 4" }
      },
    ]
    // Each has removed a key.
    for _ in tasks { _ = await iterator.next() }
    tasks += [
      begin { try await store.setLifetime(.seconds(200_000), forKey: "key 5") },
      begin { try await store.setLifetime(.seconds(200_000), forKey: "key 6") },
    ]
    // Before a trim removes these keys.
    let end = SystemClock().now().advanced(by: .seconds(1500))
    for key in ["key 5", "key 6"] {
      var expires: Timestamp?
      while expires ?? end <= end {
        try await Task.sleep(for: .milliseconds(1))
        expires = try store.info(forKey: key)?.expires
      }
    }
    tasks += [begin { try await store.trim(.toCount(30)) }]
    for _ in 0..<5 { _ = await iterator.next() }
    tasks += [
      begin { try await store.trim(.toBytes(0)) }, begin { try await store.trim(.expired) },
    ]
    for _ in 0..<30 { _ = await iterator.next() }
    // The threads for long work and for writes are both free.
    #expect(try await store.perform { try $0.count() } == 0)
    #expect(try await store.removeValues(forKeys: ["absent"], durability: .process) == 0)
    #expect(returned.value == 0)
    system.releaseSyncs()
    for task in tasks { try await task.value }
    #expect(returned.value == tasks.count)
    try await store.close()
  }

  @Test("If a sync fails, all writes that wait for it throw, and the store accepts no more writes")
  func failure() async throws {
    let store = try open()
    try await store.setValue("v", forKey: "first")
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO, isLasting: true))
    let unknownCount = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<100 {
        group.addTask {
          do throws(StoreError) {
            try await store.setValue("v", forKey: "key \(number)")
            return false
          } catch {
            switch error {
            case .durabilityUnknown, .poisoned: return true
            default: return false
            }
          }
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(unknownCount == 100)
    await #expect(throws: StoreError.self) { try await store.setValue("v", forKey: "late") }
    #expect(try store.value(forKey: "first") != nil)
  }

  @Test("A task whose sync has failed finds the store poisoned")
  func poisonedFirst() async throws {
    for round in 0..<20 {
      let system = FaultyFileSystem()
      let store = try Store(
        directory("store \(round)"), .small(durability: .durable), fileSystem: system)
      try await store.setValue("v", forKey: "first")
      system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO, isLasting: true))
      let unknown = await #expect(throws: StoreError.self) {
        try await store.setValue("v", forKey: "key")
      }
      guard case .durabilityUnknown(let cause) = unknown else {
        return #expect(Bool(false), "it was \(unknown.debugDescription)")
      }
      await #expect(throws: StoreError.poisoned(cause: cause)) {
        try await store.setValue("v", forKey: "next", durability: .process)
      }
    }
  }

  @Test(
    "A log handler may close the store when a sync has failed, whether a task or a thread wrote")
  func closesWhereToldOfFailure() async throws {
    for isTask in [true, false] {
      let system = FaultyFileSystem()
      let place = Mutex<Store?>(nil)
      let store = try Store(
        directory("store \(isTask)"),
        .small(durability: .durable) {
          $0.log = DiagnosticLog { message in
            guard message.text.contains("no more writes") else { return }
            try? place.withLock { $0.take() }?.close()
          }
        }, fileSystem: system)
      try await store.setValue("v", forKey: "first")
      place.withLock { $0 = store }
      system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO, isLasting: true))
      if isTask {
        await #expect(throws: StoreError.self) { try await store.setValue("v", forKey: "key") }
      } else {
        let writer = Background { try store.setValue("v", forKey: "key") }
        #expect(writer.finishes(within: 60))
      }
      let end = ContinuousClock.now + .seconds(60)
      while (try? store.count()) != nil, ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(1))
      }
      #expect(throws: StoreError.closed(path: directory("store \(isTask)"))) { try store.count() }
    }
  }

  @Test("A cancelled task still writes, and returns once the outcome is known")
  func cancelled() async throws {
    let store = try open()
    try await store.setValue("v", forKey: "first")
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      let version = try await store.setValue("v", forKey: "key")
      let large = try await store.setValue([UInt8](repeating: 1, count: 100_000), forKey: "large")
      let isRemoved = try await store.removeValue(forKey: "first")
      return (version, large, isRemoved)
    }
    task.cancel()
    let (version, large, isRemoved) = try await task.value
    #expect(version == 2 && large == 3 && isRemoved)
    #expect(try store.info(forKey: "key")?.version == version)
    #expect(try store.value(forKey: "large")?.count == 100_000)
    #expect(try store.value(forKey: "first") == nil)
  }

  @Test("While another thread holds the log, tasks write and hold no thread")
  func contended() async throws {
    let store = try open(.process)
    try await store.setValue("v", forKey: "first")
    let gate = Gate()
    // A durable write calls pwrite under the log's lock.
    system.setHook { event in
      if event.call == .write { gate.passOnce() }
      return nil
    }
    let holder = Background { try store.setValue("v", forKey: "held", durability: .durable) }
    try gate.waitForArrival()
    let tasks = (0..<200).map { number in
      Task { try await store.setValue("v", forKey: "key \(number)") }
    }
    #expect(await poolAnswers())
    gate.open()
    for task in tasks { #expect(try await task.value > 1) }
    #expect(holder.finishes())
    #expect(try store.count() == 202)
  }

  @Test("Limits hold when a write returns, and the observer is called")
  func limits() async throws {
    let evicted = Mutex(0)
    let store = try open(.process) {
      $0.countLimit = 10
      $0.removalObserver = { event in
        if case .entry(_, _, .evicted) = event { evicted.withLock { $0 += 1 } }
      }
    }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask { _ = try? await store.setValue("v", forKey: "key \(number)") }
      }
    }
    #expect(try store.count() == 10)
    #expect(evicted.withLock { $0 } == 190)
    for number in 200..<250 {
      try await store.setValue("v", forKey: "key \(number)")
      #expect(try store.count() == 10)
    }
  }

  @Test("Every form writes what its synchronous form writes")
  func forms() async throws {
    let store = try open(.process)
    let version = try await store.setValue("1", forKey: "a", options: .cost(7))
    #expect(try store.info(forKey: "a")?.cost == 7)
    try await store.setValue("2", forKey: "b", lifetime: .hours(24), durability: .durable)
    #expect(try store.info(forKey: "b")?.expires != nil)
    #expect(
      try await store.compareAndSet("3", forKey: "a", expecting: version) == .stored(version: 3))
    #expect(
      try await store.compareAndSet("4", forKey: "a", expecting: version) == .mismatch(current: 3))
    #expect(
      try await store.compareAndSet("4", forKey: "b", expecting: nil) == .mismatch(current: 2))
    let updated = try await store.update(forKey: "a") { ($0 ?? []) + [0x21] }
    #expect(updated?.value == Array("3!".utf8))
    #expect(try store.info(forKey: "a")?.givenCost == nil)
    #expect(try await store.update(forKey: "a") { _ in nil } == nil)
    #expect(try store.value(forKey: "a") == nil)
    try await store.write { batch in
      try batch.setValue("5", forKey: "c")
      try batch.setValue("6", forKey: "d")
    }
    try await store.setValues(
      [(key: "e", value: "7"), (key: "f", value: "8")], options: .lifetime(.hours(24)))
    #expect(try store.count() == 5)
    #expect(try await store.setLifetime(.seconds(200_000), forKey: "e"))
    #expect(try await store.removeValue(forKey: "c"))
    #expect(try await !store.removeValue(forKey: "c", durability: .durable))
    let last = try #require(try store.info(forKey: "d")).version
    #expect(try await !store.compareAndRemove(forKey: "d", expecting: last + 1))
    #expect(try await store.compareAndRemove(forKey: "d", expecting: last))
    #expect(try await store.removeValues(forKeys: ["e", "g"]) == 1)
    #expect(try await store.trim(.toCount(1)).count == 1)
    try await store.removeAll()
    #expect(try store.count() == 0)
    try await store.sync()
    await #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try await store.setValue("v", forKey: "")
    }
    await #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try await store.removeValue(forKey: "")
    }
    try await store.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.setValue("v", forKey: "a")
    }
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.removeValue(forKey: "a")
    }
    #expect(try await Store.verify(path: directory.store).errors.isEmpty)
  }
}

// Code that must compile, to show which form each call chooses.

private actor Counter {
  let store: Store
  private var total = 0

  init(_ store: Store) { self.store = store }

  func count() async throws(StoreError) -> Int {
    total += 1
    // Code that runs in an actor's isolation may use the actor's state.
    try await store.setValue("\(total)", forKey: "total")
    return total
  }

  func add(_ number: Int) async throws -> [UInt8]? {
    try await store.update(forKey: "sum") { value in
      total += number
      return Array("\(total)".utf8) + (value ?? [])
    }?.value
  }
}

@MainActor
private func onMainActor(_ store: Store) async throws(StoreError) -> UInt64 {
  do throws(StoreError) {
    return try await store.setValue("v", forKey: "main")
  } catch {
    // The error has its type.
    if case .poisoned = error { return 0 }
    throw error
  }
}

private func closing(_ store: Store) async throws -> Int {
  // A `defer` is synchronous.
  defer { try? store.close() }
  try await store.setValue("v", forKey: "deferred")
  let write: (String) throws -> UInt64 = { try store.setValue("v", forKey: $0) }
  _ = try write("in a closure")
  let take: (String) throws -> [UInt8]? = { try store.takeValue(forKey: $0) }
  guard try take("in a closure") == [0x76] else { return 0 }
  guard try await store.takeValue(forKey: "in a closure") == nil else { return 0 }
  return try ["x", "y"].map { try store.setValue("v", forKey: $0) }.count
    + (store.synchronous { try $0.removeValue(forKey: "x") } ? 1 : 0)
}

@Suite("Which form of a write is chosen at the call")
struct ChosenFormTests {
  @Test("In an actor, on the main actor, in a defer, in a closure and by name")
  func forms() async throws {
    let directory = try TemporaryDirectory()
    let store = try await Store(path: directory.store)
    let counter = Counter(store)
    #expect(try await counter.count() == 1)
    #expect(try await counter.add(4) == Array("5".utf8))
    #expect(try await onMainActor(store) == 3)
    #expect(try await closing(store) == 3)
    #expect(throws: StoreError.closed(path: directory.store)) { try store.count() }
  }

  @Test("A literal of numbers is bytes: the form that refuses other types does not interfere")
  func literals() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store)
    try store.setValue([1, 2], forKey: [3])
    try store.setValue([], forKey: "empty", lifetime: .hours(1))
    try store.write { batch in try batch.setValue([4], forKey: "\(5)") }
    #expect(try store.values(forKeys: [[3], Array("empty".utf8), [53]]) == [[1, 2], [], [4]])
  }
}
