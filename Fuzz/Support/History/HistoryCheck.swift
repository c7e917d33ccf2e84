import CairnStore

/// Checks the threads' history against the final contents.
package struct HistoryCheck {
  /// What each key may contain before the next threads begin.
  package private(set) var states: [KeyState]
  package private(set) var tally = Tally()

  package init(keyCount: Int) { states = Array(repeating: KeyState(), count: keyCount) }

  /// - Parameters:
  ///   - timePassed: whether values that expire when time passes have since expired.
  ///   - final: the current value of each key, after everything in the log.
  package mutating func check(
    _ log: HistoryLog, timePassed: Bool = false,
    final: (Int) throws -> (value: UInt64, version: UInt64)
  ) throws {
    var calls = try log.calls()
    for call in calls {
      tally["operations"] += call.operations.count
      tally["pending"] += call.operations.count(where: \.isPending)
      if call.operations.count > 1 && call.unity != .apart { tally["\(call.unity)"] += 1 }
    }
    func atEnd(
      _ number: Int, _ operations: [(HistoryOperation.Action, HistoryOperation.Outcome)]
    ) -> HistoryCall {
      let now = HistoryLog.now()
      return HistoryCall(
        .atOnce,
        operations.enumerated().map { key, operation in
          HistoryOperation(
            operation.0, operation.1, begin: now, end: now, thread: number, key: key)
        })
    }
    if timePassed {
      calls.append(atEnd(-2, states.map { _ in (.passTime, .done) }))
      tally["times that time passed"] += 1
    }
    let found = try states.indices.map(final)
    calls.append(
      atEnd(-1, found.map { (.read, .found(value: $0.value, version: $0.version)) }))
    states = try Linearizability.check(calls, from: states)
    for (key, found) in found.enumerated() where found.version != 0 {
      states[key].version = found.version
    }
    tally["histories"] += 1
  }
}
