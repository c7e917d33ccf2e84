import Cairn
import Dispatch
import Synchronization

/// The rows that compact: alone, or while another thread reads or writes.
extension Worker {
  func getWhileCompacting(_ round: Round) throws -> Measurement {
    var random = round.random
    let (store, data) = (try openMain(), data)
    let order = KeySequence.permutation(keyCount: data.keyCount, random: &random).indices
    let sequence = KeySequence.uniform(keyCount: data.keyCount, random: &random)
    let part = max(1, data.keyCount / 4)
    // Rewrites the same values, so that reads find what they found before.
    let rewrite: @Sendable (Int) throws -> Void = { turn in
      for place in (turn * part)..<((turn + 1) * part) {
        let index = Int(order[place % order.count])
        let value = data.value(index, generation: data.generation(of: index))
        try data.key(index).withBytes { key throws in
          try value.withBytes { value throws in try store.setValue(value, forKey: key) }
        }
      }
    }
    // Rewrite once first, so that a compaction begins together with the reads.
    try rewrite(0)
    return try beside({ turn in
      try store.compact()
      try rewrite(turn + 1)
    }) {
      try get(round, sequence)
    }
  }

  func overwriteWhileCompacting(_ round: Round) throws -> Measurement {
    var random = round.random
    let store = try openMain()
    let sequence = KeySequence.uniform(keyCount: data.keyCount, random: &random)
    return try beside({ _ in try store.compact() }) { try overwriteUniformly(round, sequence) }
  }

  /// One compaction, after overwriting half of the keys.
  func compact(_ round: Round) throws -> Measurement {
    var random = round.random
    let (store, count) = (try openMain(), data.keyCount)
    let order = KeySequence.permutation(keyCount: count, random: &random).indices
    for index in order.prefix(count / 2) { try put(Int(index), in: store) }
    return try Measurement.run(
      Pace(maximumCallCount: 1, sampleInterval: 1), operationsPerCall: count
    ) { _ in try store.compact() }
  }

  /// Overwrites four times as many values as there are keys.
  func churn(_ round: Round) throws -> Measurement {
    var random = round.random
    let store = try openMain()
    let indices = KeySequence.uniform(keyCount: data.keyCount, random: &random).indices
    let mask = indices.count - 1
    return try Measurement.run(pace(round, maximumCallCount: 4 * data.keyCount)) { call in
      // A sequence shorter than the round is shifted a little each time it repeats.
      let index = (Int(indices[call & mask]) + call / indices.count) % data.keyCount
      try put(index, in: store)
    }
  }

  /// Measures while another thread repeats `work`.
  private func beside(
    _ work: @escaping @Sendable (_ turn: Int) throws -> Void, measure: () throws -> Measurement
  ) throws -> Measurement {
    let other = OtherThread()
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) {
      var turn = 0
      while !other.isOver.load(ordering: .relaxed) {
        do { try work(turn) } catch {
          other.failure.withLock { $0 = error }
          return
        }
        turn += 1
      }
    }
    let result = Result { try measure() }
    other.isOver.store(true, ordering: .relaxed)
    group.wait()
    if let failure = other.failure.withLock({ $0 }) { throw failure }
    return try result.get()
  }
}

private final class OtherThread: Sendable {
  let isOver = Atomic(false)
  let failure = Mutex<(any Error)?>(nil)
}
