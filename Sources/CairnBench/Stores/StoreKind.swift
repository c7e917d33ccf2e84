/// The measurable stores. Add a peer here and to `WorkerMain.run`.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case cairn
  /// Cairn as a cache sets it up: large values are verified at their first read.
  case cairnFirstRead = "cairn-first-read"
  case filePerKey = "file-per-key"
  // Peers from system libraries.
  case lmdb
  case sqlite
  case yykv
  case rocksDB = "rocksdb"
  // The limits of the machine.
  case bareMap = "bare-map"
  case rawCopy = "raw-copy"
  case rawWrite = "raw-write"
  // Caches in memory.
  case memoryCache = "cairn-memory"
  case dictionary
  case weakNodes = "weak-nodes"
  case nsCache = "nscache"

  /// The stores of a run that names none.
  static let standard: [StoreKind] = [.cairn, .filePerKey]
  /// The stores from libraries, which only a build with the trait `Peers` has.
  static let peers: [StoreKind] = [.lmdb, .sqlite, .yykv, .rocksDB]
  /// The stores that keep nothing on disk.
  static let memory: [StoreKind] = [.memoryCache, .dictionary, .weakNodes, .nsCache]

  /// The stores of this build that are on disk: the meaning of `--stores all`.
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
    case .cairn, .cairnFirstRead: CairnStoreAdapter.abilities
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
    // These are no stores, but the minimum work of a store that puts.
    case .rawCopy: workload == .fill
    case .rawWrite: workload == .fill || workload == .durablePut
    default:
      workload.isInMemory == Self.memory.contains(self)
        && abilities.isSuperset(of: workload.needs)
    }
  }

  /// How many operations there are for each one that is timed separately. Two reads of the clock
  /// take about 50 ns: negligible beside a system call or a large copy, too much beside a fast
  /// lookup.
  func sampleInterval(valueByteCount: Int) -> Int {
    if self == .filePerKey { return 1 }
    if Self.memory.contains(self) { return 32 }
    return valueByteCount < 4_096 ? 16 : valueByteCount < 65_536 ? 4 : 1
  }
}
