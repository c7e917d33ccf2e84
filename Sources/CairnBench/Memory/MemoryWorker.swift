import Cairn

/// The side of the benchmark that has a cache of objects: like `Worker`, but with keys and values
/// of the cache's types, made before the clock starts.
final class MemoryWorker<Cache: MemoryPeer>: WorkerServing {
  static var storeName: String { Cache.name }

  private let configuration: WorkerConfiguration
  private let data: Dataset
  private let keys: [Cache.Key]
  /// Each key's value, which is set repeatedly.
  private let values: [[UInt8]]
  private let sampleInterval: Int
  private var cache: Cache?

  init(_ configuration: WorkerConfiguration) {
    self.configuration = configuration
    let data = Dataset(
      keyCount: configuration.keyCount, valueByteCount: configuration.valueByteCount,
      seed: configuration.seed)
    self.data = data
    keys = (0..<data.keyCount).map { Cache.key(data.key($0).text) }
    values = (0..<data.keyCount).map { index in
      data.value(index, generation: 0).withBytes { [UInt8](copying: $0) }
    }
    sampleInterval = configuration.store.sampleInterval(
      valueByteCount: configuration.valueByteCount)
  }

  func answer(_ request: WorkerRequest) throws -> RoundResult? {
    switch request {
    case .prepare:
      if cache == nil { try fill() }
      return nil
    case .refill, .rewrite:
      try fill()
      return nil
    case .check(let workload):
      for index in 0..<data.keyCount {
        try check(try filled().value(forKey: keys[index]), index, workload)
      }
      return nil
    case .run(let workload, let round, let milliseconds):
      let round = Round(
        workload: workload, number: round, nanosecondLimit: UInt64(milliseconds) * 1_000_000,
        random: RandomSource(seed: configuration.seed &+ UInt64(round) << 32 &+ workload.salt))
      ProcessMemory.resetPeak()
      let measurement = try run(round)
      return RoundResult(
        measurement, diskByteCount: DirectoryTree.allocatedByteCount(path),
        peakResidentByteCount: ProcessMemory.peakByteCount)
    }
  }

  private var path: String { configuration.directory + "/cache" }

  func finish() throws { try cache?.close() }

  /// Fills the cache with all keys, like a hot set.
  private func fill() throws {
    try cache?.close()
    DirectoryTree.remove(path)
    let cache = try Cache(countLimit: data.keyCount, at: path)
    for index in 0..<data.keyCount { try cache.setValue(values[index], forKey: keys[index]) }
    self.cache = cache
  }

  private func filled() throws -> Cache {
    if cache == nil { try fill() }
    guard let cache else { preconditionFailure("filled just now") }
    return cache
  }

  private func run(_ round: Round) throws -> Measurement {
    var random = round.random
    let session = Session(
      cache: try filled(), keys: keys, values: values,
      pace: Pace(
        maximumCallCount: .max, nanosecondLimit: round.nanosecondLimit,
        sampleInterval: sampleInterval))
    let (share, isRead): (Double, Bool) =
      switch round.workload {
      case .memorySet: (1, false)
      case .memoryMixed95to5: (0.05, false)
      default: (0, true)
      }
    let threadCount =
      switch round.workload {
      case .memoryGetTwoThreads: 2
      case .memorySet: 1
      default: configuration.threadCount
      }
    let sequences = (0..<threadCount).map { _ in
      KeySequence.uniform(keyCount: data.keyCount, writeShare: share, random: &random)
    }
    @Sendable func measure(_ thread: Int) throws -> Measurement {
      if isRead { return try session.get(sequences[thread], round.workload) }
      return try session.run(sequences[thread], round.workload)
    }
    if threadCount == 1 { return try measure(0) }
    return .together(try ThreadTeam.run(threadCount, measure))
  }

  private func check(_ value: [UInt8]?, _ index: Int, _ workload: Workload) throws {
    if value != values[index] { throw Session<Cache>.mismatch(workload, index, value) }
  }
}

/// The state for the timed loops of one or several threads.
private struct Session<Cache: MemoryPeer>: Sendable {
  let cache: Cache
  let keys: [Cache.Key]
  let values: [[UInt8]]
  let pace: Pace

  func get(_ sequence: KeySequence, _ workload: Workload) throws -> Measurement {
    let indices = sequence.indices
    let mask = indices.count - 1
    return try Measurement.run(pace) { call in
      let index = Int(indices[call & mask])
      try check(try cache.value(forKey: keys[index]), index, workload, isThorough: call & 15 == 0)
    }
  }

  /// Reads, and writes where the sequence marks it.
  func run(_ sequence: KeySequence, _ workload: Workload) throws -> Measurement {
    let indices = sequence.indices
    let mask = indices.count - 1
    return try Measurement.run(pace) { call in
      let entry = indices[call & mask]
      let index = Int(entry & ~KeySequence.writeMark)
      if entry & KeySequence.writeMark != 0 {
        try cache.setValue(values[index], forKey: keys[index])
      } else {
        try check(try cache.value(forKey: keys[index]), index, workload, isThorough: call & 15 == 0)
      }
    }
  }

  /// Checks the length and the first byte of a returned value, and all bytes if `isThorough`:
  /// comparing all of them each time would take as long as the read.
  @inline(__always)
  private func check(
    _ value: [UInt8]?, _ index: Int, _ workload: Workload, isThorough: Bool
  ) throws {
    guard let value else { throw Self.mismatch(workload, index, nil) }
    let expected = values[index]
    guard value.count == expected.count, value.first == expected.first,
      !isThorough || value == expected
    else { throw Self.mismatch(workload, index, value) }
  }

  @inline(never)
  static func mismatch(_ workload: Workload, _ index: Int, _ value: [UInt8]?) -> BenchFailure {
    .mismatch(
      store: Cache.name, workload: workload.rawValue, key: "number \(index)",
      detail: value == nil ? "the key is missing" : "the value is wrong")
  }
}
