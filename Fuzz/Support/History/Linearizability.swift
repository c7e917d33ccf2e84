/// Checks whether the calls of many threads returned what they would if their operations had taken
/// effect one after another, each at one moment between its call and its return.
///
/// Uses the search of Wing and Gong ("Testing and verifying concurrent objects", 1993), with Lowe's
/// record of what was tried ("Testing for linearizability", 2017). The search takes all keys
/// together. If no call has more than one operation, a history is linearizable if the history of
/// each key is (Herlihy and Wing, 1990), but this does not cover partial batches.
///
/// An order explains a history if
/// - the outcome of each operation matches the state of its key at that moment;
/// - no call comes after another that began after the first had returned. A thread's calls follow
///   one another. So at a kill, each thread has at most one call that did not return, which is its
///   last;
/// - no other operation that changes something comes between the operations of a batch. Reads may
///   come in between: the store lets reads of single keys see a batch arrive. While a large batch
///   arrives, others may change something;
/// - a snapshot comes as a whole, and not between the operations of a batch;
/// - a call that did not return may not have happened; a batch has happened whole or not at all.
///   Later overwrites need no separate rule, because they are part of the order.
package struct Linearizability {
  /// The maximum number of operations of a call.
  package static let operationLimit = 64

  /// The calls of each thread.
  private let threads: [[HistoryCall]]
  private var tried: Set<Attempt> = []
  private var longest: Attempt

  /// A thread's progress.
  private struct Place: Hashable {
    /// The calls that are done.
    var callCount = 0
    /// Which operations of the next call are done, as bits.
    var done: UInt64 = 0
  }

  private struct Attempt: Hashable {
    var places: [Place]
    var states: [KeyState]

    var progress: Int { places.reduce(0) { $0 + 64 * $1.callCount + $1.done.nonzeroBitCount } }
  }

  /// - Parameter initial: the state of each key before.
  /// - Throws: `FuzzFailure` if no order explains the outcomes.
  /// - Returns: states that the keys may have at the end.
  @discardableResult
  package static func check(
    _ calls: [HistoryCall], from initial: [KeyState]
  ) throws -> [KeyState] {
    var threads: [Int: [HistoryCall]] = [:]
    for call in calls.sorted(by: { $0.begin < $1.begin }) {
      guard call.operations.count <= operationLimit else {
        throw FuzzFailure("\(call.operations.count) operations of one call are too many to check")
      }
      if let last = threads[call.thread]?.last, last.isPending || last.end > call.begin {
        throw FuzzFailure("a thread began a call before its last one returned: \(call)")
      }
      threads[call.thread, default: []].append(call)
    }
    // A read that never returned shows nothing.
    let checked = threads.sorted { $0.key < $1.key }.map { _, calls in
      calls.filter { !$0.isPending || $0.operations.contains { $0.action != .read } }
    }
    var check = Linearizability(checked, initial)
    if let states = check.search(check.longest) { return states }
    throw FuzzFailure("no order explains this, from \(initial) on:\n\(check.explanation)")
  }

  private init(_ threads: [[HistoryCall]], _ initial: [KeyState]) {
    self.threads = threads
    longest = Attempt(places: threads.map { _ in Place() }, states: initial)
  }

  private func next(_ thread: Int, _ attempt: Attempt) -> HistoryCall? {
    let count = attempt.places[thread].callCount
    return count < threads[thread].count ? threads[thread][count] : nil
  }

  private mutating func search(_ attempt: Attempt) -> [KeyState]? {
    if !tried.insert(attempt).inserted { return nil }
    if attempt.progress > longest.progress { longest = attempt }
    // A call that began after another had returned comes after it.
    var firstEnd = UInt64.max
    var isEnd = true
    /// The thread whose batch is partly done.
    var half: Int?
    /// Whether a batch is partly done, even one that lets others change something.
    var isHalf = false
    for thread in threads.indices {
      guard let call = next(thread, attempt) else { continue }
      firstEnd = min(firstEnd, call.isPending ? .max : call.end)
      if !call.isPending { isEnd = false }
      if attempt.places[thread].done == 0 { continue }
      if call.unity == .together { half = thread }
      if call.unity == .together || call.unity == .arriving { isHalf = true }
    }
    if isEnd && !isHalf { return attempt.states }
    var steps: [Attempt] = []
    for thread in threads.indices {
      guard let call = next(thread, attempt), call.begin <= firstEnd else { continue }
      for step in self.steps(of: thread, call, from: attempt, half: half, isHalf: isHalf) {
        // A call that only reads, and fits here, need not be tried later as well.
        if call.onlyLooks && step.states == attempt.states { return search(step) }
        steps.append(step)
      }
    }
    for step in steps {
      if let states = search(step) { return states }
    }
    return nil
  }

  /// The states that the next call of a thread may lead to.
  private func steps(
    of thread: Int, _ call: HistoryCall, from attempt: Attempt, half: Int?, isHalf: Bool
  ) -> [Attempt] {
    var steps: [Attempt] = []
    if call.unity == .atOnce {
      if isHalf { return [] }
      var step = attempt
      for operation in call.operations {
        guard let state = step.states[operation.key].applying(operation) else { return [] }
        step.states[operation.key] = state
      }
      step.places[thread] = Place(callCount: attempt.places[thread].callCount + 1)
      return [step]
    }
    for (index, operation) in call.operations.enumerated()
    where attempt.places[thread].done >> UInt64(index) & 1 == 0 {
      let before = attempt.states[operation.key]
      guard let state = before.applying(operation) else { continue }
      if let half, half != thread {
        if state.value != before.value || state.ending != before.ending { continue }
      }
      var step = attempt
      step.states[operation.key] = state
      step.places[thread].done |= 1 << UInt64(index)
      if step.places[thread].done.nonzeroBitCount == call.operations.count {
        step.places[thread] = Place(callCount: attempt.places[thread].callCount + 1)
      }
      steps.append(step)
    }
    return steps
  }

  private var explanation: String {
    var lines: [(begin: UInt64, text: String)] = []
    for (calls, place) in zip(threads, longest.places) {
      for (number, call) in calls.enumerated() {
        for (index, operation) in call.operations.enumerated() {
          let isDone =
            number < place.callCount
            || number == place.callCount && place.done >> UInt64(index) & 1 != 0
          let unity = call.unity == .apart ? "" : ", \(call.unity)"
          lines.append((call.begin, "  \(isDone ? "+" : "-") \(operation)\(unity)"))
        }
      }
    }
    return lines.sorted { $0.begin < $1.begin }.map(\.text).joined(separator: "\n")
  }
}
