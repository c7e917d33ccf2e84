#if Peers
  import Cairn

  /// The configuration of a database, which depends on its contents.
  struct SQLiteSetup: Sendable {
    /// Values of up to a twentieth of a page are stored with their keys, as SQLite's manual
    /// recommends.
    private static let smallByteLimit = 200

    let pageByteCount: Int
    let keepsValuesWithKeys: Bool
    let synchronous: String

    /// The cache of a connection: enough for all values, as far as memory allows. Large values are
    /// read faster through the cache alone; for small ones, a mapping costs nothing, and a thread
    /// with an empty cache reads through it.
    private let cacheByteCount: Int
    /// The size of the log at which its pages are moved into the database. Moving many at once
    /// writes frequently changed pages only once.
    private static let loggedByteLimit = 64 << 20

    init(_ options: StoreOptions) {
      let average =
        options.expectedKeyCount > 0 ? options.expectedByteCount / options.expectedKeyCount : 0
      keepsValuesWithKeys = average <= Self.smallByteLimit
      cacheByteCount = max(512 << 20, min(4 << 30, 2 * options.expectedByteCount))
      // Choose the largest page size up to the average size of a pair, from 4 to 64 KiB.
      var pageByteCount = 4 << 10
      while pageByteCount < 64 << 10, 2 * pageByteCount <= average { pageByteCount *= 2 }
      self.pageByteCount = pageByteCount
      synchronous = options.durability == .process ? "OFF" : "FULL"
    }

    /// The first statements of a new connection.
    var sql: String {
      """
      PRAGMA page_size = \(pageByteCount);
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = \(synchronous);
      PRAGMA cache_size = -\(cacheByteCount >> 10);
      PRAGMA mmap_size = \(keepsValuesWithKeys ? 2 << 30 : 0);
      PRAGMA wal_autocheckpoint = \(Self.loggedByteLimit / pageByteCount);
      CREATE TABLE IF NOT EXISTS pairs (key BLOB PRIMARY KEY, value BLOB)\
      \(keepsValuesWithKeys ? " WITHOUT ROWID" : "");
      """
    }
  }

  /// A thread's connection and its prepared statements.
  // SAFETY: `@unchecked Sendable` like `ThreadBound`.
  final class SQLiteSession: ThreadBound, @unchecked Sendable {
    let connection: SQLiteConnection
    let get: SQLiteStatement
    let delete: SQLiteStatement
    private let set: SQLiteStatement

    init(_ path: String, _ setup: SQLiteSetup) throws {
      let connection = try SQLiteConnection(path, store: SQLiteStore.name)
      do {
        try connection.run(setup.sql)
        get = try connection.prepare("SELECT value FROM pairs WHERE key = ?1")
        delete = try connection.prepare("DELETE FROM pairs WHERE key = ?1")
        set = try connection.prepare(
          """
          INSERT INTO pairs (key, value) VALUES (?1, ?2)
          ON CONFLICT (key) DO UPDATE SET value = excluded.value
          """)
      } catch {
        try? connection.close()
        throw error
      }
      self.connection = connection
    }

    func put(_ value: RawSpan, _ key: RawSpan) throws {
      try set.run {
        try $0.bind(1, blob: key)
        try $0.bind(2, blob: value)
      }
    }
  }
#endif
