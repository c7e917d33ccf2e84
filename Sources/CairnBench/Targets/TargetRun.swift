import Cairn
import FoundationEssentials

/// Measures every figure that has an aim, and nothing else.
struct TargetRun {
  let isQuick: Bool
  let seed: UInt64
  let directory: String

  private var sizes: TargetSizes { isQuick ? .quick : TargetSizes() }
  var targets: [Target] { Target.all(sizes) }

  /// The rows of the targets that this build can measure, as sections of stores that take turns.
  static func plan(_ targets: [Target], isQuick: Bool) -> Plan {
    var sections: [Plan.Section] = []
    for target in targets where target.missingPackages().isEmpty {
      for row in target.rows {
        let place = sections.firstIndex {
          $0.keyCount == row.keyCount && $0.valueByteCount == row.valueByteCount
            && $0.stores[0].isCache == row.store.isCache
        }
        guard let place else {
          sections.append(section(of: row, isQuick: isQuick))
          continue
        }
        sections[place].add(row)
      }
    }
    // On a slow machine the run still ends within a quarter of an hour, but with fewer rounds.
    return Plan(sections: sections, repeatableSeconds: 8, repeatingSeconds: 600)
  }

  private static func section(of row: Target.Row, isQuick: Bool) -> Plan.Section {
    let isLarge = row.valueByteCount > 4_096
    return Plan.Section(
      stores: [row.store], workloads: [row.workload], keyCount: row.keyCount,
      valueByteCount: row.valueByteCount,
      roundCount: isQuick ? 1 : row.store.isCache ? 9 : isLarge ? 3 : 5,
      milliseconds: isQuick ? 2 : row.store.isCache ? 60 : 200,
      rows: [row.store: [row.workload]])
  }

  func measure() throws -> TargetFigures {
    var figures = TargetFigures()
    // Count instructions first, so that an unsuitable tool ends the run at once. Skip them with
    // `--quick`, because counting takes a long time.
    if !isQuick {
      let operations = targets.compactMap { target -> OperationRun? in
        if case .instructions(let operation) = target.measure { operation } else { nil }
      }
      figures.instructions = try InstructionCount.of(operations, in: directory)
    }
    figures.smallStores = try SmallStores.measure(sizes.smallStores, in: directory)
    let plan = Self.plan(targets, isQuick: isQuick)
    var coordinator = Coordinator(plan: plan, seed: seed, directory: directory)
    for section in plan.sections { figures.results += try coordinator.run(section) }
    for (policy, rates) in try PolicyThreads(isQuick: isQuick, seed: seed).medians {
      figures.policies[policy] = rates.ratio
    }
    let compaction = CompactionRun(isQuick: isQuick, seed: seed, directory: directory)
    for skew in CompactionRun.Skew.allCases {
      figures.compaction[skew] = try compaction.result(bound: 1.5, skew: skew).amplification
    }
    return figures
  }

  /// The outcome of each target.
  func outcomes(_ figures: TargetFigures) -> [TargetOutcome] {
    targets.map { target in
      var missing = target.missingPackages()
      if case .instructions = target.measure {
        if isQuick { missing = ["a longer run"] }
        if case .needs(let package) = figures.instructions { missing = [package] }
      }
      return TargetOutcome(target, figure: figures.figure(of: target), missing: missing)
    }
  }
}

extension Plan.Section {
  fileprivate mutating func add(_ row: Target.Row) {
    if !stores.contains(row.store) { stores.append(row.store) }
    if !workloads.contains(row.workload) { workloads.append(row.workload) }
    rows?[row.store, default: []].insert(row.workload)
  }
}

/// A target and its measured figure.
struct TargetOutcome: Codable, Equatable {
  var row: String
  /// Absent if the figure could not be measured.
  var figure: Double?
  var aim: Double
  /// Whether the aim is a maximum instead of a minimum.
  var isAtMost: Bool
  var unit: String
  var isMet: Bool?
  /// What must be installed to measure the figure.
  var missing: [String]

  init(_ target: Target, figure: Double?, missing: [String]) {
    row = target.name
    self.figure = figure
    (aim, isAtMost) =
      switch target.aim {
      case .atLeast(let bound): (bound, false)
      case .atMost(let bound): (bound, true)
      }
    unit = String(target.unit.drop { $0 == " " })
    isMet = figure.map(target.aim.isMet)
    self.missing = missing
  }
}

/// The results of `--targets` as JSON.
struct TargetReport: Codable {
  var machine: Machine
  var filesystem: FileSystem
  var seed: UInt64
  var targets: [TargetOutcome]
  /// The results that the figures come from.
  var results: [BenchResult]

  func json() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
  }
}
