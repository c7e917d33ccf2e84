/// The measurable stores. Add a peer here and to `WorkerMain.run`.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case cairn
  /// Cairn as a cache sets it up: large values are verified at their first read.
  case cairnFirstRead = "cairn-first-read"
  /// Cairn synced once a second.
  case cairnInterval = "cairn-interval"
  case filePerKey = "file-per-key"
  // Peers from system libraries.
  case lmdb
  /// LMDB synced once a second.
  case lmdbInterval = "lmdb-interval"
  case sqlite
  case yykv
  case rocksDB = "rocksdb"
  // The limits of the machine.
  case bareMap = "bare-map"
  case bareMapSerial = "bare-map-serial"
  case rawCopy = "raw-copy"
  case rawWrite = "raw-write"
  // Caches in memory.
  case memoryCache = "cairn-memory"
  case dictionary
  case weakNodes = "weak-nodes"
  case nsCache = "nscache"
  // Cairn's cache on disk: with a memory tier for all entries, the same with the disk at its limit,
  // with a memory tier for one entry, and without a memory tier.
  case tieredCache = "cairn-tiered"
  case tieredCacheFull = "cairn-tiered-full"
  case tieredCacheMissing = "cairn-tiered-miss"
  case diskCache = "cairn-disk-cache"

  /// The stores of a run that names none.
  static let standard: [StoreKind] = [.cairn, .filePerKey]
  /// The stores from libraries, which only a build with the trait `Peers` has.
  static let peers: [StoreKind] = [.lmdb, .lmdbInterval, .sqlite, .yykv, .rocksDB]
  /// The caches that keep nothing on disk.
  static let memory: [StoreKind] = [.memoryCache, .dictionary, .weakNodes, .nsCache]
  /// Cairn's caches on disk.
  static let tiered: [StoreKind] = [
    .tieredCache, .tieredCacheFull, .tieredCacheMissing, .diskCache,
  ]

  /// Whether the store takes objects instead of bytes.
  var isCache: Bool { Self.memory.contains(self) || Self.tiered.contains(self) }
  /// Whether writes are synced once a second.
  var isSyncedEachSecond: Bool { self == .cairnInterval || self == .lmdbInterval }

  /// The stores of this build that are on disk and not caches: the meaning of `--stores all`.
  static var onDisk: [StoreKind] { allCases.filter { $0.isBuilt && !$0.isCache } }

  /// Whether the store is part of this build.
  var isBuilt: Bool {
    #if Peers
      return true
    #else
      return !Self.peers.contains(self)
    #endif
  }

  /// The Debian package that contains the store's library.
  var package: String? {
    switch self {
    case .lmdb, .lmdbInterval: "liblmdb-dev"
    case .sqlite, .yykv: "libsqlite3-dev"
    case .rocksDB: "librocksdb-dev"
    default: nil
    }
  }

  /// What a build with the peers needs.
  static let peersAdvice = """
    the peers are built by `swift run -c release --traits Peers cairn-bench`, with Debian's \
    packages liblmdb-dev, libsqlite3-dev and librocksdb-dev
    """

  var abilities: StoreAbilities {
    switch self {
    case .cairn, .cairnFirstRead: CairnStoreAdapter.abilities
    case .cairnInterval: CairnStoreAdapter.abilities.subtracting(.durableWrites)
    case .filePerKey: FilePerKeyStore.abilities
    case .bareMap, .bareMapSerial: ReferenceStore.abilities
    case .rawCopy: RawCopyStore.abilities
    case .rawWrite: RawWriteStore.abilities
    #if Peers
      case .lmdb: LMDBStore.abilities
      case .lmdbInterval: LMDBStore.abilities.subtracting(.durableWrites)
      case .sqlite: SQLiteStore.abilities
      case .yykv: YYKVStore.abilities
      case .rocksDB: RocksDBStore.abilities
    #else
      case .lmdb, .lmdbInterval, .sqlite, .yykv, .rocksDB: []
    #endif
    case .memoryCache, .dictionary, .weakNodes, .nsCache: []
    case .tieredCache, .tieredCacheFull, .tieredCacheMissing, .diskCache: []
    }
  }

  func supports(_ workload: Workload) -> Bool {
    switch self {
    // These are not stores, but do the minimum work of a put.
    case .rawCopy: workload == .fill
    case .rawWrite: workload == .fill || workload == .durablePut
    // These reclaim no space.
    case .bareMap where workload == .limited, .bareMapSerial where workload == .limited: false
    default:
      workload.isInMemory == isCache
        && abilities.isSuperset(of: workload.needs)
    }
  }

  /// One of this many operations is timed separately. Two reads of the clock take about 50 ns:
  /// negligible beside a system call or a large copy, too much beside a fast lookup.
  func sampleInterval(valueByteCount: Int) -> Int {
    if self == .filePerKey { return 1 }
    if isCache { return 32 }
    return valueByteCount < 4_096 ? 16 : valueByteCount < 65_536 ? 4 : 1
  }
}
