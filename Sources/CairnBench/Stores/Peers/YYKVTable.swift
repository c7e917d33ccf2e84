#if Peers
  import Cairn
  import CairnLibC

  /// The table of a `YYKVStore`: a row for each key.
  final class YYKVTable {
    struct Row {
      var hasFile: Bool
      var inlineValue: [UInt8]
    }

    let connection: SQLiteConnection
    private let select: SQLiteStatement
    private let selectFile: SQLiteStatement
    private let update: SQLiteStatement
    private let insert: SQLiteStatement
    private let remove: SQLiteStatement

    init(_ path: String, syncs: Bool) throws {
      let connection = try SQLiteConnection(path, store: YYKVStore.name)
      do {
        try connection.run(
          """
          PRAGMA journal_mode = WAL;
          PRAGMA synchronous = \(syncs ? "FULL" : "NORMAL");
          CREATE TABLE IF NOT EXISTS manifest (
            key TEXT, filename TEXT, size INTEGER, inline_data BLOB, modification_time INTEGER,
            last_access_time INTEGER, extended_data BLOB, PRIMARY KEY (key));
          CREATE INDEX IF NOT EXISTS last_access_time_idx ON manifest (last_access_time);
          """)
        select = try connection.prepare(
          """
          SELECT filename, inline_data, size, modification_time, last_access_time, extended_data
          FROM manifest WHERE key = ?1
          """)
        selectFile = try connection.prepare("SELECT filename FROM manifest WHERE key = ?1")
        update = try connection.prepare(
          "UPDATE manifest SET last_access_time = ?2 WHERE key = ?1")
        insert = try connection.prepare(
          """
          INSERT OR REPLACE INTO manifest (key, filename, size, inline_data, modification_time,
            last_access_time, extended_data) VALUES (?1, ?2, ?3, ?4, ?5, ?5, NULL)
          """)
        remove = try connection.prepare("DELETE FROM manifest WHERE key = ?1")
      } catch {
        try? connection.close()
        throw error
      }
      self.connection = connection
    }

    func row(_ key: RawSpan) throws -> Row? {
      try select.run {
        try $0.bind(1, text: key)
      } row: {
        let hasFile = !$0.isNull(0)
        return Row(hasFile: hasFile, inlineValue: hasFile ? [] : $0.bytes(1))
      }
    }

    /// Records that the key was read now.
    func touch(_ key: RawSpan) throws {
      try update.run {
        try $0.bind(1, text: key)
        try $0.bind(2, Self.now)
      }
    }

    /// Whether the key's value is in a file.
    func hasFile(_ key: RawSpan) throws -> Bool {
      try selectFile.run {
        try $0.bind(1, text: key)
      } row: {
        !$0.isNull(0)
      } ?? false
    }

    func set(_ key: RawSpan, byteCount: Int, fileName: String?, inlineValue: RawSpan?) throws {
      let now = Self.now
      func bindAndRun(_ bindName: (SQLiteStatement) throws -> Void) throws {
        try insert.run {
          try $0.bind(1, text: key)
          try bindName($0)
          try $0.bind(3, byteCount)
          if let inlineValue { try $0.bind(4, blob: inlineValue) } else { try $0.bindNull(4) }
          try $0.bind(5, now)
        }
      }
      if let fileName {
        // `withBytes` encloses the run, because the statement reads the name until the run ends.
        try fileName.withBytes { (name) throws in try bindAndRun { try $0.bind(2, text: name) } }
      } else {
        try bindAndRun { try $0.bindNull(2) }
      }
    }

    @discardableResult
    func delete(_ key: RawSpan) throws -> Bool {
      try remove.run { try $0.bind(1, text: key) }
      return connection.changeCount > 0
    }

    /// The current time in seconds, the table's unit of time.
    private static var now: Int { time(nil) }
  }
#endif
