import FuzzSupport
import Testing

/// Histories of one key, as threads would write them down.
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
  ) -> Bool { (try? Linearizability.check(operations, from: state)) != nil }

  @Test("Calls that come one after the other answer as a dictionary does")
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
    #expect(try Linearizability.check(history, from: KeyState()).value == 0)
    // In another order the answers would be wrong, but for four that do not tell.
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

  @Test("Reads beside a write find the old value or the new one, and never the old one again")
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

  @Test("What was written and returned is seen by whoever calls after that")
  func stale() {
    let history = [
      operation(.write(value: 1), .done, 1, 2), operation(.write(value: 2), .done, 3, 4),
      operation(.read, .found(value: 1, version: 0), 5, 6),
    ]
    #expect(!isExplained(history))
    #expect(isExplained(Array(history.dropLast())))
  }

  @Test("Of two that expect the same version one alone can have it")
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

  @Test("What was under way at a kill happened or did not; what was acknowledged did")
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

  @Test("What a log holds is read as it was written, whole, pending or not begun")
  func log() throws {
    let log = try HistoryLog(path: nil, threadCount: 2, capacity: 10)
    #expect(!log.hasBegun)
    let outcomes: [(HistoryOperation.Action, HistoryOperation.Outcome)] = [
      (.write(value: 3), .stored(version: 8)), (.write(value: 4), .done), (.erase, .done),
      (.remove, .removed(true)), (.remove, .removed(false)),
      (.read, .found(value: 9, version: 2)),
      (.compareAndSet(expecting: 4, value: 6), .mismatch(version: 7)),
      (.compareAndRemove(expecting: 5), .removed(true)),
    ]
    for (action, outcome) in outcomes { log.end(1, log.begin(1, [(3, action)]), [outcome]) }
    _ = log.begin(1, [(0, .read), (3, .erase)])
    #expect(log.hasBegun)
    #expect(log.room(of: 1) == 0)
    #expect(log.room(of: 0) == 10)
    let operations = try log.operations()
    #expect(operations[3]?.dropLast().map(\.action) == outcomes.map(\.0))
    #expect(operations[3]?.dropLast().map(\.outcome) == outcomes.map(\.1))
    #expect(operations[3]?.dropLast().allSatisfy { $0.begin <= $0.end && $0.thread == 1 } == true)
    #expect(operations[3]?.last?.isPending == true)
    #expect(operations[0]?.map(\.outcome) == [.pending])
    log.clear()
    #expect(try log.operations().isEmpty)
  }
}
