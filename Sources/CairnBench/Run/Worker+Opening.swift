import Cairn

/// The rows that open an existing store.
extension Worker {
  /// Rewrites the values of `Workload.rewrittenKeyCount` keys, in a new session.
  func rewrite() throws {
    var random = RandomSource(seed: configuration.seed)
    try closeMain()
    let (store, data) = (try openMain(), data)
    let order = KeySequence.permutation(keyCount: data.keyCount, random: &random).indices
    for index in order.prefix(Workload.rewrittenKeyCount) {
      let value = data.value(Int(index), generation: 0)
      try data.key(Int(index)).withBytes { key throws in
        try value.withBytes { value throws in try store.setValue(value, forKey: key) }
      }
    }
  }

  /// Opens the main store and reads one value, so that a store that defers work until the first
  /// read has no advantage. After a kill, there is one opening. Clean openings are repeated, with
  /// uncounted closes in between.
  func openRepeatedly(_ round: Round) throws -> Measurement {
    var measurement = Measurement()
    var random = round.random
    let maximum = round.workload == .openKilled ? 1 : 20
    for _ in 0..<maximum {
      try closeMain()
      let index = random.index(below: data.keyCount)
      let begin = monotonicNanoseconds()
      let store = try openMain()
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      let nanoseconds = monotonicNanoseconds() - begin
      try check(value, index, round.workload, isThorough: true)
      measurement.latencies.record(nanoseconds)
      measurement.nanoseconds += max(1, nanoseconds)
      measurement.operationCount += 1
      if measurement.nanoseconds >= round.nanosecondLimit { break }
    }
    return measurement
  }
}
