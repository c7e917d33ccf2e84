#if Peers
  import CSQLite3
  import Cairn
  import CairnLibC
  import Synchronization

  /// SQLite as a key-value store: one table, a write-ahead log, statements prepared once.
  ///
  /// - Each thread has a separate connection, for reads and writes: a connection that is the only
  ///   writer keeps its cache. Writers wait for each other under a lock, which is faster than
  ///   SQLite's lock, where they sleep and retry.
  /// - Small values are in the tree of the keys (`WITHOUT ROWID`), so that a read searches one tree
  ///   and a write changes one. Larger values would make that tree deep. They have a separate tree,
  ///   and pages of up to 64 KiB.
  /// - With `.process` nothing is synced: committed data is in the page cache, so it outlives the
  ///   process. With `.durable` every commit syncs the log.
  // SAFETY: `@unchecked Sendable` because connections belong to threads, and everything else is
  // constant.
  final class SQLiteStore: KeyValueStore, @unchecked Sendable {
    static let name = StoreKind.sqlite.rawValue
    static let abilities: StoreAbilities = [
      .zeroCopyReads, .durableWrites, .concurrentWrites, .reopening,
    ]

    private let sessions: PerThread<SQLiteSession>
    private let writing = Mutex(())

    init(at path: String, options: StoreOptions) throws {
      if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
        throw BenchFailure.lastSystemError("mkdir", path)
      }
      let setup = SQLiteSetup(options)
      sessions = try PerThread { try SQLiteSession(path + "/values.sqlite", setup) }
      // Creates the table if it does not exist, before there are other connections.
      do { _ = try sessions.value() } catch {
        try sessions.close { try $0.connection.close() }
        throw error
      }
    }

    // MARK: Reading

    @inline(__always)
    func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
      try sessions.value().get.run {
        try $0.bind(1, blob: key)
      } row: {
        try $0.withBytes(0, body)
      }
    }

    func value(forKey key: RawSpan) throws -> [UInt8]? {
      try withValue(forKey: key) { value in
        unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
      }
    }

    /// Reads all values in one transaction, which avoids taking its locks for each key.
    func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?] {
      try sessions.value().connection.transaction("DEFERRED") {
        var values: [[UInt8]?] = []
        values.reserveCapacity(keys.count)
        for key in keys {
          values.append(try key.withBytes { (key) throws in try value(forKey: key) })
        }
        return values
      }
    }

    // MARK: Writing

    func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
      let session = try sessions.value()
      try writing.withLock { _ in try session.put(value, key) }
    }

    func setValues<Key: ByteSource, Value: ByteSource>(
      _ pairs: some Sequence<(key: Key, value: Value)>
    ) throws {
      let session = try sessions.value()
      try writing.withLock { _ in
        try session.connection.transaction("IMMEDIATE") {
          for (key, value) in pairs {
            try key.withBytes { (key) throws in
              try value.withBytes { (value) throws in try session.put(value, key) }
            }
          }
        }
      }
    }

    func removeValue(forKey key: RawSpan) throws -> Bool {
      let session = try sessions.value()
      return try writing.withLock { _ in
        try session.delete.run { try $0.bind(1, blob: key) }
        return session.connection.changeCount > 0
      }
    }

    func close() throws {
      try sessions.close { try $0.connection.close() }
    }
  }
#endif
