import Cairn
import CairnRepair
import CairnStore
import Foundation
import FuzzSupport

/// Threads that use a store concurrently, on the real disk. Each call must return what it would if
/// all calls had run one after another, by the rules of `Linearizability`. Batches and snapshots
/// are atomic. With `--kill`, the threads are in another process, which is killed. Every
/// acknowledged write must exist. Any other write may exist, but a batch must exist whole or not at
/// all. With `--tiered`, the threads use a two-tier cache. With `--tiered-model`, only one thread
/// uses such a cache, and a model predicts each result exactly. `--loads` does the same for calls
/// that load with policies, with or without memory.
///
/// A seed decides what the threads do, not how they interleave, so a failure may not be repeatable.
/// If no order explains a history, it is printed.
@main
enum HistoryFuzzer {
  static func main() {
    let arguments = CommandLine.arguments
    if arguments.count == 6, arguments[1] == "--worker" {
      KillRun.work(store: arguments[2], log: arguments[3], arguments[4], arguments[5])
    }
    if ["--followed", "--follower"].contains(arguments.dropFirst().first) {
      runPart(arguments[1], Array(arguments.dropFirst(2)))
    }
    let fuzzer = Fuzzer(
      name: "HistoryFuzzer", iterations: 1000,
      options: ["--kill", "--followers", "--tiered", "--tiered-model", "--loads"])
    switch fuzzer.arguments {
    case []: fuzzer.run { try ThreadRun.run(seed: $0) }
    case ["--kill"]: fuzzer.run { try KillRun.run(seed: $0) }
    case ["--followers"]: fuzzer.run { try FollowersRun.run(seed: $0) }
    case ["--tiered"]: fuzzer.run { try ThreadRun.runTiered(seed: $0) }
    case ["--tiered-model"]: fuzzer.run { try TieredModelRun.run(seed: $0) }
    case ["--loads"]:
      fuzzer.run { seed in try waiting { try await LoadModelRun.run(seed: seed) } }
    default:
      Fuzzer.end(
        with: 2, "HistoryFuzzer: one of --kill, --followers, --tiered, --tiered-model and --loads")
    }
  }

  /// A process of `FollowersRun`.
  private static func runPart(_ part: String, _ arguments: [String]) -> Never {
    do {
      guard arguments.count >= 4, let seed = UInt64(arguments[2]) else {
        throw FuzzFailure("\(part) with \(arguments)")
      }
      let history = FollowedHistory(seed: seed)
      let (store, directory) = (arguments[0], arguments[1])
      if part == "--followed" {
        try FollowedWriter.run(
          store: store, directory: directory, history, finishes: arguments[3] == "finish")
      } else {
        var follower = try FollowerProcess(
          store: store, directory: directory, history, index: Int(arguments[3]) ?? 0,
          seed: UInt64(arguments.last ?? "") ?? 0)
        try follower.run()
      }
      exit(0)
    } catch {
      print("\(part) \(arguments): \(error)")
      exit(1)
    }
  }

  /// Blocks the main thread, which runs no tasks, until a task ends.
  private static func waiting(_ body: @escaping @Sendable () async throws -> Tally) throws -> Tally
  {
    let outcome = Lock<Result<Tally, any Error>?>(nil)
    let end = DispatchSemaphore(value: 0)
    Task.detached {
      let result: Result<Tally, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
      end.signal()
    }
    end.wait()
    guard let result = outcome.withLock({ $0 }) else { throw FuzzFailure("the task had no result") }
    return try result.get()
  }
}

extension Store {
  /// The number of a key's value, and its version; 0 if there is none.
  func state(_ key: Int) throws -> (value: UInt64, version: UInt64) {
    guard let entry = try entry(forKey: HistoryPlan.key(key)) else { return (0, 0) }
    return (try HistoryPlan.number(of: entry.value), entry.info.version)
  }
}

/// Threads of this process use one store in several rounds. The store is closed and reopened in
/// between.
enum ThreadRun {
  /// Eight threads in one run of four, and otherwise as few as the checker handles fastest.
  private static func threadCount(_ random: inout FuzzRandom) -> Int {
    random.once(in: 4) ? 8 : 2 + random.below(3)
  }

  static func run(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let directory = try RunDirectory(onDisk: random.once(in: 10))
    let (threadCount, keyCount) = (threadCount(&random), 1 + random.below(3))
    var check = HistoryCheck(keyCount: keyCount)
    let clock = ManualClock()
    let hasLargeBatches = random.once(in: 2)
    var configuration =
      hasLargeBatches ? StoreSubject.configurationOfLargeBatches : StoreSubject.configuration
    configuration.clock = clock
    var store = try Store(path: directory.store, configuration: configuration)
    for round in 0..<UInt64(1 + random.below(4)) {
      let plan = HistoryPlan(
        seed: random.next(), threadCount: threadCount, keyCount: keyCount,
        callCount: 100 / threadCount / keyCount, firstValue: round << 32, clockStands: true)
      let log = try HistoryLog(
        path: nil, threadCount: threadCount, capacity: HistoryLog.usualCapacity)
      try HistoryWorker(
        StoreSubject(store, hasLargeBatches: hasLargeBatches), plan, log
      ).run()
      if random.once(in: 2) {
        try store.close()
        store = try Store(path: directory.store, configuration: configuration)
      }
      let timePasses = random.once(in: 2)
      if timePasses { clock.advance(by: HistoryPlan.time) }
      try check.check(log, timePassed: timePasses) { try store.state($0) }
    }
    try store.close()
    let errors = try Store.verify(path: directory.store).errors
    guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
    return check.tally
  }

  /// Does the same with a two-tier cache whose memory fills and empties meanwhile.
  static func runTiered(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let directory = try RunDirectory(onDisk: false)
    let (threadCount, keyCount) = (threadCount(&random), 1 + random.below(3))
    var check = HistoryCheck(keyCount: keyCount)
    let clock = ManualClock()
    func open() throws -> TieredSubject {
      try TieredSubject(path: directory.store, heldCount: 1 + random.below(4), clock: clock)
    }
    var subject = try open()
    for round in 0..<UInt64(1 + random.below(4)) {
      if round > 0, random.once(in: 2) {
        try subject.cache.close()
        subject = try open()
      }
      let plan = HistoryPlan(
        seed: random.next(), threadCount: threadCount, keyCount: keyCount,
        callCount: 100 / threadCount / keyCount, firstValue: round << 32, clockStands: true)
      let log = try HistoryLog(
        path: nil, threadCount: threadCount, capacity: HistoryLog.usualCapacity)
      try HistoryWorker(subject, plan, log).run()
      let timePasses = random.once(in: 2)
      if timePasses { clock.advance(by: HistoryPlan.time) }
      let cache = subject.cache
      try check.check(log, timePassed: timePasses) { number in
        let key = HistoryPlan.key(number)
        // Memory and the disk return the same value.
        let value = try cache.value(forKey: key)
        guard let entry = try cache.entry(forKey: key) else {
          guard value == nil else { throw FuzzFailure("memory has a value, the disk has none") }
          return (0, 0)
        }
        guard value == entry.value else { throw FuzzFailure("the tiers have different values") }
        return (try HistoryPlan.number(of: entry.value), entry.info.version)
      }
    }
    try subject.cache.close()
    return check.tally
  }
}
