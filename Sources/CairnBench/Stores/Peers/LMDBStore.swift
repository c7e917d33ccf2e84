#if Peers
  import CLMDB
  import Cairn
  import CairnLibC

  /// LMDB: one environment, its one unnamed database, keys unchanged.
  ///
  /// - Reads use the mapping. Each thread has a transaction that is renewed for each read and reset
  ///   after it, which avoids making one for each read.
  /// - Each put and each batch is a transaction.
  /// - With `.process` nothing is synced (`MDB_NOSYNC`): committed data is in the page cache, so it
  ///   outlives the process. Pages are changed in the mapping (`MDB_WRITEMAP`), which is faster
  ///   here. `.interval` does the same, and a thread calls `mdb_env_sync`. With `.durable`, every
  ///   commit is synced, as LMDB does by default.
  // SAFETY: `@unchecked Sendable` because an environment is safe to use from any thread, and a read
  // transaction belongs to one thread at a time.
  @safe
  final class LMDBStore: KeyValueStore, @unchecked Sendable {
    static let name = StoreKind.lmdb.rawValue
    static let abilities: StoreAbilities = [
      .zeroCopyReads, .durableWrites, .concurrentWrites, .reopening,
    ]

    /// The reserved address space; the file grows as it is written.
    private static let mapByteCount = 64 << 30
    private static let readerLimit: UInt32 = 1_024

    private let environment: OpaquePointer
    private let database: MDB_dbi
    private let readers: PerThread<LMDBReader>
    private let sync: IntervalSync?

    init(at path: String, options: StoreOptions) throws {
      if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
        throw BenchFailure.lastSystemError("mkdir", path)
      }
      var opened: OpaquePointer?
      try lmdbCheck(unsafe mdb_env_create(&opened), "mdb_env_create")
      guard let environment = unsafe opened else {
        throw BenchFailure.peer(Self.name, call: "mdb_env_create", message: "no environment")
      }
      do {
        try lmdbCheck(
          unsafe mdb_env_set_mapsize(environment, Self.mapByteCount), "mdb_env_set_mapsize")
        try lmdbCheck(
          unsafe mdb_env_set_maxreaders(environment, Self.readerLimit), "mdb_env_set_maxreaders")
        // Reader slots belong to transactions, so that a transaction can pass to another thread.
        // Memory is not cleared before it is written.
        var flags = MDB_NOTLS | MDB_NOMEMINIT
        if options.durability != .durable { flags |= MDB_NOSYNC | MDB_WRITEMAP }
        try lmdbCheck(
          unsafe mdb_env_open(environment, path, UInt32(flags), 0o600), "mdb_env_open \(path)")
        database = try unsafe Self.openDatabase(environment)
        readers = try PerThread { try unsafe LMDBReader(environment) }
      } catch {
        unsafe mdb_env_close(environment)
        throw error
      }
      unsafe self.environment = environment
      guard case .interval(let interval) = options.durability else {
        sync = nil
        return
      }
      // SAFETY: the thread ends before the environment is closed.
      nonisolated(unsafe) let synced = unsafe environment
      sync = IntervalSync(every: interval) {
        try lmdbCheck(unsafe mdb_env_sync(synced, 1), "mdb_env_sync")
      }
    }

    private static func openDatabase(_ environment: OpaquePointer) throws -> MDB_dbi {
      try unsafe writing(environment) { transaction in
        var database = MDB_dbi()
        try lmdbCheck(unsafe mdb_dbi_open(transaction, nil, 0, &database), "mdb_dbi_open")
        return database
      }
    }

    // MARK: Reading

    @inline(__always)
    func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
      try unsafe reading { transaction in try unsafe find(key, transaction, body) }
    }

    func value(forKey key: RawSpan) throws -> [UInt8]? {
      try withValue(forKey: key) { value in
        unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
      }
    }

    func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?] {
      try unsafe reading { transaction in
        var values: [[UInt8]?] = []
        values.reserveCapacity(keys.count)
        for key in keys {
          values.append(
            try key.withBytes { (key) throws in
              try unsafe find(key, transaction) { value in
                unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
              }
            })
        }
        return values
      }
    }

    @inline(__always)
    private func reading<R>(_ body: (OpaquePointer) throws -> R) throws -> R {
      let transaction = try unsafe readers.value().transaction
      try lmdbCheck(unsafe mdb_txn_renew(transaction), "mdb_txn_renew")
      defer { unsafe mdb_txn_reset(transaction) }
      return try unsafe body(transaction)
    }

    @inline(__always)
    private func find<R>(
      _ key: RawSpan, _ transaction: OpaquePointer, _ body: (RawSpan) throws -> R
    ) throws -> R? {
      try unsafe key.withUnsafeBytes { bytes in
        var key = unsafe MDB_val(bytes)
        var value = unsafe MDB_val()
        let status = unsafe mdb_get(transaction, database, &key, &value)
        if status == MDB_NOTFOUND { return nil }
        try lmdbCheck(status, "mdb_get")
        // SAFETY: the bytes stay unchanged until the transaction is reset.
        let found = unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        return try body(unsafe RawSpan(_unsafeBytes: found))
      }
    }

    // MARK: Writing

    func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
      try unsafe Self.writing(environment) { transaction in
        try unsafe put(value, key, transaction)
      }
    }

    func setValues<Key: ByteSource, Value: ByteSource>(
      _ pairs: some Sequence<(key: Key, value: Value)>
    ) throws {
      try unsafe Self.writing(environment) { transaction in
        for (key, value) in pairs {
          try key.withBytes { (key) throws in
            try value.withBytes { (value) throws in try unsafe put(value, key, transaction) }
          }
        }
      }
    }

    func removeValue(forKey key: RawSpan) throws -> Bool {
      try unsafe Self.writing(environment) { transaction in
        try unsafe key.withUnsafeBytes { bytes in
          var key = unsafe MDB_val(bytes)
          let status = unsafe mdb_del(transaction, database, &key, nil)
          if status == MDB_NOTFOUND { return false }
          try lmdbCheck(status, "mdb_del")
          return true
        }
      }
    }

    private func put(_ value: RawSpan, _ key: RawSpan, _ transaction: OpaquePointer) throws {
      try unsafe key.withUnsafeBytes { keyBytes in
        try unsafe value.withUnsafeBytes { valueBytes in
          var (key, value) = unsafe (MDB_val(keyBytes), MDB_val(valueBytes))
          try lmdbCheck(unsafe mdb_put(transaction, database, &key, &value, 0), "mdb_put")
        }
      }
    }

    /// Commits the work of `body`, or aborts the transaction if `body` throws.
    @inline(__always)
    private static func writing<R>(
      _ environment: OpaquePointer, _ body: (OpaquePointer) throws -> R
    ) throws -> R {
      var begun: OpaquePointer?
      try lmdbCheck(unsafe mdb_txn_begin(environment, nil, 0, &begun), "mdb_txn_begin")
      guard let transaction = unsafe begun else {
        throw BenchFailure.peer(name, call: "mdb_txn_begin", message: "no transaction")
      }
      let result: R
      do {
        result = try unsafe body(transaction)
      } catch {
        unsafe mdb_txn_abort(transaction)
        throw error
      }
      try lmdbCheck(unsafe mdb_txn_commit(transaction), "mdb_txn_commit")
      return result
    }

    func close() throws {
      try sync?.end()
      try readers.close { unsafe mdb_txn_abort($0.transaction) }
      unsafe mdb_env_close(environment)
    }
  }

  /// A thread's read transaction, which is reset between reads.
  // SAFETY: `@unchecked Sendable` like `ThreadBound`.
  @safe
  private final class LMDBReader: ThreadBound, @unchecked Sendable {
    let transaction: OpaquePointer

    init(_ environment: OpaquePointer) throws {
      var begun: OpaquePointer?
      try lmdbCheck(
        unsafe mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &begun), "mdb_txn_begin")
      guard let transaction = unsafe begun else {
        throw BenchFailure.peer(LMDBStore.name, call: "mdb_txn_begin", message: "no transaction")
      }
      unsafe mdb_txn_reset(transaction)
      unsafe self.transaction = transaction
    }
  }

  extension MDB_val {
    /// Bytes that LMDB only reads.
    @inline(__always)
    fileprivate init(_ bytes: UnsafeRawBufferPointer) {
      unsafe self.init(
        mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
  }

  @inline(__always)
  private func lmdbCheck(_ status: Int32, _ call: @autoclosure () -> String) throws {
    if status != MDB_SUCCESS { throw lmdbFailure(status, call()) }
  }

  @inline(never)
  private func lmdbFailure(_ status: Int32, _ call: String) -> BenchFailure {
    // SAFETY: the text is a constant of the library or of the C library's `strerror`.
    let message = unsafe mdb_strerror(status).map { unsafe String(cString: $0) }
    return .peer(LMDBStore.name, call: call, message: message ?? "error \(status)")
  }
#endif
