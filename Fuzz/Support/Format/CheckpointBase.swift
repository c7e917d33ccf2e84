import CairnStore

/// A store with a checkpoint, and all values that its keys ever had.
struct CheckpointBase: Sendable {
  private struct FileOfStore: Sendable {
    var name: String
    var bytes: [UInt8]
  }

  static let key: @Sendable (Int) -> [UInt8] = { Array("key \($0)".utf8) }
  static let keyCount = 40

  private let files: [FileOfStore]
  /// The name and the bytes of the checkpoint.
  let name: String
  let checkpoint: [UInt8]
  /// The contents of the store.
  let contents: [[UInt8]: [UInt8]]
  /// The values that a key ever had.
  private(set) var history: [[UInt8]: Set<[UInt8]>] = [:]

  private static let closed = Result { try CheckpointBase(isKilled: false) }
  private static let killed = Result { try CheckpointBase(isKilled: true) }

  static func of(_ options: FormatInput.Options) throws -> CheckpointBase {
    try (options.contains(.second) ? killed : closed).get()
  }

  /// - Parameter isKilled: whether another session followed and was killed.
  private init(isKilled: Bool) throws {
    let disk = SimulatedDisk()
    let clock = ManualClock()
    var contents: [[UInt8]: [UInt8]] = [:]
    var history: [[UInt8]: Set<[UInt8]>] = [:]
    func put(_ number: Int, _ byteCount: Int, in store: Store) throws {
      let key = Self.key(number)
      let value = [UInt8](repeating: UInt8(truncatingIfNeeded: byteCount), count: byteCount)
      try store.setValue(
        value, forKey: key, lifetime: number % 5 == 0 ? .seconds(1000) : .standard,
        durability: .process)
      contents[key] = value
      history[key, default: []].insert(value)
    }
    func remove(_ number: Int, in store: Store) throws {
      try store.removeValue(forKey: Self.key(number), durability: .process)
      contents[Self.key(number)] = nil
    }
    let first = SimulatedProcess.start(on: disk, seed: 1)
    _ = try first.open(.simulated(clock))
    if let store = first.store {
      for number in 0..<Self.keyCount { try put(number, 1500 + number, in: store) }
      for number in 0..<10 { try put(number, 3000 + number, in: store) }
      for number in 4..<8 { try remove(number, in: store) }
      try store.compact()
      try store.setLifetime(.seconds(5000), forKey: Self.key(15))
      for number in 10..<14 { try put(number, 40 + number, in: store) }
      for number in 8..<9 { try remove(number, in: store) }
      try store.setLifetime(.seconds(5000), forKey: Self.key(10))
    }
    try first.close()
    let second = SimulatedProcess.start(on: disk, seed: 2)
    if isKilled {
      _ = try second.open(.simulated(clock))
      if let store = second.store {
        for number in 12..<18 { try put(number, 50 + number, in: store) }
        try remove(20, in: store)
        try store.setLifetime(.seconds(7000), forKey: Self.key(25))
      }
      second.kill()
    }
    let path = SimulatedProcess.path
    files = disk.names(at: path).compactMap { name in
      disk.contents(of: "\(path)/\(name)").map { FileOfStore(name: name, bytes: $0) }
    }
    guard let (listed, bytes, _) = disk.listedCheckpoint else {
      throw FuzzFailure("the store has no checkpoint")
    }
    name = listed.split(separator: "/").last.map(String.init) ?? ""
    checkpoint = bytes
    self.contents = contents
    self.history = history
  }

  /// The numbers in the checkpoint.
  var fields: [EncodedField] {
    let size = Int(checkpoint.number(at: 12, count: 4))
    var fields = [
      EncodedField(8, 2), EncodedField(12, 4), EncodedField(72, 4), EncodedField(76, 4),
    ]
    fields += stride(from: 32, to: 72, by: 8).map { EncodedField($0, 8) }
    // Shards are located by their sizes, so that most changes pass the first checks.
    let table = size - 8 - Checkpoint.shardCount * Checkpoint.shardByteCount
    fields += stride(from: Checkpoint.fixedByteCount, to: table, by: 8).map { EncodedField($0, 8) }
    for place in stride(from: table, to: size - 8, by: Checkpoint.shardByteCount)
    where checkpoint[place + 8] > 0 {
      fields += [8, 12].map { EncodedField(place + $0, 4) }
    }
    fields += stride(from: size, to: checkpoint.count - 7, by: 8).map { EncodedField($0, 8) }
    return fields
  }

  /// A disk with the store on it, and another checkpoint in place of its own.
  ///
  /// - Parameter isBound: whether the manifest has the checksum of the checkpoint.
  func disk(with bytes: [UInt8], isBound: Bool) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let path = SimulatedProcess.path
    disk.makeDirectory(path)
    for file in files where file.name != name && !(isBound && file.name == FileName.manifest) {
      disk.setContents(file.bytes, of: "\(path)/\(file.name)")
    }
    disk.setContents(bytes, of: "\(path)/\(name)")
    guard isBound, let manifest = files.first(where: { $0.name == FileName.manifest }) else {
      return disk
    }
    var changed = try Manifest(decoding: manifest.bytes.rawSpan)
    let size = bytes.count < 16 ? 0 : Int(bytes.number(at: 12, count: 4))
    if size >= 4, size <= bytes.count {
      changed.checkpointChecksum = UInt32(bytes.number(at: size - 4, count: 4))
    }
    disk.setContents(changed.encoded(), of: "\(path)/\(FileName.manifest)")
    return disk
  }
}
