#if Peers
  import Cairn
  import CairnLibC
  import Testing

  @testable import CairnBench

  /// What every peer must do. The suites of the peers call these.
  @Suite("The peers")
  struct PeerStoreTests {
    static let durabilities: [Durability] = [.process, .interval(.milliseconds(1)), .durable]
    /// Sizes around the limits for values stored with the keys: of a page, of a row.
    private static let byteCounts = [0, 1, 100, 4_096, 20 << 10, 20 << 10 + 1, 300_000]

    private static func value(_ byteCount: Int, _ seed: Int) -> [UInt8] {
      (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
    }

    private func checkModel<Store: KeyValueStore>(_ type: Store.Type, _ durability: Durability)
      throws
    {
      let directory = try TemporaryDirectory()
      let options = StoreOptions(durability: durability)
      var store = try Store(at: directory.path + "/s", options: options)
      var model: [[UInt8]: [UInt8]] = [:]
      var random = RandomSource(seed: 8)
      for step in 0..<1_000 {
        let key = Array("key \(random.index(below: 60))".utf8)
        switch random.index(below: 8) {
        case 0: #expect(try store.remove(key) == (model.removeValue(forKey: key) != nil))
        case 1, 2:
          let byteCount = Self.byteCounts[random.index(below: Self.byteCounts.count)]
          let value = Self.value(byteCount, step)
          try store.put(value, key)
          model[key] = value
        case 3:
          let pairs = (0..<5).map { place in
            (key: Array("key \(random.index(below: 60))".utf8), value: Self.value(50, step + place))
          }
          try store.setValues(pairs)
          for (key, value) in pairs { model[key] = value }
        case 4:
          let keys = (0..<64).map { Array("key \($0)".utf8) }
          let values = try store.values(forKeys: keys)
          #expect(values == keys.map { model[$0] })
        case 5: #expect(try store.gotInPlace(key) == model[key])
        default: #expect(try store.got(key) == model[key])
        }
        if step % 250 == 249 {
          try store.compact()
          try store.close()
          store = try Store(at: directory.path + "/s", options: options)
        }
      }
      for number in 0..<64 {
        let key = Array("key \(number)".utf8)
        #expect(try store.got(key) == model[key])
      }
      #expect(try store.values(forKeys: [[UInt8]]()).isEmpty)
      try store.close()
    }

    @Test(
      "behave like a dictionary, and persist the contents", arguments: StoreKind.peers, durabilities
    )
    func model(kind: StoreKind, durability: Durability) throws {
      switch kind {
      case .lmdb, .lmdbInterval: try checkModel(LMDBStore.self, durability)
      case .sqlite: try checkModel(SQLiteStore.self, durability)
      case .yykv: try checkModel(YYKVStore.self, durability)
      case .rocksDB: try checkModel(RocksDBStore.self, durability)
      default: Issue.record("\(kind) is no peer")
      }
    }

    private func share(_ store: some KeyValueStore) throws {
      let found = try ThreadTeam.run(4) { thread in
        for number in 0..<100 {
          try store.put([UInt8(number)], Array("\(thread) \(number)".utf8))
          guard try store.got(Array("\(thread) \(number)".utf8)) == [UInt8(number)] else {
            return number
          }
        }
        return 100
      }
      #expect(found == [100, 100, 100, 100])
      // New threads, with the objects that earlier ones returned.
      let counts = try ThreadTeam.run(4) { thread in
        try (0..<100).count { try store.got(Array("\(thread) \($0)".utf8)) == [UInt8($0)] }
      }
      #expect(counts == [100, 100, 100, 100])
      try store.close()
    }

    @Test("may be used from any thread", arguments: StoreKind.peers)
    func threads(kind: StoreKind) throws {
      let directory = try TemporaryDirectory()
      let (path, options) = (directory.path + "/s", StoreOptions())
      switch kind {
      case .lmdb, .lmdbInterval: try share(LMDBStore(at: path, options: options))
      case .sqlite: try share(SQLiteStore(at: path, options: options))
      case .yykv: try share(YYKVStore(at: path, options: options))
      case .rocksDB: try share(RocksDBStore(at: path, options: options))
      default: Issue.record("\(kind) is no peer")
      }
    }

    private func openAndClose(_ kind: StoreKind, _ path: String) throws {
      let options = StoreOptions()
      switch kind {
      case .lmdb, .lmdbInterval: try LMDBStore(at: path, options: options).close()
      case .sqlite: try SQLiteStore(at: path, options: options).close()
      case .yykv: try YYKVStore(at: path, options: options).close()
      case .rocksDB: try RocksDBStore(at: path, options: options).close()
      default: Issue.record("\(kind) is no peer")
      }
    }

    @Test("say why they cannot be opened", arguments: StoreKind.peers)
    func unopenable(kind: StoreKind) throws {
      let directory = try TemporaryDirectory()
      let path = directory.path + "/absent/a/b"
      let error = #expect(throws: BenchFailure.self) { try openAndClose(kind, path) }
      #expect(
        error.map { "\($0)".contains("No such file") } == true, "\(String(describing: error))")
    }

    @Test("report that a file is damaged", arguments: StoreKind.peers)
    func damaged(kind: StoreKind) throws {
      let directory = try TemporaryDirectory()
      let path = directory.path + "/s"
      try openAndClose(kind, path)
      let names = ["data.mdb", "values.sqlite", "manifest.sqlite", "CURRENT"]
      for name in try DirectoryTree.names(in: path) where names.contains(name) {
        try overwrite(path + "/" + name)
      }
      let error = #expect(throws: BenchFailure.self) { try openAndClose(kind, path) }
      guard case .peer(let store, _, let message) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(kind.rawValue.hasPrefix(store))
      #expect(!message.isEmpty)
    }

    private func overwrite(_ path: String) throws {
      let file = unsafe open(path, O_WRONLY)
      defer { close(file) }
      try LineChannel.write([UInt8](repeating: 0x5A, count: 8_192), to: file, path: path)
    }

    @Test("accept every byte in a key", arguments: StoreKind.peers.filter { $0 != .yykv })
    func oddKeys(kind: StoreKind) throws {
      let directory = try TemporaryDirectory()
      func check(_ store: some KeyValueStore) throws {
        let keys: [[UInt8]] = [[0], [0, 0], [255, 10, 13], Array("a/b".utf8), Array("A".utf8)]
        for (index, key) in keys.enumerated() { try store.put([UInt8(index)], key) }
        for (index, key) in keys.enumerated() { #expect(try store.got(key) == [UInt8(index)]) }
        try store.close()
      }
      let options = StoreOptions()
      switch kind {
      case .lmdb, .lmdbInterval: try check(LMDBStore(at: directory.path, options: options))
      case .sqlite: try check(SQLiteStore(at: directory.path, options: options))
      case .rocksDB: try check(RocksDBStore(at: directory.path, options: options))
      default: Issue.record("\(kind) takes text only")
      }
    }

    @Test("LMDB refuses keys that it cannot store, with its own message", arguments: [0, 512])
    func impossibleKeys(byteCount: Int) throws {
      let directory = try TemporaryDirectory()
      let store = try LMDBStore(at: directory.path, options: StoreOptions())
      let key = [UInt8](repeating: 1, count: byteCount)
      let error = #expect(throws: BenchFailure.self) { try store.put([1], key) }
      #expect(error.map { "\($0)".hasPrefix("lmdb: mdb_put: MDB_BAD_VALSIZE") } == true)
      // The transaction was rolled back, so the next one can begin.
      try store.put([1], [2])
      #expect(try store.got([2]) == [1])
      try store.close()
    }
  }
#endif
