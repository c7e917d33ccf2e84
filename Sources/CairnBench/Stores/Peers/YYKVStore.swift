#if Peers
  import CSQLite3
  import Cairn
  import CairnLibC
  import Synchronization

  /// The design of YYKVStorage, the basis of YYDiskCache: a table of the entries, with values of up
  /// to 20 KiB in it, and a file for each larger value.
  ///
  /// - Each read sets the entry's access time in the table, which has an index on that time for
  ///   trims.
  /// - There are no batches: many values are set one by one.
  /// - One connection under one lock, and a write-ahead log that is synced when it is moved into
  ///   the database (`synchronous = NORMAL`), as in the original.
  /// - With `.durable`, which the original does not offer, every commit is synced, and a file and
  ///   its folder are synced before that.
  final class YYKVStore: KeyValueStore {
    static let name = StoreKind.yykv.rawValue
    static let abilities: StoreAbilities = [.durableWrites, .concurrentWrites, .reopening]

    private static let inlineByteLimit = 20 << 10

    private let files: YYKVFiles
    private let table: Mutex<YYKVTable>
    private let syncs: Bool

    init(at path: String, options: StoreOptions) throws {
      if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
        throw BenchFailure.lastSystemError("mkdir", path)
      }
      syncs = options.durability != .process
      files = try YYKVFiles(path + "/data")
      table = Mutex(try YYKVTable(path + "/manifest.sqlite", syncs: syncs))
    }

    func value(forKey key: RawSpan) throws -> [UInt8]? {
      try table.withLock { table in
        guard let row = try table.row(key) else { return nil }
        try table.touch(key)
        guard row.hasFile else { return row.inlineValue }
        if let value = try files.read(YYKVFiles.name(of: key)) { return value }
        // The file is gone, so the row is useless.
        try table.delete(key)
        return nil
      }
    }

    func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
      try table.withLock { table in try put(value, key, table) }
    }

    private func put(_ value: RawSpan, _ key: RawSpan, _ table: YYKVTable) throws {
      let name = YYKVFiles.name(of: key)
      if value.byteCount > Self.inlineByteLimit {
        // DURABILITY: the file comes first, so that the row of a new key never names a file with
        // only a part of the value.
        try files.write(value, name, syncs: syncs)
        try table.set(key, byteCount: value.byteCount, fileName: name, inlineValue: nil)
      } else {
        // Remove the file of an earlier, larger value.
        if try table.hasFile(key) { try files.remove(name) }
        try table.set(key, byteCount: value.byteCount, fileName: nil, inlineValue: value)
      }
    }

    func removeValue(forKey key: RawSpan) throws -> Bool {
      try table.withLock { table in
        if try table.hasFile(key) { try files.remove(YYKVFiles.name(of: key)) }
        return try table.delete(key)
      }
    }

    func close() throws {
      try table.withLock { try $0.connection.close() }
      files.close()
    }
  }
#endif
