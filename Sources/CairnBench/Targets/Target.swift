import Cairn

/// A figure with an aim.
struct Target: Sendable {
  /// What must be measured.
  enum Measure: Sendable {
    /// A row's rate, divided by that of the fastest of other rows.
    case ratio(Row, to: [Row])
    /// The instructions of one operation, as `Fuzz/instructions` counts them.
    case instructions(OperationRun)
    /// Hits of a cache in memory by two threads, divided by those of one thread.
    case policy(EvictionPolicy)
    /// Bytes that compaction copies per byte overwritten.
    case compaction(CompactionRun.Skew)
    case smallStores(SmallStores.Part)
  }

  /// A store's result in one workload.
  struct Row: Hashable, Sendable {
    var store: StoreKind
    var workload: Workload
    var keyCount: Int
    var valueByteCount = 100
  }

  enum Aim: Sendable, Equatable {
    case atLeast(Double)
    case atMost(Double)

    func isMet(by figure: Double) -> Bool {
      switch self {
      case .atLeast(let bound): figure >= bound
      case .atMost(let bound): figure <= bound
      }
    }
  }

  let name: String
  let measure: Measure
  let aim: Aim

  init(_ name: String, _ measure: Measure, _ aim: Aim) {
    self.name = name
    self.measure = measure
    self.aim = aim
  }

  /// The rows that the figure comes from.
  var rows: [Row] {
    if case .ratio(let row, let others) = measure { return [row] + others }
    return []
  }

  /// The Debian packages that the target needs but this build lacks, in the order of the stores.
  func missingPackages(isBuilt: (StoreKind) -> Bool = \.isBuilt) -> [String] {
    var packages: [String] = []
    for row in rows where !isBuilt(row.store) {
      if let package = row.store.package, !packages.contains(package) { packages.append(package) }
    }
    return packages
  }

  var unit: String {
    switch measure {
    case .ratio, .policy: " ×"
    case .instructions: ""
    case .compaction: " B"
    case .smallStores(let part): part == .memory ? " KB" : " ms"
    }
  }
}

/// Everything that was measured for targets.
struct TargetFigures: Sendable {
  var results: [BenchResult] = []
  var instructions = InstructionCount.Outcome.counted([:])
  var policies: [EvictionPolicy: Double] = [:]
  var compaction: [CompactionRun.Skew: Double] = [:]
  var smallStores: [SmallStores.Part: Double] = [:]

  /// The figure of a target, or `nil` if a part of it was not measured.
  func figure(of target: Target) -> Double? {
    switch target.measure {
    case .ratio(let row, let others):
      let rates = others.compactMap(rate)
      guard rates.count == others.count, let fastest = rates.max(), fastest > 0 else { return nil }
      return rate(row).map { $0 / fastest }
    case .instructions(let operation):
      guard case .counted(let counts) = instructions else { return nil }
      return counts[operation].map(Double.init)
    case .policy(let policy): return policies[policy]
    case .compaction(let skew): return compaction[skew]
    case .smallStores(let part): return smallStores[part]
    }
  }

  private func rate(_ row: Target.Row) -> Double? {
    results.first {
      $0.store == row.store && $0.workload == row.workload && $0.n == row.keyCount
        && $0.valueBytes == row.valueByteCount
    }?.opsPerSecond
  }
}
