import Cairn

/// The side of the benchmark that holds a cache in memory: like `Worker`, but with keys and values
/// in the caches' form, made before the clock starts.
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
      if cache == nil { fill() }
      return nil
    case .refill, .rewrite:
      fill()
      return nil
    case .check(let workload):
      for index in 0..<data.keyCount {
        try check(filled().value(forKey: keys[index]), index, workload)
      }
      return nil
    case .run(let workload, let round, let milliseconds):
      let round = Round(
        workload: workload, number: round, nanosecondLimit: UInt64(milliseconds) * 1_000_000,
        random: RandomSource(seed: configuration.seed &+ UInt64(round) << 32 &+ workload.salt))
      ProcessMemory.resetPeak()
      let measurement = try run(round)
      return RoundResult(
        measurement, diskByteCount: 0, peakResidentByteCount: ProcessMemory.peakByteCount)
    }
  }

  func finish() {}

  /// Fills the cache with all keys, like a hot set.
  private func fill() {
    let cache = Cache(countLimit: data.keyCount)
    for index in 0..<data.keyCount { cache.setValue(values[index], forKey: keys[index]) }
    self.cache = cache
  }

  private func filled() -> Cache {
    if cache == nil { fill() }
    guard let cache else { preconditionFailure("filled just now") }
    return cache
  }

  private func run(_ round: Round) throws -> Measurement {
    var random = round.random
    let session = Session(
      cache: filled(), keys: keys, values: values,
      pace: Pace(
        maximumCallCount: .max, nanosecondLimit: round.nanosecondLimit,
        sampleInterval: sampleInterval))
    func sequence(writeShare: Double) -> KeySequence {
      .uniform(keyCount: data.keyCount, writeShare: writeShare, random: &random)
    }
    switch round.workload {
    case .memorySet: return try session.run(sequence(writeShare: 1), round.workload)
    case .memoryMixed95to5: return try session.run(sequence(writeShare: 0.05), round.workload)
    case .memoryGetTwoThreads:
      let sequences = (0..<2).map { _ in sequence(writeShare: 0) }
      return .together(
        try ThreadTeam.run(2) { try session.run(sequences[$0], round.workload) })
    default: return try session.get(sequence(writeShare: 0), round.workload)
    }
  }

  private func check(_ value: [UInt8]?, _ index: Int, _ workload: Workload) throws {
    if value != values[index] { throw Session<Cache>.mismatch(workload, index, value) }
  }
}

/// The state for the timed loops: for one thread or several.
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
      try check(cache.value(forKey: keys[index]), index, workload, isThorough: call & 15 == 0)
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
        cache.setValue(values[index], forKey: keys[index])
      } else {
        try check(cache.value(forKey: keys[index]), index, workload, isThorough: call & 15 == 0)
      }
    }
  }

  /// Whether a returned value is the very array that was set, or has the same bytes: comparing them
  /// each time would take as long as the read.
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
      detail: value == nil ? "the key is missing" : "the value is another")
  }
}
