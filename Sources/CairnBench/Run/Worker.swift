import Cairn
import CairnLibC
import FoundationEssentials

/// The side of the benchmark that has a store: one process for one store and one value size, so
/// that all memory in use is that store's. Executes requests, one round at a time.
///
/// Generic over the store, so that the calls in the timed loops are direct for all stores.
final class Worker<Store: KeyValueStore>: WorkerServing {
  static var storeName: String { Store.name }

  let configuration: WorkerConfiguration
  let data: Dataset
  let sampleInterval: Int
  /// The store of all rows except those with a separate one.
  private(set) var main: Store?
  /// Whether `main` contains every key.
  private(set) var isFilled = false
  private var mainDiskByteCount: Int?
  /// The bytes that this process had written when the round began.
  private var writtenBefore = 0

  init(_ configuration: WorkerConfiguration) {
    self.configuration = configuration
    data = Dataset(
      keyCount: configuration.keyCount, valueByteCount: configuration.valueByteCount,
      areImages: configuration.areImages, seed: configuration.seed)
    sampleInterval = configuration.store.sampleInterval(
      valueByteCount: configuration.valueByteCount)
  }

  func answer(_ request: WorkerRequest) throws -> RoundResult? {
    switch request {
    case .prepare:
      if !isFilled { try refill() }
      return nil
    case .refill:
      try refill()
      return nil
    case .rewrite:
      try rewrite()
      return nil
    case .check(let workload):
      try checkEverything(workload)
      return nil
    case .run(let workload, let round, let milliseconds):
      ProcessMemory.resetPeak()
      writtenBefore = ProcessMemory.writtenByteCount
      let round = Round(
        workload: workload, number: round, nanosecondLimit: UInt64(milliseconds) * 1_000_000,
        random: RandomSource(seed: configuration.seed &+ UInt64(round) << 32 &+ workload.salt))
      return try run(round)
    }
  }

  private func run(_ round: Round) throws -> RoundResult {
    switch round.workload {
    case .fill:
      try makeEmptyMain()
      return try finish(round, try fill(try openMain()), changes: true)
    case .fillBatch: return try fillInBatches(round)
    case .get, .getZeroCopy, .getMany, .getMissing, .getZipf, .getTwoThreads,
      .getZeroCopyTwoThreads, .getMissingTwoThreads, .getZipfTwoThreads, .getZeroCopyAgain:
      return try finish(round, try read(round), changes: false)
    case .overwrite, .mixed95to5, .mixed95to5TwoThreads, .mixed50to50:
      return try finish(round, try repeated(round, change), changes: true)
    case .delete: return try finish(round, try change(round), changes: true)
    case .getCompacting:
      return try finish(round, try getWhileCompacting(round), changes: true)
    case .churn: return try finish(round, try repeated(round, churn), changes: true)
    case .compact: return try finish(round, try compact(round), changes: true)
    case .overwriteCompacting:
      return try finish(round, try overwriteWhileCompacting(round), changes: true)
    case .openClean: return try finish(round, try openRepeatedly(round), changes: false)
    case .openKilled:
      data.setAllGenerations(0)
      isFilled = true
      return try finish(round, try openRepeatedly(round), changes: true)
    case .limited: return try request(round)
    case .durablePut: return try putDurably(round, threadCount: 1)
    case .durablePut16Threads: return try putDurably(round, threadCount: 16)
    case .memoryGet, .memoryGetTwoThreads, .memorySet, .memoryMixed95to5:
      throw BenchFailure.unsuited("\(Store.name) is not a memory cache")
    }
  }

  /// Repeats a measurement, in other orders, until the round has lasted as long as the
  /// configuration says.
  private func repeated(
    _ round: Round, _ measure: (Round) throws -> Measurement
  ) throws -> Measurement {
    var round = round
    var sum = try measure(round)
    while sum.nanoseconds < UInt64(configuration.leastMilliseconds) * 1_000_000 {
      _ = round.random.next()
      sum.append(try measure(round))
    }
    return sum
  }

  /// Collects the figures for one row of the report, measured with the main store.
  private func finish(
    _ round: Round, _ measurement: Measurement, changes: Bool
  ) throws -> RoundResult {
    let peak = ProcessMemory.peakByteCount
    let written = ProcessMemory.writtenByteCount - writtenBefore
    // Measuring the disk usage of tens of thousands of files takes a while, and reads do not change
    // it.
    if changes { mainDiskByteCount = nil }
    let disk = mainDiskByteCount ?? DirectoryTree.allocatedByteCount(mainPath)
    mainDiskByteCount = disk
    var result = RoundResult(measurement, diskByteCount: disk, peakResidentByteCount: peak)
    result.writtenByteCount = written
    result.indexByteCount = try main?.indexByteCount
    return result
  }

  // MARK: The main store

  var mainPath: String { configuration.directory + "/main" }

  func openMain() throws -> Store {
    if let main { return main }
    let store = try Store(at: mainPath, options: storeOptions(.process))
    main = store
    return store
  }

  func finish() throws { try closeMain() }

  func closeMain() throws {
    try main?.close()
    main = nil
  }

  func makeEmptyMain() throws {
    try closeMain()
    DirectoryTree.remove(mainPath)
    data.setAllGenerations(Dataset.absent)
    isFilled = false
    mainDiskByteCount = nil
  }

  private func refill() throws {
    try makeEmptyMain()
    _ = try fill(try openMain())
  }

  private func fill(_ store: Store) throws -> Measurement {
    let data = self.data
    let pace = Pace(maximumCallCount: data.keyCount, sampleInterval: sampleInterval)
    let measurement = try Measurement.run(pace) { index in
      try data.key(index).withBytes { key throws in
        try data.value(index, generation: 0).withBytes { value throws in
          try store.setValue(value, forKey: key)
        }
      }
    }
    data.setAllGenerations(0)
    isFilled = true
    return measurement
  }

  /// Call after removing keys.
  func noteKeysRemoved() { isFilled = false }

  func storeOptions(_ durability: Durability) -> StoreOptions {
    StoreOptions(
      durability: durability == .process && configuration.store.isSyncedEachSecond
        ? .interval(.seconds(1)) : durability,
      verifiesEveryRead: configuration.store != .cairnFirstRead,
      expectedKeyCount: data.keyCount,
      expectedByteCount: data.keyCount * (BenchKey.byteCount + data.valueByteCount))
  }

  /// Reads every key and compares every byte; deleted keys must be absent.
  private func checkEverything(_ workload: Workload) throws {
    let store = try openMain()
    for index in 0..<data.keyCount {
      let value = try data.key(index).withBytes { key throws in try store.value(forKey: key) }
      if data.generation(of: index) == Dataset.absent {
        guard value == nil else { throw mismatch(workload, index, "the deleted key still exists") }
      } else {
        try check(value, index, workload, isThorough: true)
      }
    }
  }

  /// The number of threads of a row that reads.
  func threadCount(of workload: Workload) -> Int {
    workload.onOneThread == nil ? configuration.threadCount : 2
  }

  // MARK: Checks

  @inline(__always)
  func check(_ value: [UInt8]?, _ index: Int, _ workload: Workload, isThorough: Bool) throws {
    guard let value else { throw mismatch(workload, index, "the key is missing") }
    let difference = value.withBytes { bytes in
      data.difference(
        bytes, index: index, generation: data.generation(of: index), isThorough: isThorough)
    }
    if let difference { throw mismatch(workload, index, difference) }
  }

  @inline(never)
  func mismatch(_ workload: Workload, _ index: Int, _ detail: String) -> BenchFailure {
    .mismatch(
      store: Store.name, workload: workload.rawValue, key: data.key(index).text, detail: detail)
  }
}

/// One round from the worker's side.
struct Round {
  var workload: Workload
  var number: Int
  var nanosecondLimit: UInt64
  var random: RandomSource
}

extension Workload {
  /// Gives every workload a different order.
  var salt: UInt64 {
    rawValue.utf8.reduce(0) { ($0 &* 31 &+ UInt64($1)) & 0xFFFF_FFFF }
  }
}

extension RoundResult {
  init(_ measurement: Measurement, diskByteCount: Int, peakResidentByteCount: Int) {
    self.init(
      operationCount: measurement.operationCount, nanoseconds: measurement.nanoseconds,
      latencies: measurement.latencies, diskByteCount: diskByteCount,
      peakResidentByteCount: peakResidentByteCount)
  }
}
