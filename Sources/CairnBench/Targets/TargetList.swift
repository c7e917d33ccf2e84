import Cairn

/// How many keys the rows of targets have.
struct TargetSizes: Sendable {
  var threads = [1_000, 5_000, 20_000, 50_000, 100_000, 1_000_000]
  var many = 1_000_000
  var memory = [1_000, 10_000, 100_000]
  var tiered = 10_000
  /// The numbers of values of 16 and 256 KiB, enough to fill several segments.
  var large = [(keyCount: 30_000, byteCount: 16 << 10), (keyCount: 2_000, byteCount: 256 << 10)]
  var batch = 200
  var smallStores = 200

  /// For `--quick`.
  static let quick = TargetSizes(
    threads: [20, 60], many: 60, memory: [30, 50, 70], tiered: 80,
    large: [(keyCount: 12, byteCount: 16 << 10), (keyCount: 4, byteCount: 256 << 10)], batch: 3,
    smallStores: 20)
}

extension Target {
  /// Every figure with an aim, in the order of the table.
  static func all(_ sizes: TargetSizes = TargetSizes()) -> [Target] {
    threads(sizes) + smallValues(sizes) + tiers(sizes) + memory(sizes) + largeValues(sizes)
      + [
        Target("copied a byte overwritten, uniform", .compaction(.uniform), .atMost(0.8)),
        Target("copied a byte overwritten, Zipf", .compaction(.zipf), .atMost(0.9)),
        Target("open of a small store", .smallStores(.open), .atMost(2)),
        Target("close of one, nothing written", .smallStores(.close), .atMost(5)),
        Target(
          "memory of each of \(sizes.smallStores) small stores", .smallStores(.memory), .atMost(60)),
      ]
  }

  private static func threads(_ sizes: TargetSizes) -> [Target] {
    // What the map and a peer gain shows what the machine allows.
    let rows: [(String, StoreKind, Workload, Workload)] = [
      ("get", .cairn, .getTwoThreads, .get),
      ("zero-copy", .cairn, .getZeroCopyTwoThreads, .getZeroCopy),
      ("Zipf", .cairn, .getZipfTwoThreads, .getZipf),
      ("bare-map get", .bareMap, .getTwoThreads, .get),
      ("lmdb get", .lmdb, .getTwoThreads, .get),
    ]
    return sizes.threads.flatMap { count in
      rows.map { name, store, workload, one in
        Target(
          "\(name), \(Figures.count(count)) keys: 2 threads / 1",
          .ratio(
            Row(store: store, workload: workload, keyCount: count),
            to: [Row(store: store, workload: one, keyCount: count)]), .atLeast(1.9))
      }
    }
  }

  private static func smallValues(_ sizes: TargetSizes) -> [Target] {
    func row(_ store: StoreKind, _ workload: Workload) -> Row {
      Row(store: store, workload: workload, keyCount: sizes.many)
    }
    func beside(_ store: StoreKind, _ name: String, _ workload: Workload, _ bound: Double)
      -> Target
    {
      Target(
        "\(name) / \(store.rawValue)",
        .ratio(row(.cairn, workload), to: [row(store, workload)]), .atLeast(bound))
    }
    return [
      beside(.lmdb, "get", .get, 1.8), beside(.bareMapSerial, "get", .get, 0.95),
      beside(.lmdb, "zero-copy", .getZeroCopy, 2), beside(.lmdb, "absent", .getMissing, 6),
      beside(.lmdb, "Zipf", .getZipf, 2.2),
      beside(.lmdb, "fill", .fill, 5), beside(.bareMapSerial, "fill", .fill, 0.85),
      beside(.lmdb, "overwrite", .overwrite, 2.7),
      beside(.bareMapSerial, "overwrite", .overwrite, 0.95),
      beside(.lmdb, "delete", .delete, 4), beside(.bareMapSerial, "delete", .delete, 0.6),
      beside(.bareMap, "64 keys in one call", .getMany, 1.2),
      Target(
        "batches of 1,000 / single puts",
        .ratio(row(.cairn, .fillBatch), to: [row(.cairn, .fill)]), .atLeast(1.5)),
    ]
  }

  private static func tiers(_ sizes: TargetSizes) -> [Target] {
    func row(_ workload: Workload) -> Row {
      Row(store: .tieredCache, workload: workload, keyCount: sizes.tiered)
    }
    return [
      Target("tiered hit, instructions", .instructions(.tieredGet), .atMost(800)),
      Target("tiered miss in memory, instructions", .instructions(.tieredMiss), .atMost(3_200)),
      Target("tiered set, instructions", .instructions(.tieredSet), .atMost(4_000)),
      Target(
        "tiered hit: 2 threads / 1",
        .ratio(row(.memoryGetTwoThreads), to: [row(.memoryGet)]), .atLeast(1.8)),
    ]
  }

  private static func memory(_ sizes: TargetSizes) -> [Target] {
    func beside(_ name: String, _ workload: Workload, _ count: Int, _ bound: Double) -> Target {
      func row(_ store: StoreKind) -> Row {
        Row(store: store, workload: workload, keyCount: count)
      }
      return Target(
        "memory \(name), \(Figures.count(count)) keys / dictionary",
        .ratio(row(.memoryCache), to: [row(.dictionary)]), .atLeast(bound))
    }
    return zip(sizes.memory, [0.9, 0.9, 0.8]).map { beside("get", .memoryGet, $0, $1) }
      + sizes.memory.map { beside("set", .memorySet, $0, 0.8) }
      + [
        Target("memory hit, S3-FIFO: 2 threads / 1", .policy(.s3FIFO), .atLeast(1.9)),
        Target("memory hit, SIEVE: 2 threads / 1", .policy(.sieve), .atLeast(1.9)),
        Target("memory hit, LRU: 2 threads / 1", .policy(.leastRecentlyUsed), .atLeast(1.3)),
      ]
  }

  private static func largeValues(_ sizes: TargetSizes) -> [Target] {
    let writes: [(String, Workload)] = [
      ("overwrite", .overwrite), ("mixed 50/50", .mixed50to50), ("churn", .churn),
    ]
    var targets: [Target] = []
    for (count, byteCount) in sizes.large {
      let size = "\(byteCount >> 10) KiB"
      func row(_ store: StoreKind, _ workload: Workload) -> Row {
        Row(store: store, workload: workload, keyCount: count, valueByteCount: byteCount)
      }
      func beside(
        _ others: [StoreKind], of store: StoreKind, _ name: String, _ workload: Workload,
        _ bound: Double
      ) -> Target {
        Target(
          "\(name), \(size) / \(others.count > 1 ? "best other" : others[0].rawValue)",
          .ratio(row(store, workload), to: others.map { row($0, workload) }), .atLeast(bound))
      }
      targets.append(
        beside([.lmdb], of: .cairnFirstRead, "zero-copy again", .getZeroCopyAgain, 0.9))
      for (name, workload) in writes {
        targets += [
          beside([.lmdb], of: .cairn, name, workload, 0.6),
          beside([.lmdbInterval], of: .cairnInterval, name, workload, 2),
          beside([.sqlite, .rocksDB, .filePerKey], of: .cairn, name, workload, 1),
        ]
      }
    }
    func batch(_ store: StoreKind) -> Row {
      Row(
        store: store, workload: .fillBatch, keyCount: sizes.batch, valueByteCount: 256 << 10)
    }
    let peers: [StoreKind] = [.lmdb, .sqlite, .yykv, .rocksDB, .filePerKey]
    targets.append(
      Target(
        "batches of \(sizes.batch) × 256 KiB / best peer",
        .ratio(batch(.cairn), to: peers.map(batch)), .atLeast(1.2)))
    return targets
  }
}
