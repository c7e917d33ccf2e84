import Cairn
import Synchronization

/// The rows that only read.
extension Worker {
  func read(_ round: Round) throws -> Measurement {
    var random = round.random
    let count = data.keyCount
    // Only the dataset and the store are shared; the worker itself is not.
    let reader = Reader(store: try openMain(), data: data, sampleInterval: sampleInterval)
    switch round.workload {
    case .getZipf: return try reader.get(round, .zipf(keyCount: count, random: &random))
    case .getZeroCopy:
      return try reader.getWithoutCopying(round, .uniform(keyCount: count, random: &random))
    case .getMany: return try getMany(round, .uniform(keyCount: count, random: &random))
    case .getMissing:
      return try reader.getMissing(
        round, .uniform(keyCount: count, first: count, random: &random))
    case .getTwoThreads:
      let sequences = (0..<2).map { _ in KeySequence.uniform(keyCount: count, random: &random) }
      return .together(try ThreadTeam.run(2) { try reader.get(round, sequences[$0]) })
    case .getZipfTwoThreads:
      let sequences = (0..<2).map { _ in KeySequence.zipf(keyCount: count, random: &random) }
      return .together(try ThreadTeam.run(2) { try reader.get(round, sequences[$0]) })
    case .getZeroCopyTwoThreads:
      let sequences = (0..<2).map { _ in KeySequence.uniform(keyCount: count, random: &random) }
      return .together(
        try ThreadTeam.run(2) { try reader.getWithoutCopying(round, sequences[$0]) })
    case .getMissingTwoThreads:
      let sequences = (0..<2).map { _ in
        KeySequence.uniform(keyCount: count, first: count, random: &random)
      }
      return .together(try ThreadTeam.run(2) { try reader.getMissing(round, sequences[$0]) })
    default: return try reader.get(round, .uniform(keyCount: count, random: &random))
    }
  }

  func get(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    try Reader(store: try openMain(), data: data, sampleInterval: sampleInterval)
      .get(round, sequence)
  }

  private func getMany(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, indices) = (try openMain(), sequence.indices)
    let mask = indices.count - 1
    let keysPerCall = Workload.keysPerCall
    var keys: [BenchKey] = []
    keys.reserveCapacity(keysPerCall)
    var pace = pace(round)
    // A call is 64 keys long, so each can be timed.
    pace.sampleInterval = 1
    return try Measurement.run(pace, operationsPerCall: keysPerCall) { call in
      let first = call &* keysPerCall
      keys.removeAll(keepingCapacity: true)
      for place in first..<(first + keysPerCall) {
        keys.append(data.key(Int(indices[place & mask])))
      }
      let values = try store.values(forKeys: keys)
      for (place, value) in values.enumerated() {
        let index = Int(indices[(first + place) & mask])
        try check(value, index, round.workload, isThorough: place == call & 63)
      }
      guard values.count == keysPerCall else {
        throw mismatch(round.workload, 0, "\(values.count) values for \(keysPerCall) keys")
      }
    }
  }

  func pace(_ round: Round, maximumCallCount: Int = .max) -> Pace {
    Pace(
      maximumCallCount: maximumCallCount, nanosecondLimit: round.nanosecondLimit,
      sampleInterval: sampleInterval)
  }
}

/// Reads of one key at a time, for one thread or several.
private struct Reader<Store: KeyValueStore>: Sendable {
  let store: Store
  let data: Dataset
  let sampleInterval: Int

  func get(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, data, indices) = (store, data, sequence.indices)
    let mask = indices.count - 1
    return try Measurement.run(pace(round)) { call in
      let index = Int(indices[call & mask])
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      guard let value else { throw mismatch(round, index, "the key is missing") }
      let difference = value.withBytes { bytes in
        data.difference(
          bytes, index: index, generation: data.generation(of: index),
          isThorough: call & 15 == 0)
      }
      if let difference { throw mismatch(round, index, difference) }
    }
  }

  func getWithoutCopying(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, data, indices) = (store, data, sequence.indices)
    let mask = indices.count - 1
    return try Measurement.run(pace(round)) { call in
      let index = Int(indices[call & mask])
      let generation = data.generation(of: index)
      let difference = try data.key(index).withBytes { key throws in
        try store.withValue(forKey: key) { bytes in
          data.difference(
            bytes, index: index, generation: generation, isThorough: call & 15 == 0)
        }
      }
      guard let difference else { throw mismatch(round, index, "the key is missing") }
      if let difference { throw mismatch(round, index, difference) }
    }
  }

  func getMissing(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, data, indices) = (store, data, sequence.indices)
    let mask = indices.count - 1
    return try Measurement.run(pace(round)) { call in
      let index = Int(indices[call & mask])
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      guard value == nil else {
        throw mismatch(round, index, "a key that was never written has a value")
      }
    }
  }

  private func pace(_ round: Round) -> Pace {
    Pace(
      maximumCallCount: .max, nanosecondLimit: round.nanosecondLimit,
      sampleInterval: sampleInterval)
  }

  @inline(never)
  private func mismatch(_ round: Round, _ index: Int, _ detail: String) -> BenchFailure {
    .mismatch(
      store: Store.name, workload: round.workload.rawValue, key: data.key(index).text,
      detail: detail)
  }
}
