package import CairnStore

/// A small store on disk, with its contents after each write. The kinds together contain every type
/// of file and record, as `StoreTrait` lists them.
package struct DamagedStore: Sendable {
  package typealias Contents = [[UInt8]: ByteEntry]

  package enum Kind: String, CaseIterable, Sendable {
    case closed, killed
    /// The power failed, which ended the boot.
    case powerCut = "power cut"
  }

  package let kind: Kind
  /// The store's files by name.
  package let files: [String: [UInt8]]
  /// The contents after each write. The last contents are those of the image.
  package let history: [Contents]
  /// The newest version in each of these contents.
  package let lastVersions: [UInt64]
  /// The first state that may be found: the last one that was durable and that later records
  /// confirm.
  package let durable: Int

  /// The files as they were at earlier times.
  package let earlier: [[String: [UInt8]]]

  private let blank: SimulatedDisk
  let configuration: StoreConfiguration

  package static let clock = ManualClock()

  package var byteCount: Int { files.values.reduce(0) { $0 + $1.count } }
  package var names: [String] { files.keys.sorted() }

  /// A store of each kind, for flipped bits and random damage.
  ///
  /// - Throws: `FuzzFailure` if a type of file or record is in none of them.
  package static func all(seed: UInt64 = 1) throws -> [DamagedStore] {
    let stores = try Kind.allCases.map { try DamagedStore($0, seed: seed) }
    let missing = stores.reduce(Set(StoreTrait.allCases)) { $0.subtracting($1.traits) }
    if !missing.isEmpty {
      throw FuzzFailure("no store has \(missing.map(\.rawValue).sorted().joined(separator: ", "))")
    }
    return stores
  }

  /// A log of more than one segment, after the outputs of compactions. If the power failed, the
  /// first segment written after these outputs is still open; otherwise it is sealed.
  package init(_ kind: Kind, seed: UInt64 = 1) throws {
    try self.init(
      kind, logByteCount: 77 << 10, segmentByteLimit: 64 << 10, seals: kind != .powerCut,
      isSynced: true, seed: seed)
  }

  /// - Parameters:
  ///   - logByteCount: the approximate size of the log.
  ///   - seals: whether background jobs run.
  ///   - isSynced: whether the store is synced, with a write after the sync.
  package init(
    _ kind: Kind, logByteCount: Int, segmentByteLimit: Int, seals: Bool, isSynced: Bool,
    seed: UInt64 = 1
  ) throws {
    self.kind = kind
    var configuration = StoreConfiguration.simulated(Self.clock)
    configuration.segmentByteLimit = segmentByteLimit
    self.configuration = configuration
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: seed)
    var writer = try Writer(process, configuration, seals: seals, seed: seed)
    try writer.write(
      logByteCount: logByteCount, isSynced: isSynced, overtakesCheckpoint: kind == .killed)
    earlier = writer.earlier
    (history, lastVersions, durable) = (writer.history, writer.lastVersions, writer.durable)
    writer.forgetStore()
    if kind == .closed { try writer.process.close() }
    writer.process.kill()
    files = Self.files(on: disk)
    // Another disk in the same boot, or in another.
    blank = kind == .powerCut ? SimulatedDisk().settled() : SimulatedDisk()
  }

  private static func files(on disk: SimulatedDisk) -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in disk.names(at: SimulatedProcess.path) {
      files[name] = disk.contents(of: "\(SimulatedProcess.path)/\(name)")
    }
    // The reserve may have any length, and would otherwise be most of the store.
    files[FileName.reserve] = files[FileName.reserve].map { Array($0.prefix(4096)) }
    return files
  }

  /// A disk with these files in place of the store's.
  package func disk(with files: [String: [UInt8]]) -> SimulatedDisk {
    let disk = blank.emptyCopy()
    disk.makeDirectory(SimulatedProcess.path)
    for (name, bytes) in files { disk.setContents(bytes, of: "\(SimulatedProcess.path)/\(name)") }
    return disk
  }

  /// Writes the contents of the store.
  private struct Writer {
    private var store: Store?
    private(set) var process: SimulatedProcess
    private let configuration: StoreConfiguration
    private let seals: Bool
    private var random: FuzzRandom
    private(set) var earlier: [[String: [UInt8]]] = []
    private(set) var history: [Contents] = []
    private(set) var lastVersions: [UInt64] = []
    private(set) var durable = 0

    init(
      _ process: SimulatedProcess, _ configuration: StoreConfiguration, seals: Bool, seed: UInt64
    ) throws {
      store = try process.open(configuration)
      self.process = process
      self.configuration = configuration
      self.seals = seals
      random = FuzzRandom(seed: seed)
    }

    mutating func forgetStore() { store = nil }

    /// Lets the process die, so that the next one seals its segment. The damage does not bring back
    /// files of earlier processes.
    private mutating func restart(_ configuration: StoreConfiguration) throws {
      store = nil
      process.kill()
      process = SimulatedProcess.start(on: process.fileSystem.disk, seed: random.next())
      store = try process.open(configuration)
      earlier = []
    }

    private mutating func perform(_ write: (Store, inout FuzzRandom) throws -> Void) throws {
      guard let store else { preconditionFailure("the store is closed") }
      try write(store, &random)
      var contents: Contents = [:]
      try store.forEachEntry {
        contents[$0.key] = $0
        return .next
      }
      history.append(contents)
      lastVersions.append(try store.statistics().lastVersion)
      if history.count % 6 == 0 {
        earlier.append(DamagedStore.files(on: process.fileSystem.disk))
      }
    }

    private mutating func put(
      _ key: String, _ byteCount: Int, _ options: EntryOptions = .standard,
      durability: Durability = .process
    ) throws {
      try perform { store, random in
        try store.setValue(
          random.bytes(count: byteCount), forKey: key, options: options,
          durability: durability)
      }
    }

    /// - Parameter overtakesCheckpoint: whether the last step is a compaction of what the
    ///   checkpoint covers. The compaction includes everything dead, so no cut segment is left.
    mutating func write(logByteCount: Int, isSynced: Bool, overtakesCheckpoint: Bool) throws {
      try perform { _, _ in }
      try variety("a")
      try compact()
      // A log of more than one segment has a roll, and a sealed segment as well as the open one.
      var number = 0
      var rest = logByteCount
      while rest > 0 {
        let byteCount = min(rest, [60, 700, 12_000, 300, 2_000][number % 5])
        try put("fill \(number % 12)", byteCount)
        rest -= byteCount + 40
        number += 1
        if number % 9 == 0, seals { process.queue.runAll() }
      }
      if seals { process.queue.runAll() }
      try variety("b")
      guard isSynced else { return }
      if overtakesCheckpoint { try maintain { _ = try $0.compact() } }
      try put("synced", 40, durability: .durable)
      durable = history.count - 1
      // The first of these records what was durable.
      try put("unsynced", 50)
      try variety("c")
    }

    /// Operations that leave all contents unchanged.
    private func maintain(_ work: (Store) throws -> Void) throws {
      guard let store else { preconditionFailure("the store is closed") }
      try work(store)
    }

    /// Every kind of segment that a compaction leaves, and a checkpoint of them.
    private mutating func compact() throws {
      for name in ["a lifetime", "a batch 1"] { try put(name, 25) }
      try maintain { _ = try $0.compact() }
      // A segment that is compacted after newer ones were written, and then together with them:
      // its numbers follow theirs.
      try compactMiddle("x")
      for name in ["cold x", "newer x"] { try put(name, 20) }
      try maintain { _ = try $0.compact() }
      // A tombstone that a compaction keeps, because a put that it removed is left.
      try compactMiddle("y")
      try variety("later")
      // A removal and a longer lifetime at the end of a segment.
      try put("copied", 200)
      try perform { store, _ in
        try store.setLifetime(.seconds(800), forKey: "later lifetime")
      }
      try perform { store, _ in try store.removeValue(forKey: "later metadata") }
      try maintain { try $0.checkpoint() }
    }

    /// Compacts the second of three segments. The others have too few dead bytes.
    private mutating func compactMiddle(_ name: String) throws {
      try put("cold \(name)", 1500)
      try put("removed \(name)", 20)
      try restart(configuration)
      for _ in 0..<8 { try put("hot \(name)", 150) }
      try perform { store, _ in try store.removeValue(forKey: "removed \(name)") }
      try restart(configuration)
      try put("newer \(name)", 1500)
      try put("newest \(name)", 20)
      var greedy = configuration
      greedy.deadByteFloor = 0
      greedy.spaceBound = 1.1
      try restart(greedy)
      try maintain { try $0.maintain() }
      try restart(configuration)
    }

    /// Every type of record, and every field that one can have.
    private mutating func variety(_ name: String) throws {
      let all = EntryOptions(
        cost: 77, lifetime: .seconds(1000), idleLimit: .seconds(900), metadata: [1, 2, 3])
      try put("\(name) all", 33, all)
      try put("\(name) lifetime", 20, EntryOptions(lifetime: .seconds(500)))
      try put("\(name) idle", 21, EntryOptions(idleLimit: .seconds(800)))
      try put("\(name) cost", 22, EntryOptions(cost: .max))
      try put("\(name) metadata", 0, EntryOptions(metadata: [9]))
      try put("removed", 30)
      try perform { store, _ in try store.removeValue(forKey: "removed") }
      for (key, seconds) in [("lifetime", 700), ("all", 2000)] {
        try perform { store, _ in
          try store.setLifetime(.seconds(seconds), forKey: "\(name) \(key)")
        }
      }
      try perform { store, random in
        let values = [random.bytes(count: 15), random.bytes(count: 16)]
        try store.write { batch in
          try batch.setValue(values[0], forKey: "\(name) batch 0")
          try batch.removeValue(forKey: "\(name) cost")
          try batch.setValue(values[1], forKey: "\(name) all", options: .idleLimit(.seconds(3)))
        }
      }
      try put("\(name) idle", 8)
    }
  }
}
