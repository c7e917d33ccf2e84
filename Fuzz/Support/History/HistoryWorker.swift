import CairnStore
import Dispatch
import Foundation
import Synchronization

/// The plan of a history.
package struct HistoryPlan: Sendable {
  package var seed: UInt64
  package var threadCount: Int
  package var keyCount: Int
  /// How many calls each thread makes.
  package var callCount: Int
  /// The first number of a value. Each number is written once.
  package var firstValue: UInt64
  /// Whether the clock stands still, so that threads may write values that end when it advances.
  package var clockStands: Bool

  package init(
    seed: UInt64, threadCount: Int, keyCount: Int, callCount: Int, firstValue: UInt64,
    clockStands: Bool
  ) {
    self.seed = seed
    self.threadCount = threadCount
    self.keyCount = keyCount
    self.callCount = callCount
    self.firstValue = firstValue
    self.clockStands = clockStands
  }

  /// How much time must pass until the values that end soon have ended.
  package static var time: Duration { .seconds(120) }

  func ending(_ random: inout FuzzRandom) -> HistoryOperation.Ending {
    switch random.below(12) {
    case 0: .atOnce
    case 1..<4 where clockStands: .soon
    case 4 where clockStands: .whenIdle
    default: .never
    }
  }

  package static func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }

  package static func value(_ number: UInt64) -> [UInt8] {
    var random = FuzzRandom(seed: number)
    let byteCount =
      switch random.below(10) {
      case 0: 4000 + random.below(12_000)
      case 1..<4: 500 + random.below(1000)
      default: random.below(100)
      }
    return (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
      + random.bytes(count: byteCount)
  }

  /// - Throws: if the value was never written.
  package static func number(of value: [UInt8]) throws -> UInt64 {
    let number = value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    guard value == Self.value(number) else {
      throw FuzzFailure("a read of \(value.count) bytes that were never written")
    }
    return number
  }
}

/// The threads whose calls form a history.
package struct HistoryWorker<Subject: HistorySubject>: Sendable {
  let subject: Subject
  let plan: HistoryPlan
  let log: HistoryLog

  package init(_ subject: Subject, _ plan: HistoryPlan, _ log: HistoryLog) {
    self.subject = subject
    self.plan = plan
    self.log = log
  }

  private final class Shared: Sendable {
    let isStarted = Atomic(false)
    let runningCount: Atomic<Int>
    let failure = Mutex<(any Error)?>(nil)
    init(_ count: Int) { runningCount = Atomic(count) }
  }

  /// Runs all threads to completion, beside one that does maintenance.
  package func run() throws {
    let shared = Shared(plan.threadCount)
    let group = DispatchGroup()
    func start(_ body: @escaping @Sendable () throws -> Void) {
      group.enter()
      let thread = Thread {
        while !shared.isStarted.load(ordering: .acquiring) { sched_yield() }
        do { try body() } catch { shared.failure.withLock { $0 = $0 ?? error } }
        group.leave()
      }
      thread.start()
    }
    for thread in 0..<plan.threadCount {
      start {
        defer { shared.runningCount.subtract(1, ordering: .relaxed) }
        try work(thread)
      }
    }
    start {
      var random = FuzzRandom(seed: plan.seed ^ 0x686F_7573)
      while shared.runningCount.load(ordering: .relaxed) > 0 {
        try subject.keepHouse(choice: random.below(1 << 20))
        rest(&random)
      }
    }
    shared.isStarted.store(true, ordering: .releasing)
    group.wait()
    if let failure = shared.failure.withLock({ $0 }) { throw failure }
  }

  /// Occasionally pauses, so that threads interleave in ever new ways.
  private func rest(_ random: inout FuzzRandom) {
    switch random.below(8) {
    case 0: usleep(UInt32(random.below(200)))
    case 1..<4: sched_yield()
    default: for _ in 0..<random.below(200) { _ = random.next() }
    }
  }

  private func work(_ thread: Int) throws {
    var random = FuzzRandom(seed: plan.seed &+ UInt64(thread) &* 0x9E37_79B9)
    var nextValue = plan.firstValue + UInt64(thread * plan.callCount * plan.keyCount)
    func value() -> UInt64 {
      nextValue += 1
      return nextValue
    }
    /// The last versions that this thread saw.
    var versions = [UInt64](repeating: 0, count: plan.keyCount)
    let keys = (0..<plan.keyCount).map(HistoryPlan.key)
    for _ in 0..<plan.callCount where log.room(of: thread) >= 2 * plan.keyCount {
      let number = random.below(plan.keyCount)
      let key = keys[number]
      let durability: Durability = random.below(6) == 0 ? .durable : .process
      func note(
        _ action: HistoryOperation.Action, _ body: () throws -> HistoryOperation.Outcome
      ) throws {
        let entries = log.begin(thread, [(number, action)])
        log.end(thread, entries, [try body()])
      }
      switch random.below(100) {
      case 0..<30:
        let value = value()
        let ending = plan.ending(&random)
        try note(.write(value: value, ending: ending)) {
          versions[number] = try subject.set(
            HistoryPlan.value(value), forKey: key, ending: ending, durability: durability)
          return versions[number] == 0 ? .done : .stored(version: versions[number])
        }
      case 30..<56:
        try note(.read) {
          guard let found = try subject.get(key) else {
            versions[number] = 0
            return .found(value: 0, version: 0)
          }
          versions[number] = found.version
          return .found(value: try HistoryPlan.number(of: found.value), version: found.version)
        }
      case 56..<60: try note(.setLifetime) { .extended(try subject.setLifetime(key)) }
      case 60..<63:
        try note(.take) {
          guard let value = try subject.take(key) else { return .found(value: 0, version: 0) }
          return .found(value: try HistoryPlan.number(of: value), version: 0)
        }
      case 63..<70: try note(.remove) { .removed(try subject.remove(key)) }
      case 70..<80:
        let value = value()
        let expected = versions[number]
        try note(.compareAndSet(expecting: expected, value: value)) {
          switch try subject.compareAndSet(
            HistoryPlan.value(value), forKey: key, expecting: expected == 0 ? nil : expected)
          {
          case .stored(let version):
            versions[number] = version
            return .stored(version: version)
          case .mismatch(let current):
            versions[number] = current ?? 0
            return .mismatch(version: current ?? 0)
          }
        }
      case 80..<84:
        let expected = max(1, versions[number])
        try note(.compareAndRemove(expecting: expected)) {
          .removed(try subject.compareAndRemove(forKey: key, expecting: expected))
        }
      case 84..<92:
        let changes = (0..<plan.keyCount).map { _ in random.below(4) == 0 ? nil : value() }
        let entries = log.begin(
          thread,
          changes.enumerated().map { ($0.offset, $0.element.map { .write(value: $0) } ?? .erase) },
          subject.unityOfChanges)
        try subject.change(
          changes.enumerated().map { (keys[$0.offset], $0.element.map(HistoryPlan.value)) },
          durability: durability)
        log.end(thread, entries, changes.map { _ in .done })
      case 92..<97:
        let choice = random.below(1 << 20)
        let entries = log.begin(
          thread, keys.indices.map { ($0, .read) }, subject.unityOfReads(choice: choice))
        let found = try subject.getAll(keys, choice: choice)
        let outcomes = try found.map { found -> HistoryOperation.Outcome in
          guard let found else { return .found(value: 0, version: 0) }
          return .found(value: try HistoryPlan.number(of: found.value), version: found.version)
        }
        log.end(thread, entries, outcomes)
      case 97:
        let entries = log.begin(
          thread, keys.indices.map { ($0, .erase) }, subject.unityOfRemovalOfAll)
        try subject.removeAll()
        log.end(thread, entries, keys.map { _ in .done })
      default: try subject.keepHouse(choice: random.below(1 << 20))
      }
      rest(&random)
    }
  }
}
