import Testing

@testable import CairnBench

@Suite("The command line")
struct BenchOptionsTests {
  @Test("understands every option")
  func everything() throws {
    let options = try #require(
      try BenchOptions.parse([
        "--quick", "--stores", "cairn,file-per-key,bare-map", "--workloads=fill,get-2-threads",
        "--n", "100000", "--value-bytes", "100", "--seed", "18446744073709551615", "--dir", "/x",
        "--json", "a.json", "--svg=b=c.svg", "--summary", "s.svg",
      ]))
    #expect(
      options
        == BenchOptions(
          isQuick: true, stores: [.cairn, .filePerKey, .bareMap],
          workloads: [.fill, .getTwoThreads], keyCount: 100_000, valueByteCount: 100,
          seed: .max, directory: "/x", jsonPath: "a.json", svgPath: "b=c.svg",
          summaryPath: "s.svg"))
    #expect(try BenchOptions.parse([]) == BenchOptions())
    #expect(try BenchOptions.parse(["--full"]) == BenchOptions(isFull: true))
    #expect(
      try BenchOptions.parse(["--policies", "--quick", "--seed", "3"])
        == BenchOptions(isQuick: true, isPolicies: true, seed: 3))
    #expect(
      try BenchOptions.parse(["--from", "a.json", "--summary", "s.svg"])
        == BenchOptions(summaryPath: "s.svg", resultsPath: "a.json"))
    #expect(
      try BenchOptions.parse(["--compaction", "--dir", "/x"])
        == BenchOptions(isCompaction: true, directory: "/x"))
    #expect(
      try BenchOptions.parse(["--stalls", "--quick"])
        == BenchOptions(isQuick: true, isStalls: true))
    #expect(
      try BenchOptions.parse(["--targets", "--quick", "--json", "t.json"])
        == BenchOptions(isQuick: true, isTargets: true, jsonPath: "t.json"))
    #expect(
      try BenchOptions.parse(["--threads", "4", "--workloads", "get,memory-get"])
        == BenchOptions(workloads: [.get, .memoryGet], threadCount: 4))
    #expect(try BenchOptions.parse(["--quick", "--help"]) == nil)
  }

  @Test(
    "refuses what it does not understand",
    arguments: [
      ["--fast"], ["fill"], ["--n"], ["--n", "0"], ["--n", "-1"], ["--n", "x"], ["--n="],
      ["--stores", "cairn,lmdb2"], ["--stores", "cairn,"], ["--workloads", "Fill"],
      ["--value-bytes", "0"], ["--value-bytes", "999999999999"], ["--seed", "-1"],
      ["--quick=yes"], ["--scale=10"], ["--quick", "--scale"], ["--policies=lru"], ["--full=1"],
      ["--full", "--quick"], ["--full", "--scale"], ["--full", "--policies"],
      ["--policies", "--scale"], ["--policies", "--n", "3"], ["--stores", "cairn", "--policies"],
      ["--stalls=2"], ["--stalls", "--compaction"], ["--stalls", "--targets"],
      ["--stalls", "--n", "5"], ["--stalls", "--json", "x"],
      ["--compaction=2"], ["--compaction", "--policies"], ["--compaction", "--json", "x"],
      ["--compaction", "--full"], ["--compaction", "--summary", "s.svg"],
      ["--dir"], ["--json", ""], ["--policies", "--summary", "s.svg"],
      ["--threads"], ["--threads", "0"], ["--threads", "2", "--scale"],
      ["--threads", "2", "--workloads", "get,fill"], ["--threads", "2", "--policies"],
      ["--targets=1"], ["--targets", "--full"], ["--targets", "--n", "5"],
      ["--targets", "--stores", "cairn"], ["--targets", "--svg", "x"], ["--targets", "--policies"],
      ["--targets", "--compaction"], ["--images", "--full"], ["--images", "--value-bytes", "100"],
      ["--images=1"], ["--images", "--targets"], ["--targets", "--threads", "2"],
      ["--from", "a.json"], ["--from", "a.json", "--svg", "b.svg", "--quick"],
    ])
  func refusals(arguments: [String]) {
    #expect(throws: UsageError.self) { try BenchOptions.parse(arguments) }
  }

  @Test("workloads have the names of the specification")
  func workloadNames() {
    let names =
      "fill fill-batch overwrite limited get get-zero-copy get-many get-missing get-zipf get-2-threads "
      + "delete mixed-95-5 mixed-50-50 open-clean open-killed durable-put durable-put-16-threads "
      + "get-compacting overwrite-compacting churn compact memory-get memory-get-2-threads memory-set "
      + "get-zero-copy-again mixed-95-5-2-threads memory-mixed-95-5 get-zero-copy-2-threads get-missing-2-threads get-zipf-2-threads"
    #expect(
      Set(Workload.allCases.map(\.rawValue)) == Set(names.split(separator: " ").map(String.init)))
    #expect(Set(Workload.runOrder) == Set(Workload.allCases))
    #expect(Workload.runOrder.count == Workload.allCases.count)
  }

  @Test("a run by scale has the same rows with ever more keys")
  func scalePlan() throws {
    let plan = Plan(try #require(try BenchOptions.parse(["--scale"])))
    #expect(plan.sections.map(\.keyCount) == [10_000, 100_000, 1_000_000, 10_000_000])
    #expect(plan.sections.allSatisfy { $0.workloads == Workload.scale && $0.stores == [.cairn] })
    let narrowed = Plan(try #require(try BenchOptions.parse(["--scale", "--n", "300"])))
    #expect(narrowed.sections.map(\.keyCount) == [300])
    #expect(
      Plan(BenchOptions(isFull: true)).sections.allSatisfy { !$0.workloads.contains(.churn) })
  }

  @Test("a run without options has six rows of few keys")
  func summaryPlan() throws {
    let options = try #require(try BenchOptions.parse(["--json", "r.json", "--seed", "3"]))
    let plan = Plan(options)
    #expect(plan.sections.count == 1 && plan.repeatingSeconds == 15)
    #expect(plan.sections[0].workloads.count == 6)
    #expect(plan.sections[0].stores.contains(.cairn))
    #expect(plan.sections[0].stores.contains(.filePerKey))
    #expect(plan.sections[0].keyCount * plan.sections[0].valueByteCount <= 2_000_000)
    for narrowed in [
      ["--full"], ["--quick"], ["--stores", "cairn"], ["--n", "10"], ["--threads", "2"],
    ] {
      let other = try #require(try BenchOptions.parse(narrowed))
      #expect(!other.isSummary && Plan(other).sections.count > 1, "\(narrowed)")
    }
  }

  @Test("a full run compares with the reference at a million keys, a narrowed one does not")
  func plan() throws {
    let plain = Plan(BenchOptions(isFull: true))
    #expect(plain.repeatingSeconds == 80)
    #expect(Plan(BenchOptions(isEveryStore: true)).repeatingSeconds == nil)
    #expect(
      plain.sections.map(\.valueByteCount)
        == [100, 1_024, 16_384, 262_144, 100, 100, 100, 100, 100])
    #expect(plain.sections[4...6].map(\.keyCount) == [1_000, 10_000, 100_000])
    #expect(plain.sections[4...6].allSatisfy { $0.stores == StoreKind.memory })
    #expect(plain.sections[7].stores == StoreKind.tiered && plain.sections[7].keyCount == 10_000)
    #expect(plain.sections.last?.keyCount == 1_000_000)
    #expect(plain.sections.last?.stores == [.cairn, .bareMap])
    #expect(plain.sections.prefix(4).allSatisfy { $0.keyCount <= 50_000 })
    let narrowed = Plan(BenchOptions(keyCount: 100_000, valueByteCount: 100))
    #expect(narrowed.repeatingSeconds == nil)
    #expect(narrowed.sections.map(\.keyCount) == [100_000])
  }

  @Test("all stores are compared side by side, also at a million keys")
  func everyStore() throws {
    let options = try #require(try BenchOptions.parse(["--stores", "all"]))
    #expect(options.stores == StoreKind.onDisk)
    let plan = Plan(options)
    #expect(plan.sections.prefix(4).allSatisfy { $0.stores == StoreKind.onDisk })
    #expect(plan.sections[4...6].allSatisfy { $0.stores == StoreKind.memory })
    let million = try #require(plan.sections.last)
    #expect(million.keyCount == 1_000_000)
    #expect(million.stores == StoreKind.onDisk.filter { $0 != .filePerKey && $0 != .yykv })
    #expect(Set(million.workloads).isSuperset(of: [.fill, .get, .delete, .durablePut]))
    let narrowed = try #require(try BenchOptions.parse(["--stores", "all", "--n", "1000"]))
    #expect(Plan(narrowed).sections.count == 4)
    // The last option counts.
    let last = try #require(try BenchOptions.parse(["--stores", "all", "--stores", "cairn"]))
    #expect(last.stores == [.cairn] && !last.isEveryStore)
  }

  @Test("with a number of threads, a run has the reading rows, on that many threads")
  func threadPlan() throws {
    let plan = Plan(try #require(try BenchOptions.parse(["--threads", "3"])))
    #expect(plan.sections.count == 4)
    for section in plan.sections {
      #expect(Set(section.workloads) == Set(Workload.threaded) && section.threadCount == 3)
      #expect(section.title.hasSuffix(", 3 threads"))
    }
    #expect(Plan(BenchOptions(isFull: true)).sections.allSatisfy { $0.threadCount == 1 })
  }

  #if Peers
    @Test("peers are named like all others")
    func peers() throws {
      let options = try #require(
        try BenchOptions.parse(["--stores", "lmdb,lmdb-interval,sqlite,yykv,rocksdb"]))
      #expect(options.stores == StoreKind.peers)
      #expect(StoreKind.onDisk.filter(StoreKind.peers.contains) == StoreKind.peers)
    }
  #else
    @Test(
      "a peer that is not built in is refused, and the error names what it needs",
      arguments: StoreKind.peers)
    func peers(kind: StoreKind) throws {
      let error = #expect(throws: UsageError.self) {
        try BenchOptions.parse(["--stores", "cairn,\(kind.rawValue)"])
      }
      let text = try #require(error).description
      for part in [
        kind.rawValue, "--traits Peers", "liblmdb-dev", "libsqlite3-dev", "librocksdb-dev",
      ] {
        #expect(text.contains(part), "\(text)")
      }
      #expect(StoreKind.onDisk.allSatisfy { !StoreKind.peers.contains($0) })
    }
  #endif
}
