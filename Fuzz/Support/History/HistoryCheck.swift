import CairnStore

/// Checks what threads wrote down against what is there in the end.
package struct HistoryCheck {
  /// What each key may hold before the next threads begin.
  package private(set) var states: [Int: KeyState] = [:]
  package private(set) var tally = Tally()

  package init() {}

  /// - Parameter final: what each key holds now, after all that is in the log.
  package mutating func check(
    _ log: HistoryLog, keyCount: Int, final: (Int) throws -> (value: UInt64, version: UInt64)
  ) throws {
    var operations = try log.operations()
    for key in 0..<keyCount {
      var own = operations[key, default: []]
      tally["operations"] += own.count
      tally["pending"] += own.count(where: \.isPending)
      let (value, version) = try final(key)
      let now = HistoryLog.now()
      own.append(
        HistoryOperation(
          .read, .found(value: value, version: version), begin: now, end: now, thread: -1))
      operations[key] = own
      do {
        var state = try Linearizability.check(own, from: states[key] ?? KeyState())
        if version != 0 { state.version = version }
        states[key] = state
      } catch { throw FuzzFailure("key \(key): \(error)") }
    }
    tally["histories"] += 1
  }
}
