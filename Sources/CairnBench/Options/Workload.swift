/// A measured workload: one row of the report, with its name on the command line and in the JSON.
enum Workload: String, CaseIterable, Codable, Sendable {
  /// New keys, one put at a time, into an empty store.
  case fill
  /// New keys, 1,000 to a call; stores without batches loop.
  case fillBatch = "fill-batch"
  /// A new value for every key, one at a time, in random order.
  case overwrite
  /// A value copied out, for uniformly random keys.
  case get
  /// A value read in place, without a copy.
  case getZeroCopy = "get-zero-copy"
  /// 64 keys in a call. Operations are counted by key, but percentiles are of calls.
  case getMany = "get-many"
  /// Keys that the store does not have.
  case getMissing = "get-missing"
  /// Keys by Zipf's law with exponent 0.99; the popular keys are spread over the key space.
  case getZipf = "get-zipf"
  /// Reads by two threads; their total.
  case getTwoThreads = "get-2-threads"
  case getZeroCopyTwoThreads = "get-zero-copy-2-threads"
  case getMissingTwoThreads = "get-missing-2-threads"
  case getZipfTwoThreads = "get-zipf-2-threads"
  /// `get-zero-copy` after the store was reopened and every value was read once.
  case getZeroCopyAgain = "get-zero-copy-again"
  /// Every key, one at a time, in random order.
  case delete
  /// 95 % `get`, 5 % `overwrite`.
  case mixed95to5 = "mixed-95-5"
  /// The same by two threads, each on its own half of the keys; their total.
  case mixed95to5TwoThreads = "mixed-95-5-2-threads"
  /// Half `get`, half `overwrite`.
  case mixed50to50 = "mixed-50-50"
  /// `get` while another thread repeatedly rewrites the keys' values and compacts.
  case getCompacting = "get-compacting"
  /// `overwrite` while another thread repeatedly compacts.
  case overwriteCompacting = "overwrite-compacting"
  /// Opening a cleanly closed store, up to the first value read.
  case openClean = "open-clean"
  /// Opening a store, up to the first value read, after its process had opened it, rewritten
  /// 100,000 of the values and been killed.
  case openKilled = "open-killed"
  /// One compaction after half of the keys were overwritten. The overwrites are not measured. Each
  /// key of the store counts as one operation.
  case compact
  /// Overwriting uniformly random keys, four times as many as there are, while the store reclaims
  /// space by itself.
  case churn
  /// Requests by Zipf's law while disk space is limited to a third of all values. A miss stores the
  /// value.
  case limited
  /// New keys, each put acknowledged once it survives a power cut.
  case durablePut = "durable-put"
  /// The same by sixteen threads on one store; their total.
  case durablePut16Threads = "durable-put-16-threads"
  /// `get` from caches that hold all keys: in memory, or Cairn's on disk with or without a memory
  /// tier.
  case memoryGet = "memory-get"
  /// The same by two threads; their total.
  case memoryGetTwoThreads = "memory-get-2-threads"
  /// A new value for a key in such a cache.
  case memorySet = "memory-set"
  /// 95 % `memory-get`, 5 % `memory-set`.
  case memoryMixed95to5 = "memory-mixed-95-5"

  /// The order of measurement: rows that need an empty store come first, rows that use the store up
  /// come last.
  static let runOrder: [Workload] = [
    .fillBatch, .fill, .openKilled, .get, .getZeroCopy, .getMany, .getMissing, .getZipf,
    .getTwoThreads, .getZeroCopyTwoThreads, .getMissingTwoThreads, .getZipfTwoThreads,
    .getZeroCopyAgain, .getCompacting, .mixed95to5, .mixed95to5TwoThreads, .mixed50to50, .overwrite,
    .overwriteCompacting,
    .churn, .compact, .openClean, .delete, .limited, .durablePut,
    .durablePut16Threads, .memoryGet, .memoryGetTwoThreads, .memorySet, .memoryMixed95to5,
  ]

  /// The rows of `--scale`, which show how costs grow with the number of keys.
  static let scale: [Workload] = [
    .fill, .get, .getMissing, .getMany, .getTwoThreads, .getCompacting, .overwrite, .churn,
    .compact, .openClean,
    .delete,
  ]

  /// The rows of `--images`.
  static let images: [Workload] = [
    .fill, .getZipf, .mixed95to5, .overwrite, .limited, .openClean,
  ]

  /// The rows that `--threads` runs on any number of threads.
  static let threaded: [Workload] = [
    .get, .getZeroCopy, .getMissing, .getZipf, .mixed95to5, .memoryGet, .memoryMixed95to5,
  ]

  /// For a row on two threads, the same row on one thread.
  var onOneThread: Workload? {
    switch self {
    case .getTwoThreads: .get
    case .getZeroCopyTwoThreads: .getZeroCopy
    case .getMissingTwoThreads: .getMissing
    case .getZipfTwoThreads: .getZipf
    case .mixed95to5TwoThreads: .mixed95to5
    case .memoryGetTwoThreads: .memoryGet
    default: nil
    }
  }

  /// Whether the workload is part of a run that names no workloads.
  var isStandard: Bool {
    switch self {
    case .churn, .compact, .limited, .getZeroCopyTwoThreads, .getMissingTwoThreads,
      .getZipfTwoThreads, .getZeroCopyAgain, .mixed95to5TwoThreads:
      false
    default: true
    }
  }

  /// Whether the workload is for caches of objects instead of stores of bytes.
  var isInMemory: Bool {
    switch self {
    case .memoryGet, .memoryGetTwoThreads, .memorySet, .memoryMixed95to5: true
    default: false
    }
  }

  /// The abilities that a store needs for the row to be meaningful.
  var needs: StoreAbilities {
    switch self {
    case .getZeroCopy, .getZeroCopyTwoThreads: .zeroCopyReads
    case .getZeroCopyAgain: [.zeroCopyReads, .reopening]
    case .mixed95to5TwoThreads: .concurrentWrites
    case .getCompacting, .overwriteCompacting, .compact: .compaction
    case .openClean, .openKilled: .reopening
    case .durablePut: .durableWrites
    case .durablePut16Threads: [.durableWrites, .concurrentWrites]
    default: []
    }
  }

  /// Whether the workload needs the store that `fill` leaves.
  var needsFilledStore: Bool {
    switch self {
    case .fill, .fillBatch, .limited, .durablePut, .durablePut16Threads: false
    default: true
    }
  }

  /// Whether every round begins by writing all keys, measured or not.
  var refillsEveryRound: Bool { self == .fill || self == .openKilled || self == .delete }

  /// Whether the workload changes values, which must then be checked.
  var changesMain: Bool {
    switch self {
    case .fill, .openKilled, .overwrite, .overwriteCompacting, .delete, .mixed95to5,
      .mixed95to5TwoThreads, .mixed50to50, .churn, .compact:
      true
    default: false
    }
  }

  var durability: String {
    switch self {
    case .durablePut, .durablePut16Threads: "durable"
    case _ where isInMemory: "none"
    default: "process"
    }
  }

  static let rewrittenKeyCount = 100_000

  /// Keys in one call of `get-many`, and values in one call of `fill-batch`.
  static let keysPerCall = 64
  static let valuesPerBatch = 1_000
}
