/// The stores that can be measured. A peer is added here, and to `Worker.serve(_:)`.
enum StoreKind: String, CaseIterable, Codable, Sendable {
  case cairn
  case filePerKey = "file-per-key"
  case bareMap = "bare-map"
  // Caches in memory.
  case memoryCache = "cairn-memory"
  case dictionary
  case weakNodes = "weak-nodes"
  case nsCache = "nscache"

  /// Those of a run that names none.
  static let standard: [StoreKind] = [.cairn, .filePerKey]
  /// Those that keep nothing on disk.
  static let memory: [StoreKind] = [.memoryCache, .dictionary, .weakNodes, .nsCache]

  var abilities: StoreAbilities {
    switch self {
    case .cairn: CairnStoreAdapter.abilities
    case .filePerKey: FilePerKeyStore.abilities
    case .bareMap: ReferenceStore.abilities
    case .memoryCache, .dictionary, .weakNodes, .nsCache: []
    }
  }

  func supports(_ workload: Workload) -> Bool {
    workload.isInMemory == Self.memory.contains(self)
      && abilities.isSuperset(of: workload.needs)
  }

  /// Every how many operations one is timed by itself. Two looks at the clock take about 50 ns:
  /// nothing beside a system call or a large copy, too much beside a fast look-up.
  func sampleInterval(valueByteCount: Int) -> Int {
    if self == .filePerKey { return 1 }
    if Self.memory.contains(self) { return 32 }
    return valueByteCount < 4_096 ? 16 : valueByteCount < 65_536 ? 4 : 1
  }
}
