import Cairn
import CairnRepair
import CairnStore

/// Loading calls, with policies, to a cache on disk with or without a memory tier. The model
/// predicts each result exactly: no value is older than promised, one load of a key is in progress
/// at a time, and a load that began before a completed removal or write is not kept. A load that a
/// caller stopped waiting for is kept. Time advances in whole seconds, which the disk stores
/// exactly.
package struct LoadModelRun {
  typealias Cache = DiskCache<Int, String>

  static let keyCount = 3

  /// A time limit.
  struct Limit {
    let end: Int64
    let number: Int
  }

  /// The result of a call, once it has one.
  final class Result: Sendable {
    let answer = Lock<LoadModel.Answer?>(nil)
  }

  /// A waiting caller.
  struct Waiter {
    let policy: LoadPolicy
    let result: Result
    /// When the caller stops waiting.
    var softLimit: Limit?
  }

  /// A load that has not ended.
  struct Load {
    let key: Int
    let call: LoadOrigin.Call
    let policy: LoadPolicy
    /// The entry that the load should replace.
    let entry: LoadModel.Entry?
    /// When the load reaches its time limit.
    var limit: Limit?
    var waiters: [Waiter] = []
    /// Whether the cache must not keep the result.
    var isOutdated = false
  }

  let scene = LoadModelScene()
  private let origin = LoadOrigin()
  /// Runs the calls.
  let callers = ManualTaskExecutor()
  private let path: String
  private let hasMemory: Bool
  var random: FuzzRandom
  var cache: Cache
  var model: LoadModel
  var loads: [Load] = []
  private var step = 0
  private var callCount = 0
  private var limitCount = 0
  /// The random number that calls of this step use.
  var number = 0.0
  private var done: [String] = []
  var tally = Tally()

  package static func run(seed: UInt64) async throws -> Tally {
    let directory = try RunDirectory(onDisk: false)
    var run = try LoadModelRun(seed: seed, path: directory.store)
    try await run.work()
    let errors = try await Store.verify(path: directory.store).errors
    guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
    return run.tally
  }

  private init(seed: UInt64, path: String) throws {
    random = FuzzRandom(seed: seed)
    self.path = path
    hasMemory = random.once(in: 2)
    model = LoadModel(now: scene.clock.now().millisecondsSinceEpoch)
    cache = try scene.open(path, hasMemory: hasMemory, &random)
  }

  private mutating func work() async throws {
    do {
      for _ in 0..<300 {
        step += 1
        setNumber()
        try await takeStep(random.below(Self.keyCount))
        try compare()
      }
      try await endLoads()
      try await cache.close()
    } catch {
      for load in loads { load.call.reply(.failure) }
      throw FuzzFailure(
        "step \(step): \(error); the last steps:\n  "
          + done.suffix(30).joined(separator: "\n  "))
    }
    scene.discardAll()
    tally["runs"] += 1
    tally["steps"] += step
  }

  private mutating func takeStep(_ key: Int) async throws {
    switch random.below(24) {
    case 0..<10: try await ask(key)
    case 10..<14: if !loads.isEmpty { try await finish(random.below(loads.count)) }
    case 14..<18: try await pass()
    case 18: try await write(key)
    case 19: try await remove(key)
    case 20: try await keepHouse()
    case 21: if hasMemory { cache.tier.trim(.toCount(random.below(2))) }
    case 22: if random.once(in: 6) { try await reopen() }
    default: try await removeMany(key)
    }
  }

  mutating func note(_ text: String) {
    done.append(
      "\(step) at \((model.now - ManualClock.start.millisecondsSinceEpoch) / 1000) s: \(text)")
  }

  // MARK: Loads

  private mutating func setNumber() {
    let choices = [0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999]
    number = choices[random.below(choices.count)]
    scene.number.value.withLock { [number] in $0 = number }
  }

  private mutating func newLimit(_ length: Duration?) -> Limit? {
    guard let length else { return nil }
    limitCount += 1
    return Limit(end: model.now + length.milliseconds, number: limitCount)
  }

  private mutating func newPolicy() -> LoadPolicy {
    var policy = LoadPolicy()
    if random.once(in: 2) { policy.refreshAhead = Double(random.below(10)) / 8 }
    if random.once(in: 2) { policy.staleWhileRevalidating = .seconds(random.below(20)) }
    if random.once(in: 2) { policy.staleOnError = .seconds(random.below(40)) }
    if random.once(in: 2) { policy.timeLimit = .seconds(1 + random.below(20)) }
    // Differs from all other limits, so that a wait never ends together with its load.
    if random.once(in: 2) {
      policy.softTimeLimit = .milliseconds(1000 * random.below(8) + 1 + callCount % 999)
    }
    if random.once(in: 2) { policy.lifetimeJitter = Double(random.below(9)) / 8 }
    policy.firstRetryDelay = .seconds(1 + random.below(3))
    policy.longestRetryDelay = .seconds(4 + random.below(10))
    return policy
  }

  private mutating func ask(_ key: Int) async throws {
    let policy = newPolicy()
    let expected = model.outcome(key, policy)
    note("ask for \(key): \(expected)")
    callCount += 1
    let result = Result()
    Task(executorPreference: callers) { [cache, origin] in
      let answer = await LoadOrigin.$mark.withValue(LoadOrigin.Mark()) {
        await Self.answer(cache, origin, key, policy)
      }
      result.answer.withLock { $0 = answer }
    }
    callers.runAll()
    var waiter = Waiter(policy: policy, result: result)
    switch expected {
    case .answered(let answer, let begins):
      try expect(result.answer.withLock { $0 }, answer, "the answer without a wait")
      if case .value(_, _, isStale: true) = answer { tally["stale"] += 1 }
      if begins, underWay(key) == nil {
        try await begin(key, policy, nil)
        tally["loads in the background"] += 1
      }
    case .waits:
      try expect(result.answer.withLock { $0 }, nil, "the answer during a wait")
      let isSoft = model.isSoft(key, policy)
      if underWay(key) == nil {
        try await begin(key, policy, nil)
        tally["loads"] += 1
      } else {
        tally["joined"] += 1
      }
      if isSoft { waiter.softLimit = newLimit(policy.softTimeLimit) }
      if let index = underWay(key) { loads[index].waiters.append(waiter) }
    }
  }

  /// The load of the key that callers now join.
  func underWay(_ key: Int) -> Int? {
    loads.firstIndex { $0.key == key && !$0.isOutdated }
  }

  private static func answer(
    _ cache: Cache, _ origin: LoadOrigin, _ key: Int, _ policy: LoadPolicy
  ) async -> LoadModel.Answer {
    do {
      let loaded = try await cache.loaded(forKey: key, policy: policy) { prior in
        try await origin.load(key, prior)
      }
      guard let loaded else { return .absent }
      return .value(loaded.value, age: loaded.age.milliseconds, isStale: loaded.isStale)
    } catch StoreError.loadTimedOut {
      return .timedOut
    } catch {
      return .failure
    }
  }

  /// Waits for a load to begin, and checks what the loader is given.
  mutating func begin(_ key: Int, _ policy: LoadPolicy, _ waiter: Waiter?) async throws {
    try await settle("a load of \(key)") { origin.count > 0 }
    guard let call = origin.take() else { throw FuzzFailure("the load is gone") }
    try expect(call.key, key, "what is loaded")
    let entry = model.entries[key]
    try expect(call.prior?.value, entry?.value, "the old value")
    try expect(call.prior?.version, entry?.version, "its version")
    try expect(call.prior?.isStale, entry.map { $0.expires <= model.now }, "whether it is stale")
    try expect(
      call.prior?.age, entry.map { .milliseconds(model.now - $0.validated) }, "its age")
    loads.append(
      Load(
        key: key, call: call, policy: policy, entry: entry,
        limit: newLimit(policy.timeLimit), waiters: waiter.map { [$0] } ?? []))
  }

  private mutating func newLifetime() -> Int64 { 1000 * Int64(1 + random.below(20)) }

  /// Lets the origin reply.
  private mutating func finish(_ index: Int) async throws {
    let load = loads.remove(at: index)
    let key = load.key
    let lifetime = newLifetime()
    let jittered = model.jittered(lifetime, load.policy, number)
    let value = "\(key) \(step)"
    let isRenewable = load.call.prior != nil
    let kind = random.below(isRenewable ? 5 : 4)
    note("answer \(kind) to the load of \(key), \(load.isOutdated ? "outdated" : "to be kept")")
    let reply: LoadOrigin.Reply =
      switch kind {
      case 0, 1: .loaded(value, .milliseconds(lifetime))
      case 2: .failure
      case 3: .absent(.milliseconds(lifetime))
      default: .notModified(.milliseconds(lifetime))
      }
    let endCount = cache.loadCounts.durations.count
    load.call.reply(reply)
    // A load that has a waiter resumes it at its end, and an outdated one has no more effects.
    let isToldOf =
      load.isOutdated || !load.waiters.isEmpty
      || loads.contains { $0.call.mark === load.call.mark }
    try await settle("the end of a load") {
      cache.loadCounts.durations.count == endCount + 1 && (isToldOf || load.call.mark == nil)
    }
    var answer: LoadModel.Answer?
    switch kind {
    case 0, 1:
      answer = .value(value, age: 0, isStale: false)
      if load.isOutdated { break }
      model.forget(key)
      model.entries[key] = LoadModel.Entry(
        value: value, version: try cache.info(forKey: key)?.version ?? 0, written: model.now,
        validated: model.now, expires: model.now + jittered)
    case 2: if !load.isOutdated { model.noteFailure(key, load.policy, number) }
    case 3:
      answer = .absent
      if load.isOutdated { break }
      model.forget(key)
      if model.entries[key]?.version == load.call.prior?.version { model.entries[key] = nil }
      model.past[key, default: LoadModel.Past()].absenceEnd = model.now + lifetime
    default:
      answer = .value(load.call.prior?.value ?? "", age: 0, isStale: false)
      if load.isOutdated { break }
      model.forget(key)
      // A value that has meanwhile become too old for all policies is renewed if it still exists.
      let renewed = try cache.info(forKey: key)
      guard var entry = model.entries[key] ?? (renewed == nil ? nil : load.entry),
        entry.version == load.call.prior?.version
      else { break }
      // The value was written again, unless its lifetime is longer.
      if let version = renewed?.version, version != entry.version {
        (entry.version, entry.written) = (version, model.now)
      }
      entry.validated = model.now
      entry.expires = max(entry.expires, model.now + jittered)
      model.entries[key] = entry
      tally["not modified"] += 1
    }
    try await tell(load, answer)
  }

  func tell(
    _ load: Load, _ answer: LoadModel.Answer?, timedOut: Bool = false
  ) async throws {
    for waiter in load.waiters {
      let expected =
        answer ?? model.answer(afterFailureOf: load.key, waiter.policy, timedOut: timedOut)
      try await expect(waiter, expected, "the result of a wait for \(load.key)")
    }
  }

  private mutating func endLoads() async throws {
    while !loads.isEmpty { try await finish(0) }
  }

  // MARK: Writes

  /// Applies the effect of a write or a removal to the loads of a key.
  private mutating func noteWrite(_ key: Int?) {
    for index in loads.indices where key == nil || loads[index].key == key {
      loads[index].isOutdated = true
    }
    if let key { model.forget(key) } else { model.past = [:] }
  }

  private mutating func write(_ key: Int) async throws {
    let lifetime = newLifetime()
    note("set \(key) for \(lifetime) ms")
    let value = "\(key) \(step)"
    let version = try await cache.setValue(value, forKey: key, lifetime: .milliseconds(lifetime))
    noteWrite(key)
    model.entries[key] = LoadModel.Entry(
      value: value, version: version, written: model.now, validated: model.now,
      expires: model.now + lifetime)
  }

  private mutating func remove(_ key: Int) async throws {
    let expected = model.fresh(key)
    note("remove \(key)")
    switch random.below(3) {
    case 0:
      try expect(try await cache.removeValue(forKey: key), expected != nil, "a removal")
    case 1:
      try expect(try await cache.takeValue(forKey: key), expected?.value, "what was taken")
    default:
      try await cache.write { batch in try batch.removeValue(forKey: key) }
    }
    noteWrite(key)
    model.entries[key] = nil
    tally["removals"] += 1
  }

  private mutating func removeMany(_ key: Int) async throws {
    if !random.once(in: 4) { return }
    note("remove all")
    try await cache.removeAll()
    noteWrite(nil)
    model.entries = [:]
  }

  private mutating func keepHouse() async throws {
    let number = random.below(3)
    note("keep house: \(number)")
    switch number {
    case 0: try await cache.maintain()
    case 1: try await cache.compact()
    default:
      if !random.once(in: 4) { return }
      try await cache.trim(.expired)
      model.removeExpired(before: model.now)
    }
  }

  /// Waiting callers get their results before the close. Background loads end with the close.
  private mutating func reopen() async throws {
    for index in loads.indices.reversed() where !loads[index].waiters.isEmpty {
      try await finish(index)
    }
    note("open anew")
    try await cache.close()
    for load in loads { load.call.reply(.loaded("too late", .unlimited)) }
    loads = []
    try await settle("the end of all loads") {
      cache.loadCounts.durations.count == cache.loadCounts.startedCount
    }
    scene.discardAll()
    cache = try scene.open(path, hasMemory: hasMemory, &random)
    model.past = [:]
    model.entries = model.entries.mapValues { entry in
      var entry = entry
      entry.validated = entry.written
      return entry
    }
    tally["times opened anew"] += 1
  }

  // MARK: Comparisons

  func expect<Value: Equatable>(
    _ found: Value, _ expected: Value, _ what: @autoclosure () -> String
  ) throws {
    if found != expected { throw FuzzFailure("\(what()): \(found) instead of \(expected)") }
  }

  /// Waits for the answer to a call.
  func expect(_ waiter: Waiter, _ expected: LoadModel.Answer, _ what: String) async throws {
    try await settle(what) { waiter.result.answer.withLock { $0 } != nil }
    try expect(waiter.result.answer.withLock { $0 }, expected, what)
  }

  /// Compares what all other reads find, and checks that only known calls reached the origin.
  private func compare() throws {
    for key in 0..<Self.keyCount {
      try expect(try cache.peekValue(forKey: key), model.fresh(key)?.value, "the value of \(key)")
      try expect(
        try cache.info(forKey: key)?.version, model.fresh(key)?.version, "the version of \(key)")
    }
    let count = (0..<Self.keyCount).count { model.fresh($0) != nil }
    try expect(try cache.count(), count, "the number of keys")
    try expect(origin.count, 0, "the number of loads that the model does not know")
  }

  /// Waits for what other tasks do.
  func settle(_ what: String, _ condition: () -> Bool) async throws {
    let end = ContinuousClock.now.advanced(by: .seconds(60))
    while true {
      callers.runAll()
      if condition() { return }
      if ContinuousClock.now > end { throw FuzzFailure("waited in vain for \(what)") }
      await Task.yield()
    }
  }
}
