import FuzzSupport
import Testing

/// Histories of one key or a few, as threads would record them.
@Suite("The check of histories")
struct LinearizabilityTests {
  private typealias Operation = HistoryOperation

  private func operation(
    _ action: HistoryOperation.Action, _ outcome: HistoryOperation.Outcome, _ begin: UInt64,
    _ end: UInt64
  ) -> HistoryOperation {
    HistoryOperation(action, outcome, begin: begin, end: outcome == .pending ? .max : end)
  }

  private func isExplained(
    _ operations: [HistoryOperation], from state: KeyState = KeyState()
  ) -> Bool { (try? check(operations, from: state)) != nil }

  /// Each operation is a call of a separate thread.
  private func check(
    _ operations: [HistoryOperation], from state: KeyState = KeyState()
  ) throws -> KeyState {
    let calls = operations.enumerated().map { thread, operation in
      var operation = operation
      operation.thread = thread
      return HistoryCall(.apart, [operation])
    }
    return try Linearizability.check(calls, from: [state])[0]
  }

  /// A call for the keys 0, 1 and so on.
  private func call(
    _ unity: HistoryCall.Unity, _ thread: Int, _ begin: UInt64, _ end: UInt64,
    _ operations: [(HistoryOperation.Action, HistoryOperation.Outcome)]
  ) -> HistoryCall {
    HistoryCall(
      unity,
      operations.enumerated().map { key, operation in
        HistoryOperation(
          operation.0, operation.1, begin: begin, end: operation.1 == .pending ? .max : end,
          thread: thread, key: key)
      })
  }

  private func reads(
    _ unity: HistoryCall.Unity, _ thread: Int, _ begin: UInt64, _ end: UInt64, _ values: [UInt64]
  ) -> HistoryCall {
    call(unity, thread, begin, end, values.map { (.read, .found(value: $0, version: 0)) })
  }

  private func isExplained(_ calls: [HistoryCall]) -> Bool {
    let states = [KeyState(value: 1, version: 1), KeyState(value: 2, version: 2)]
    return (try? Linearizability.check(calls, from: states)) != nil
  }

  @Test("Calls one after another return what a dictionary returns")
  func sequential() throws {
    let history = [
      operation(.read, .found(value: 0, version: 0), 1, 2),
      operation(.write(value: 7), .stored(version: 10), 3, 4),
      operation(.read, .found(value: 7, version: 10), 5, 6),
      operation(.compareAndSet(expecting: 10, value: 8), .stored(version: 11), 7, 8),
      operation(.compareAndSet(expecting: 10, value: 9), .mismatch(version: 11), 9, 10),
      operation(.remove, .removed(true), 11, 12),
      operation(.remove, .removed(false), 13, 14),
      operation(.compareAndSet(expecting: 0, value: 5), .stored(version: 20), 15, 16),
      operation(.compareAndRemove(expecting: 11), .removed(false), 17, 18),
      operation(.compareAndRemove(expecting: 20), .removed(true), 19, 20),
      operation(.write(value: 6), .done, 21, 22),
      operation(.erase, .done, 23, 24),
    ]
    #expect(try check(history).value == 0)
    // In another order, the results would be wrong, except for four that show nothing.
    for index in history.indices.dropFirst() {
      var other = history
      other.swapAt(index, index - 1)
      (other[index].begin, other[index - 1].begin) = (other[index - 1].begin, other[index].begin)
      (other[index].end, other[index - 1].end) = (other[index - 1].end, other[index].end)
      if ![6, 8, 9, 11].contains(index) {
        #expect(!isExplained(other), "with \(index) before the one before it")
      }
    }
  }

  @Test("Reads during a write find the old or the new value, and never the old one again")
  func overlapping() {
    let write = operation(.write(value: 2), .stored(version: 5), 10, 20)
    func history(_ first: UInt64, _ second: UInt64) -> [HistoryOperation] {
      [
        write, operation(.read, .found(value: first, version: 0), 11, 12),
        operation(.read, .found(value: second, version: 0), 13, 14),
      ]
    }
    let before = KeyState(value: 1, version: 4)
    #expect(isExplained(history(1, 1), from: before))
    #expect(isExplained(history(1, 2), from: before))
    #expect(isExplained(history(2, 2), from: before))
    #expect(!isExplained(history(2, 1), from: before))
    #expect(!isExplained(history(3, 3), from: before))
  }

  @Test("A completed write is seen by every later call")
  func stale() {
    let history = [
      operation(.write(value: 1), .done, 1, 2), operation(.write(value: 2), .done, 3, 4),
      operation(.read, .found(value: 1, version: 0), 5, 6),
    ]
    #expect(!isExplained(history))
    #expect(isExplained(Array(history.dropLast())))
  }

  @Test("If two expect the same version, only one can succeed")
  func lostUpdate() {
    let history = [
      operation(.compareAndSet(expecting: 3, value: 8), .stored(version: 4), 1, 10),
      operation(.compareAndSet(expecting: 3, value: 9), .stored(version: 5), 1, 10),
    ]
    #expect(!isExplained(history, from: KeyState(value: 1, version: 3)))
  }

  @Test("Later writes have higher versions")
  func versions() {
    let history = [
      operation(.write(value: 1), .stored(version: 9), 1, 2),
      operation(.write(value: 2), .stored(version: 8), 3, 4),
    ]
    #expect(!isExplained(history))
    #expect(!isExplained([history[0]], from: KeyState(value: 5, version: 9)))
  }

  @Test("An operation in progress at a kill happened or did not; an acknowledged one did")
  func pending() {
    func history(_ outcome: HistoryOperation.Outcome, _ found: UInt64) -> [HistoryOperation] {
      [
        operation(.write(value: 1), .stored(version: 1), 1, 2),
        operation(.write(value: 2), outcome, 3, 4),
        operation(.remove, .pending, 3, 4),
        operation(.read, .found(value: found, version: 0), 100, 101),
      ]
    }
    for found in [0, 1, 2] as [UInt64] { #expect(isExplained(history(.pending, found))) }
    #expect(isExplained(history(.done, 2)))
    #expect(isExplained(history(.done, 0)))
    #expect(!isExplained(history(.done, 1)))
    #expect(!isExplained(history(.pending, 3)))
  }

  @Test(
    "A batch in progress at a kill exists completely or not at all, except what others overwrote"
  )
  func halfABatch() {
    func history(_ unity: HistoryCall.Unity, _ found: [UInt64]) -> [HistoryCall] {
      [
        call(unity, 0, 10, 20, [(.write(value: 3), .pending), (.write(value: 4), .pending)]),
        reads(.atOnce, 1, 100, 101, found),
      ]
    }
    for found in [[1, 2], [3, 4]] as [[UInt64]] { #expect(isExplained(history(.together, found))) }
    for found in [[1, 4], [3, 2]] as [[UInt64]] {
      #expect(!isExplained(history(.together, found)))
      #expect(isExplained(history(.apart, found)))
    }
    var others = history(.together, [3, 5])
    others.append(
      HistoryCall(
        .apart,
        [HistoryOperation(.write(value: 5), .pending, begin: 5, end: .max, thread: 2, key: 1)]))
    #expect(isExplained(others))
    // A removal of all is atomic too.
    func cleared(_ found: [UInt64]) -> [HistoryCall] {
      [
        call(.together, 0, 10, 20, [(.erase, .pending), (.erase, .pending)]),
        reads(.atOnce, 1, 100, 101, found),
      ]
    }
    #expect(isExplained(cleared([0, 0])))
    #expect(!isExplained(cleared([1, 0])))
  }

  @Test("A snapshot shows no partial batch; single reads may see it arrive")
  func snapshots() {
    func history(
      _ unity: HistoryCall.Unity, _ found: [UInt64], from: UInt64 = 11, to: UInt64 = 12
    ) -> [HistoryCall] {
      [
        call(.together, 0, 10, 20, [(.write(value: 3), .done), (.write(value: 4), .done)]),
        reads(unity, 1, from, to, found), reads(.atOnce, 1, 30, 31, [3, 4]),
      ]
    }
    for found in [[1, 2], [3, 4]] as [[UInt64]] { #expect(isExplained(history(.atOnce, found))) }
    for found in [[1, 4], [3, 2]] as [[UInt64]] {
      #expect(!isExplained(history(.atOnce, found)))
      #expect(isExplained(history(.apart, found)))
      #expect(!isExplained(history(.apart, found, from: 1, to: 2)))
      #expect(!isExplained(history(.apart, found, from: 21, to: 22)))
    }
    // A snapshot that another thread's write explains.
    var others = history(.atOnce, [5, 2])
    others.append(call(.apart, 2, 9, 19, [(.write(value: 5), .done)]))
    #expect(isExplained(others))
  }

  @Test("If two batches are concurrent, one comes after the other")
  func mixedBatches() {
    func history(_ found: [UInt64]) -> [HistoryCall] {
      [
        call(.together, 0, 10, 20, [(.write(value: 3), .done), (.write(value: 4), .done)]),
        call(.together, 1, 10, 20, [(.write(value: 5), .done), (.write(value: 6), .done)]),
        reads(.apart, 2, 30, 31, found),
      ]
    }
    #expect(isExplained(history([3, 4])))
    #expect(isExplained(history([5, 6])))
    #expect(!isExplained(history([3, 6])))
    #expect(!isExplained(history([5, 4])))
  }

  @Test("Values that end when time passes have ended then, unless extended, and not before")
  func endings() {
    func history(
      _ ending: HistoryOperation.Ending, extended: Bool?, passes: Bool, _ found: UInt64
    ) -> Bool {
      var history = [operation(.write(value: 3, ending: ending), .stored(version: 5), 1, 2)]
      if let extended { history.append(operation(.setLifetime, .extended(extended), 3, 4)) }
      if passes { history.append(operation(.passTime, .done, 5, 6)) }
      history.append(operation(.read, .found(value: found, version: 0), 7, 8))
      return isExplained(history)
    }
    for ending in [.never, .soon, .whenIdle, .atOnce] as [HistoryOperation.Ending] {
      for isExtended in [false, true] {
        for passes in [false, true] {
          let isThere =
            switch ending {
            case .never: true
            case .soon: isExtended || !passes
            case .whenIdle: !passes
            case .atOnce: false
            }
          let answer = isExtended ? ending != .atOnce : nil
          #expect(history(ending, extended: answer, passes: passes, 3) == isThere)
          #expect(history(ending, extended: answer, passes: passes, 0) == !isThere)
          if let answer { #expect(!history(ending, extended: !answer, passes: passes, 3)) }
        }
      }
    }
  }

  @Test("If two take a value, one gets it")
  func taken() {
    func history(_ second: UInt64) -> [HistoryOperation] {
      [
        operation(.take, .found(value: 1, version: 0), 1, 10),
        operation(.take, .found(value: second, version: 0), 1, 10),
        operation(.take, .pending, 3, 4),
      ]
    }
    #expect(isExplained(history(0), from: KeyState(value: 1, version: 4)))
    #expect(!isExplained(history(1), from: KeyState(value: 1, version: 4)))
  }

  @Test("At a kill, a thread has one call in progress, and those before it happened")
  func beginnings() {
    let first = operation(.write(value: 3), .pending, 10, 20)
    var second = operation(.write(value: 4), .pending, 30, 40)
    second.key = 1
    let both = [HistoryCall(.apart, [first]), HistoryCall(.apart, [second])]
    #expect(!isExplained(both))
    var returned = both
    returned[0].operations[0].outcome = .done
    returned[0].operations[0].end = 20
    #expect(isExplained(returned + [reads(.atOnce, 1, 100, 101, [3, 4])]))
    #expect(isExplained(returned + [reads(.atOnce, 1, 100, 101, [3, 2])]))
    #expect(!isExplained(returned + [reads(.atOnce, 1, 100, 101, [1, 4])]))
  }

  @Test("A process that died while it recorded the results of a call had received them")
  func answersHalfNoted() throws {
    let log = try HistoryLog(path: nil, threadCount: 1, capacity: 10)
    let entries = log.begin(
      0, [(0, .write(value: 3)), (1, .erase), (2, .write(value: 5))], .together)
    log.end(0, entries.prefix(1), [.done])
    let call = try #require(try log.calls().first)
    #expect(call.unity == .together)
    #expect(call.operations.map(\.outcome) == [.done, .done, .done])
    #expect(call.operations.allSatisfy { $0.end == call.operations[0].end })
    // Only recorded reads count.
    log.clear()
    let reads = log.begin(0, [(0, .read), (1, .read)], .atOnce)
    log.end(0, reads.prefix(1), [.found(value: 7, version: 1)])
    #expect(try log.calls().map { $0.operations.map(\.key) } == [[0]])
  }

  @Test("A log is read as it was written, whole, pending or not begun")
  func log() throws {
    let log = try HistoryLog(path: nil, threadCount: 2, capacity: 14)
    #expect(!log.hasBegun)
    let outcomes: [(HistoryOperation.Action, HistoryOperation.Outcome)] = [
      (.write(value: 3), .stored(version: 8)), (.write(value: 4), .done), (.erase, .done),
      (.remove, .removed(true)), (.remove, .removed(false)),
      (.read, .found(value: 9, version: 2)),
      (.compareAndSet(expecting: 4, value: 6), .mismatch(version: 7)),
      (.compareAndRemove(expecting: 5), .removed(true)),
      (.write(value: 7, ending: .whenIdle), .done), (.take, .found(value: 7, version: 0)),
      (.setLifetime, .extended(true)), (.passTime, .done),
    ]
    for (action, outcome) in outcomes { log.end(1, log.begin(1, [(3, action)]), [outcome]) }
    _ = log.begin(1, [(0, .read), (3, .erase)])
    #expect(log.hasBegun)
    #expect(log.room(of: 1) == 0)
    #expect(log.room(of: 0) == 14)
    let calls = try log.calls()
    let done = calls.dropLast().flatMap(\.operations)
    #expect(calls.count == outcomes.count + 1)
    #expect(done.map(\.action) == outcomes.map(\.0))
    #expect(done.map(\.outcome) == outcomes.map(\.1))
    #expect(done.allSatisfy { $0.begin <= $0.end && $0.thread == 1 && $0.key == 3 })
    let last = try #require(calls.last?.operations)
    #expect(last.map(\.action) == [.read, .erase])
    #expect(last.map(\.key) == [0, 3])
    #expect(last.filter(\.isPending).count == 2)
    log.clear()
    #expect(try log.calls().isEmpty)
  }
}
