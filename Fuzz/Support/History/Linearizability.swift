/// Whether the operations on one key, made by many threads, answered as if each had taken effect at one
/// moment between its call and its return.
///
/// The search of Wing and Gong ("Testing and verifying concurrent objects", 1993), with Lowe's memory of what was tried
/// ("Testing for linearizability", 2017). Each key by itself: a history is linearizable if that of each key is (Herlihy and
/// Wing, 1990).
package struct Linearizability {
  /// So many operations a key may have.
  package static let operationLimit = 128

  private let operations: [HistoryOperation]
  private let completed: UInt128
  private var tried: Set<Attempt> = []
  private var longest: UInt128 = 0

  private struct Attempt: Hashable {
    var done: UInt128
    var state: KeyState
  }

  /// - Throws: `FuzzFailure` where there is no order that explains the answers.
  /// - Returns: a state that the key may have at the end.
  @discardableResult
  package static func check(
    _ operations: [HistoryOperation], from initial: KeyState
  ) throws -> KeyState {
    guard operations.count <= operationLimit else {
      throw FuzzFailure("\(operations.count) operations of one key are too many to check")
    }
    // A read that never returned says nothing.
    var check = Linearizability(
      operations.filter { !($0.isPending && $0.action == .read) }.sorted { $0.begin < $1.begin })
    if let state = check.search(Attempt(done: 0, state: initial)) { return state }
    throw FuzzFailure("no order explains this, from \(initial) on:\n\(check.explanation)")
  }

  private init(_ operations: [HistoryOperation]) {
    self.operations = operations
    var completed: UInt128 = 0
    for (index, operation) in operations.enumerated() where !operation.isPending {
      completed |= 1 << UInt128(index)
    }
    self.completed = completed
  }

  private mutating func search(_ attempt: Attempt) -> KeyState? {
    if attempt.done & completed == completed { return attempt.state }
    if !tried.insert(attempt).inserted { return nil }
    if attempt.done.nonzeroBitCount > longest.nonzeroBitCount { longest = attempt.done }
    // Whoever began after another had returned comes after it.
    var firstEnd = UInt64.max
    for (index, operation) in operations.enumerated()
    where attempt.done >> UInt128(index) & 1 == 0 && !operation.isPending {
      firstEnd = min(firstEnd, operation.end)
    }
    for (index, operation) in operations.enumerated() {
      if operation.begin > firstEnd { break }
      if attempt.done >> UInt128(index) & 1 != 0 { continue }
      guard let state = attempt.state.applying(operation) else { continue }
      let next = Attempt(done: attempt.done | 1 << UInt128(index), state: state)
      if let end = search(next) { return end }
    }
    return nil
  }

  private var explanation: String {
    operations.enumerated().map { index, operation in
      (longest >> UInt128(index) & 1 != 0 ? "  + " : "  - ") + operation.description
    }.joined(separator: "\n")
  }
}
