import FoundationEssentials

/// The results of a run, as in the JSON file. The property names are the names in the file.
struct BenchReport: Codable, Sendable {
  var machine: Machine
  var filesystem: FileSystem
  var seed: UInt64
  var options: ReportedOptions
  var results: [BenchResult]

  /// Where and how the results were measured, on one line.
  var caption: String { "\(machine.summary), \(filesystem.type), seed \(seed)" }

  func json() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
  }

  /// The report in a file that an earlier run wrote.
  static func read(from path: String) throws(BenchFailure) -> BenchReport {
    do {
      return try JSONDecoder().decode(BenchReport.self, from: Data(contentsOf: URL(filePath: path)))
    } catch {
      throw BenchFailure.unsuited("no results of cairn-bench in \(path): \(error)")
    }
  }

  /// Groups results that were measured with the same keys and values, in the order of the run.
  static func sections(
    of results: [BenchResult]
  ) -> [(section: Plan.Section, results: [BenchResult])] {
    var groups: [[BenchResult]] = []
    for result in results {
      if let place = groups.firstIndex(where: { $0[0].isBeside(result) }) {
        groups[place].append(result)
      } else {
        groups.append([result])
      }
    }
    return groups.map { (Plan.Section(of: $0), $0) }
  }
}

extension Plan.Section {
  /// The section of these results, which must not be empty.
  fileprivate init(of results: [BenchResult]) {
    var stores: [StoreKind] = []
    for result in results where !stores.contains(result.store) { stores.append(result.store) }
    self.init(
      stores: stores,
      workloads: Workload.allCases.filter { kind in results.contains { $0.workload == kind } },
      keyCount: results[0].n, valueByteCount: results[0].valueBytes,
      areImages: results[0].images == true,
      roundCount: results.map(\.rounds).max() ?? 0, milliseconds: 0,
      threadCount: results[0].threads ?? 1)
  }
}

/// The options in effect.
struct ReportedOptions: Codable, Sendable {
  var quick: Bool
  var stores: [StoreKind]
  var workloads: [Workload]
  /// Absent if the number depended on the size of the values.
  var n: Int?
  var valueBytes: [Int]
  var directory: String?
  var optimized: Bool

  init(_ options: BenchOptions, _ plan: Plan) {
    quick = options.isQuick
    stores = StoreKind.allCases.filter { kind in
      plan.sections.contains { $0.stores.contains(kind) }
    }
    workloads = Workload.allCases.filter { workload in
      plan.sections.contains { $0.workloads.contains(workload) }
    }
    n = options.keyCount
    valueBytes = Array(Set(plan.sections.map(\.valueByteCount))).sorted()
    directory = options.directory
    #if DEBUG
      optimized = false
    #else
      optimized = true
    #endif
  }
}

/// The result of one store and workload: the medians of the rounds.
struct BenchResult: Codable, Sendable {
  var store: StoreKind
  var workload: Workload
  /// The number of keys in the store.
  var n: Int
  var valueBytes: Int
  /// `true` if values have the sizes of images; `valueBytes` is then about their mean. Otherwise
  /// absent.
  var images: Bool?
  /// Absent if there was one, or as many as the workload's name says.
  var threads: Int?
  /// The number of operations in all rounds.
  var operations: Int
  /// The median of the rounds.
  var opsPerSecond: Double
  var minimumOpsPerSecond: Double
  var maximumOpsPerSecond: Double
  var rounds: Int
  // Percentiles of the sampled calls of all rounds. A call of `get-many` or `fill-batch` covers
  // many keys.
  var p50Nanoseconds: UInt64
  var p99Nanoseconds: UInt64
  var p999Nanoseconds: UInt64
  /// Allocated blocks of the store's files after the row.
  var diskBytes: Int
  /// The highest peak of the rounds, including mapped pages of files.
  var peakResidentBytes: Int
  var durability: String
  /// The bytes that the process passed to the kernel for writing in the rounds, divided by the
  /// bytes of keys and values put. Only for rows of puts.
  var writeAmplification: Double?
  /// Bytes of index memory per key, after the row.
  var indexBytesPerKey: Double?
  /// The share of requests that found a value. Only for the row with a limit.
  var hitRatio: Double?

  init(
    store: StoreKind, workload: Workload, _ section: Plan.Section, rounds: [RoundResult]
  ) {
    self.store = store
    self.workload = workload
    n = section.keyCount
    valueBytes = section.valueByteCount
    images = section.areImages ? true : nil
    threads = section.threadCount > 1 ? section.threadCount : nil
    durability = store.isSyncedEachSecond ? "interval" : workload.durability
    self.rounds = rounds.count
    let rates = rounds.map(\.operationsPerSecond).sorted()
    minimumOpsPerSecond = rates.first ?? 0
    maximumOpsPerSecond = rates.last ?? 0
    opsPerSecond =
      rates.isEmpty ? 0 : (rates[(rates.count - 1) / 2] + rates[rates.count / 2]) / 2
    operations = rounds.reduce(0) { $0 + $1.operationCount }
    var latencies = LatencyHistogram()
    for round in rounds { latencies.merge(round.latencies) }
    p50Nanoseconds = latencies.percentile(0.5)
    p99Nanoseconds = latencies.percentile(0.99)
    p999Nanoseconds = latencies.percentile(0.999)
    diskBytes = rounds.last?.diskByteCount ?? 0
    peakResidentBytes = rounds.map(\.peakResidentByteCount).max() ?? 0
    if [.fill, .overwrite, .churn].contains(workload), operations > 0 {
      let put = operations * (BenchKey.byteCount + section.valueByteCount)
      let written = rounds.reduce(0) { $0 + ($1.writtenByteCount ?? 0) }
      writeAmplification = Double(written) / Double(put)
    }
    let hits = rounds.compactMap(\.hitCount)
    hitRatio = hits.isEmpty ? nil : Double(hits.reduce(0, +)) / Double(operations)
    indexBytesPerKey = rounds.last?.indexByteCount.map { Double($0) / Double(section.keyCount) }
  }
}

extension BenchResult {
  /// Whether both results were measured with the same keys, values and threads, and both on disk or
  /// both in memory.
  fileprivate func isBeside(_ other: BenchResult) -> Bool {
    n == other.n && valueBytes == other.valueBytes && threads == other.threads
      && workload.isInMemory == other.workload.isInMemory
  }

  /// How many times as fast Cairn was in the same row, if the results contain both.
  func cairnRatio(in results: [BenchResult]) -> Double? {
    let ours: StoreKind = workload.isInMemory ? .memoryCache : .cairn
    guard store != ours, opsPerSecond > 0 else { return nil }
    let cairn = results.first {
      $0.store == ours && $0.workload == workload && $0.n == n && $0.valueBytes == valueBytes
        && $0.threads == threads
    }
    return cairn.map { $0.opsPerSecond / opsPerSecond }
  }
}
