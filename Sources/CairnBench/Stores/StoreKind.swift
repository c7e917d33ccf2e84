/// The stores that can be measured. A peer is added here, and to `WorkerMain.run`.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case cairn
  case filePerKey = "file-per-key"
  // Peers from libraries of the system.
  case lmdb
  case sqlite
  case yykv
  case rocksDB = "rocksdb"
  // What the machine allows.
  case bareMap = "bare-map"
  case rawCopy = "raw-copy"
  case rawWrite = "raw-write"
  // Caches in memory.
  case memoryCache = "cairn-memory"
  case dictionary
  case weakNodes = "weak-nodes"
  case nsCache = "nscache"

  /// Those of a run that names none.
  static let standard: [StoreKind] = [.cairn, .filePerKey]
  /// Those that come from libraries, and are there only in a build with the trait `Peers`.
  static let peers: [StoreKind] = [.lmdb, .sqlite, .yykv, .rocksDB]
  /// Those that keep nothing on disk.
  static let memory: [StoreKind] = [.memoryCache, .dictionary, .weakNodes, .nsCache]

  /// Those of this build that are on disk: what `--stores all` stands for.
  static var onDisk: [StoreKind] { allCases.filter { $0.isBuilt && !memory.contains($0) } }

  /// Whether it is part of this build.
  var isBuilt: Bool {
    #if Peers
      return true
    #else
      return !Self.peers.contains(self)
    #endif
  }

  /// What a build with the peers needs.
  static let peersAdvice = """
    the peers are built by `swift run -c release --traits Peers cairn-bench`, with Debian's \
    packages liblmdb-dev, libsqlite3-dev and librocksdb-dev
    """

  var abilities: StoreAbilities {
    switch self {
    case .cairn: CairnStoreAdapter.abilities
    case .filePerKey: FilePerKeyStore.abilities
    case .bareMap: ReferenceStore.abilities
    case .rawCopy: RawCopyStore.abilities
    case .rawWrite: RawWriteStore.abilities
    #if Peers
      case .lmdb: LMDBStore.abilities
      case .sqlite: SQLiteStore.abilities
      case .yykv: YYKVStore.abilities
      case .rocksDB: RocksDBStore.abilities
    #else
      case .lmdb, .sqlite, .yykv, .rocksDB: []
    #endif
    case .memoryCache, .dictionary, .weakNodes, .nsCache: []
    }
  }

  func supports(_ workload: Workload) -> Bool {
    switch self {
    // These are no stores, but what a store that puts does at the least.
    case .rawCopy: workload == .fill
    case .rawWrite: workload == .fill || workload == .durablePut
    default:
      workload.isInMemory == Self.memory.contains(self)
        && abilities.isSuperset(of: workload.needs)
    }
  }

  /// Every how many operations one is timed by itself. Two looks at the clock take about 50 ns:
  /// nothing beside a system call or a large copy, too much beside a fast look-up.
  func sampleInterval(valueByteCount: Int) -> Int {
    if self == .filePerKey { return 1 }
    if Self.memory.contains(self) { return 32 }
    return valueByteCount < 4_096 ? 16 : valueByteCount < 65_536 ? 4 : 1
  }
}
