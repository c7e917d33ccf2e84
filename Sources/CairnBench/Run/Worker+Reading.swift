import Cairn

/// The rows that only read.
extension Worker {
  func read(_ round: Round) throws -> Measurement {
    var random = round.random
    let count = data.keyCount
    if round.workload == .getMany {
      return try getMany(round, .uniform(keyCount: count, random: &random))
    }
    if round.workload == .getZeroCopyAgain, round.number == 0 { try readOnce() }
    // Only the dataset and the store are shared; the worker itself is not.
    let reader = Reader(store: try openMain(), data: data, sampleInterval: sampleInterval)
    let row = round.workload.onOneThread ?? round.workload
    let sequences = (0..<threadCount(of: round.workload)).map { _ -> KeySequence in
      switch row {
      case .getZipf: .zipf(keyCount: count, random: &random)
      case .getMissing: .uniform(keyCount: count, first: count, random: &random)
      default: .uniform(keyCount: count, random: &random)
      }
    }
    return try onThreads(sequences.count) { thread in
      switch row {
      case .getZeroCopy, .getZeroCopyAgain:
        try reader.getWithoutCopying(round, sequences[thread])
      case .getMissing: try reader.getMissing(round, sequences[thread])
      default: try reader.get(round, sequences[thread])
      }
    }
  }

  /// Measures on this thread, or on several threads. Returns the total.
  func onThreads(
    _ count: Int, _ measure: @escaping @Sendable (Int) throws -> Measurement
  ) throws -> Measurement {
    count == 1 ? try measure(0) : .together(try ThreadTeam.run(count, measure))
  }

  /// Reopens the store and reads every value, so that whatever is checked only once has been
  /// checked.
  private func readOnce() throws {
    try closeMain()
    let store = try openMain()
    for index in 0..<data.keyCount {
      let value = try data.key(index).withBytes { key throws in
        try store.withValue(forKey: key) { unsafe $0.withUnsafeBytes { unsafe [UInt8]($0) } }
      }
      try check(value, index, .getZeroCopyAgain, isThorough: true)
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
    // A call reads 64 keys, so every call can be timed.
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

/// Calls for one key at a time, for one thread or several.
struct Reader<Store: KeyValueStore>: Sendable {
  let store: Store
  let data: Dataset
  let sampleInterval: Int

  func get(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, data, indices) = (store, data, sequence.indices)
    let mask = indices.count - 1
    return try Measurement.run(pace(round)) { call in
      let index = Int(indices[call & mask])
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      try check(value, index, round, call)
    }
  }

  /// Checks a value, and compares every byte of every sixteenth value.
  @inline(__always)
  func check(_ value: [UInt8]?, _ index: Int, _ round: Round, _ call: Int) throws {
    guard let value else { throw mismatch(round, index, "the key is missing") }
    let difference = value.withBytes { bytes in
      data.difference(
        bytes, index: index, generation: data.generation(of: index), isThorough: call & 15 == 0)
    }
    if let difference { throw mismatch(round, index, difference) }
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

  func pace(_ round: Round, maximumCallCount: Int = .max) -> Pace {
    Pace(
      maximumCallCount: maximumCallCount, nanosecondLimit: round.nanosecondLimit,
      sampleInterval: sampleInterval)
  }

  @inline(never)
  func mismatch(_ round: Round, _ index: Int, _ detail: String) -> BenchFailure {
    .mismatch(
      store: Store.name, workload: round.workload.rawValue, key: data.key(index).text,
      detail: detail)
  }
}
