import Cairn
import Testing

@testable import CairnBench

@Suite("The targets")
struct TargetTests {
  /// A row with a store's rate, in operations per second.
  private static func result(_ row: Target.Row, _ rate: Int) -> BenchResult {
    let section = Plan.Section(
      stores: [row.store], workloads: [row.workload], keyCount: row.keyCount,
      valueByteCount: row.valueByteCount, roundCount: 1, milliseconds: 1)
    let round = RoundResult(
      operationCount: rate, nanoseconds: 1_000_000_000, latencies: LatencyHistogram(),
      diskByteCount: 0, peakResidentByteCount: 0)
    return BenchResult(store: row.store, workload: row.workload, section, rounds: [round])
  }

  private static let cairn = Target.Row(store: .cairn, workload: .churn, keyCount: 9)
  private static let lmdb = Target.Row(store: .lmdb, workload: .churn, keyCount: 9)
  private static let sqlite = Target.Row(store: .sqlite, workload: .churn, keyCount: 9)

  @Test("a ratio is to the fastest other store, in the same workload at the same size")
  func ratios() {
    var figures = TargetFigures()
    let target = Target("x", .ratio(Self.cairn, to: [Self.lmdb, Self.sqlite]), .atLeast(1.5))
    figures.results = [Self.result(Self.cairn, 600), Self.result(Self.lmdb, 400)]
    #expect(figures.figure(of: target) == nil, "one of the others was not measured")
    figures.results.append(Self.result(Self.sqlite, 150))
    #expect(figures.figure(of: target) == 1.5)
    figures.results[1] = Self.result(Self.lmdb, 100)
    #expect(figures.figure(of: target) == 4)
    for change: (inout Target.Row) -> Void in [
      { $0.keyCount = 10 }, { $0.valueByteCount = 101 }, { $0.workload = .fill },
      { $0.store = .cairnInterval },
    ] {
      var row = Self.cairn
      change(&row)
      #expect(figures.figure(of: Target("x", .ratio(row, to: [Self.lmdb]), .atLeast(1))) == nil)
    }
    figures.instructions = .counted([.tieredGet: 901])
    figures.policies = [.sieve: 1.8]
    figures.compaction = [.zipf: 0.9]
    figures.smallStores = [.open: 1.2]
    var without = figures
    without.instructions = .needs(package: "valgrind")
    #expect(
      without.figure(of: Target("x", .instructions(.tieredGet), .atMost(1))) == nil)
    func figure(_ measure: Target.Measure) -> Double? {
      figures.figure(of: Target("x", measure, .atMost(1)))
    }
    #expect(figure(.instructions(.tieredGet)) == 901 && figure(.instructions(.tieredSet)) == nil)
    #expect(figure(.policy(.sieve)) == 1.8 && figure(.policy(.s3FIFO)) == nil)
    #expect(figure(.compaction(.zipf)) == 0.9 && figure(.compaction(.uniform)) == nil)
    #expect(figure(.smallStores(.open)) == 1.2 && figure(.smallStores(.close)) == nil)
  }

  @Test("an aim is met at its bound and beyond, in its direction")
  func aims() {
    for (aim, figure, isMet) in [
      (Target.Aim.atLeast(1.9), 1.9, true), (.atLeast(1.9), 1.8999, false),
      (.atMost(900), 900, true), (.atMost(900), 900.5, false), (.atMost(900), 1, true),
    ] {
      #expect(aim.isMet(by: figure) == isMet)
      let target = Target("x", .policy(.sieve), aim)
      #expect(TargetOutcome(target, figure: figure, missing: []).isMet == isMet)
    }
    let target = Target("x", .policy(.sieve), .atLeast(1))
    #expect(TargetOutcome(target, figure: nil, missing: []).isMet == nil)
  }

  @Test("the plan has the rows of the targets that the build can measure, and no others")
  func plan() {
    for sizes in [TargetSizes(), .quick] {
      let targets = Target.all(sizes)
      let plan = TargetRun.plan(targets, isQuick: false)
      var rows: [Target.Row] = []
      for section in plan.sections {
        for store in section.stores {
          for workload in section.workloads where section.includes(workload, of: store) {
            rows.append(
              Target.Row(
                store: store, workload: workload, keyCount: section.keyCount,
                valueByteCount: section.valueByteCount))
          }
        }
      }
      let needed = targets.filter { $0.missingPackages().isEmpty }.flatMap(\.rows)
      #expect(Set(rows) == Set(needed) && Set(rows).count == rows.count)
      // Stores that take turns run at the same size. Caches do not take turns with stores.
      let titles = plan.sections.map { "\($0.title) \($0.stores[0].isCache)" }
      #expect(Set(titles).count == titles.count)
      #expect(rows.allSatisfy { $0.store.supports($0.workload) })
    }
  }

  @Test("without peers the rows that need them name the packages, and the others stay")
  func withoutPeers() throws {
    let isBuilt: (StoreKind) -> Bool = { !StoreKind.peers.contains($0) }
    let missing = Target.all().map { $0.missingPackages(isBuilt: isBuilt) }
    #expect(missing.count { $0 == ["liblmdb-dev"] } == 27)
    #expect(missing.count { $0 == ["libsqlite3-dev", "librocksdb-dev"] } == 6)
    #expect(missing.count { $0 == ["liblmdb-dev", "libsqlite3-dev", "librocksdb-dev"] } == 1)
    #expect(missing.count(where: \.isEmpty) == missing.count - 34)
    #expect(Target.all().allSatisfy { $0.missingPackages { _ in true }.isEmpty })
  }

  @Test("the table has 80 columns, whatever the figures are, and says what is missing")
  func table() throws {
    let targets = Target.all()
    #expect(Set(targets.map(\.name)).count == targets.count)
    var outcomes = targets.map { TargetOutcome($0, figure: 1234.5, missing: []) }
    for figures in [
      outcomes, Target.all(.quick).map { TargetOutcome($0, figure: 0.00123, missing: []) },
    ] {
      let lines = TargetTable.text(figures).split(separator: "\n")
      #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    }
    outcomes = [
      TargetOutcome(Target("a", .policy(.sieve), .atLeast(1.9)), figure: 1.95, missing: []),
      TargetOutcome(
        Target("b", .instructions(.tieredGet), .atMost(4000)), figure: 4567, missing: []),
      TargetOutcome(
        Target("c", .ratio(Self.cairn, to: [Self.lmdb]), .atLeast(2)), figure: nil,
        missing: ["libsqlite3-dev", "librocksdb-dev"]),
    ]
    let rows = TargetTable.text(outcomes).split(separator: "\n").prefix(5)
      .map { $0.split(separator: " ").joined(separator: " ") }
    #expect(
      rows == [
        "row figure aim met?", "a 1.95 × ≥ 1.9 × yes", "b 4,567 ≤ 4,000 NO",
        "c needs libsqlite3-dev +1 ≥ 2 × –", "met: 1 of 2; not measured: 1",
      ])
    let missing = targets.map { TargetOutcome($0, figure: nil, missing: ["a longer run"]) }
    let lines = TargetTable.text(missing).split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 80 })
  }

  @Test("callgrind's total is found in either of its forms")
  func instructions() {
    let result = "events: Ir\nfn=(1) main\n12 7\nsummary: 1234000\n\ntotals: 1234000\n"
    #expect(InstructionCount.total(result) == 1_234_000)
    #expect(InstructionCount.total("events: Ir\ntotals: 5\n") == 5)
    #expect(InstructionCount.total("events: Ir\n") == nil)
  }
}
