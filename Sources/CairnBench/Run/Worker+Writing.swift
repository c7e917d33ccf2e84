import Cairn
import CairnLibC

/// The rows that write: into the main store, or into a separate one.
extension Worker {
  func change(_ round: Round) throws -> Measurement {
    var random = round.random
    switch round.workload {
    case .overwrite:
      return try overwrite(round, .permutation(keyCount: data.keyCount, random: &random))
    case .delete:
      noteKeysRemoved()
      return try delete(round, .permutation(keyCount: data.keyCount, random: &random))
    default:
      return try mix(round, writeShare: round.workload == .mixed50to50 ? 0.5 : 0.05)
    }
  }

  private func overwrite(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, indices) = (try openMain(), sequence.indices)
    return try Measurement.run(pace(round, maximumCallCount: indices.count)) { call in
      try put(Int(indices[call]), in: store)
    }
  }

  /// Overwrites keys for as long as the round lasts.
  func overwriteUniformly(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, indices) = (try openMain(), sequence.indices)
    let mask = indices.count - 1
    let maximum = max(data.keyCount, Self.writtenByteLimit / max(data.valueByteCount, 1))
    return try Measurement.run(pace(round, maximumCallCount: maximum)) { call in
      try put(Int(indices[call & mask]), in: store)
    }
  }

  private func delete(_ round: Round, _ sequence: KeySequence) throws -> Measurement {
    let (store, data, indices) = (try openMain(), data, sequence.indices)
    return try Measurement.run(pace(round, maximumCallCount: indices.count)) { call in
      let index = Int(indices[call])
      let wasThere = try data.key(index).withBytes { key throws in
        try store.removeValue(forKey: key)
      }
      guard wasThere else { throw mismatch(round.workload, index, "the key is missing") }
      data.setGeneration(Dataset.absent, of: index)
    }
  }

  /// Each thread has its own keys, because a read during a write has no single right answer.
  private func mix(_ round: Round, writeShare: Double) throws -> Measurement {
    var random = round.random
    let threadCount = min(threadCount(of: round.workload), data.keyCount)
    let sequences = (0..<threadCount).map { _ in
      KeySequence.uniform(
        keyCount: data.keyCount / threadCount, writeShare: writeShare, random: &random)
    }
    // Limits what a fast store writes, because no store reclaims space while it is measured.
    let maximum =
      max(data.keyCount, Self.writtenByteLimit / max(data.valueByteCount, 1)) / threadCount
    let reader = Reader(store: try openMain(), data: data, sampleInterval: sampleInterval)
    return try onThreads(threadCount) { thread in
      try reader.mix(
        round, sequences[thread], thread, of: threadCount, maximumCallCount: maximum)
    }
  }

  private static var writtenByteLimit: Int { 256 << 20 }

  /// Writes the key's next generation.
  @inline(__always)
  func put(_ index: Int, in store: Store) throws { try store.putNext(index, of: data) }

  // MARK: Rows with a separate store

  func fillInBatches(_ round: Round) throws -> RoundResult {
    let path = configuration.directory + "/batch"
    DirectoryTree.remove(path)
    let store = try Store(at: path, options: storeOptions(.process))
    let (data, batch) = (data, min(Workload.valuesPerBatch, data.keyCount))
    var pairs: [(key: BenchKey, value: ValueSlice)] = []
    pairs.reserveCapacity(batch)
    var pace = pace(round, maximumCallCount: data.keyCount / batch)
    pace.sampleInterval = 1
    let measurement = try Measurement.run(pace, operationsPerCall: batch) { call in
      pairs.removeAll(keepingCapacity: true)
      for index in (call * batch)..<((call + 1) * batch) {
        pairs.append((data.key(index), data.value(index, generation: 0)))
      }
      try store.setValues(pairs)
    }
    return try conclude(
      round, measurement, store, path, written: [0..<measurement.operationCount])
  }

  func putDurably(_ round: Round, threadCount: Int) throws -> RoundResult {
    let path = configuration.directory + "/durable"
    DirectoryTree.remove(path)
    let store = try Store(at: path, options: storeOptions(.durable))
    if round.number == 0 {
      // Otherwise the first syncs of this row would write what earlier rows left unwritten. The
      // main store is no longer needed, and removed data need not be written.
      try makeEmptyMain()
      if configuration.settles { sync() }
    }
    let data = self.data
    let maximum = max(16, 256 << 20 / max(data.valueByteCount, 1) / threadCount)
    let pace = Pace(
      maximumCallCount: maximum, nanosecondLimit: round.nanosecondLimit, sampleInterval: 1)
    let measurements = try ThreadTeam.run(threadCount) { thread in
      try Measurement.run(pace) { call in
        let index = thread * maximum + call
        try data.key(index).withBytes { key throws in
          try data.value(index, generation: 0).withBytes { value throws in
            try store.setValue(value, forKey: key)
          }
        }
      }
    }
    let written = measurements.enumerated().map { thread, measurement in
      thread * maximum..<thread * maximum + measurement.operationCount
    }
    return try conclude(round, .together(measurements), store, path, written: written)
  }

  /// Reads everything back, then closes and removes the row's separate store.
  private func conclude(
    _ round: Round, _ measurement: Measurement, _ store: Store, _ path: String,
    written: [Range<Int>]
  ) throws -> RoundResult {
    let peak = ProcessMemory.peakByteCount
    for index in written.joined() {
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      guard let value else { throw mismatch(round.workload, index, "the key is missing") }
      let difference = value.withBytes {
        data.difference($0, index: index, generation: 0, isThorough: true)
      }
      if let difference { throw mismatch(round.workload, index, difference) }
    }
    let disk = DirectoryTree.allocatedByteCount(path)
    try store.close()
    DirectoryTree.remove(path)
    return RoundResult(measurement, diskByteCount: disk, peakResidentByteCount: peak)
  }
}

extension Reader {
  /// Reads, and writes where the sequence marks it. Runs on one of several threads, each with its
  /// own keys.
  fileprivate func mix(
    _ round: Round, _ sequence: KeySequence, _ thread: Int, of threadCount: Int,
    maximumCallCount: Int
  ) throws -> Measurement {
    let (store, data, indices) = (store, data, sequence.indices)
    let mask = indices.count - 1
    return try Measurement.run(pace(round, maximumCallCount: maximumCallCount)) { call in
      let marked = indices[call & mask]
      let index = Int(marked & ~KeySequence.writeMark) * threadCount + thread
      if marked & KeySequence.writeMark != 0 {
        try store.putNext(index, of: data)
      } else {
        let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
        try check(value, index, round, call)
      }
    }
  }
}

extension KeyValueStore {
  /// Writes the key's next generation.
  @inline(__always)
  fileprivate func putNext(_ index: Int, of data: Dataset) throws {
    let generation = data.nextGeneration(of: index)
    try data.key(index).withBytes { key throws in
      try data.value(index, generation: generation).withBytes { value throws in
        try setValue(value, forKey: key)
      }
    }
    data.setGeneration(generation, of: index)
  }
}
