#if Peers
  import CSQLite3
  import Cairn

  /// A connection to a SQLite database, for one thread at a time, with the statements prepared for
  /// it.
  // SAFETY: `@unchecked Sendable` like `ThreadBound`; `SQLiteStore` has one per thread, `YYKVStore`
  // has one under a lock.
  @safe
  final class SQLiteConnection: ThreadBound, @unchecked Sendable {
    /// The name of the store that uses the connection.
    let store: String
    private let handle: OpaquePointer
    private var statements: [OpaquePointer] = unsafe []

    /// How long a connection waits for another connection's lock.
    private static let busyMilliseconds: Int32 = 60_000

    /// Evaluated before the library is first used. A refusal only costs speed.
    private static let isCounting: Bool = cairn_sqlite3_stop_counting() != SQLITE_OK

    init(_ path: String, store: String) throws {
      _ = Self.isCounting
      self.store = store
      var opened: OpaquePointer?
      // No lock in the library, because no two threads use the connection at once.
      let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
      let status = unsafe sqlite3_open_v2(path, &opened, flags, nil)
      guard let handle = unsafe opened else {
        throw BenchFailure.peer(store, call: "sqlite3_open_v2 \(path)", message: "out of memory")
      }
      unsafe self.handle = handle
      super.init()
      do {
        try check(status, "sqlite3_open_v2 \(path)")
        try check(
          unsafe sqlite3_busy_timeout(handle, Self.busyMilliseconds), "sqlite3_busy_timeout")
      } catch {
        unsafe sqlite3_close(handle)
        throw error
      }
    }

    func close() throws {
      for index in unsafe statements.indices { unsafe sqlite3_finalize(statements[index]) }
      unsafe statements = []
      try check(unsafe sqlite3_close(handle), "sqlite3_close")
    }

    /// Runs statements whose results are not needed.
    func run(_ sql: String) throws {
      try check(unsafe sqlite3_exec(handle, sql, nil, nil, nil), sql)
    }

    /// Prepares a statement for use until the connection is closed.
    func prepare(_ sql: String) throws -> SQLiteStatement {
      var prepared: OpaquePointer?
      let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
      try check(unsafe sqlite3_prepare_v3(handle, sql, -1, flags, &prepared, nil), sql)
      guard let statement = unsafe prepared else {
        throw BenchFailure.peer(store, call: sql, message: "no statement")
      }
      unsafe statements.append(statement)
      return unsafe SQLiteStatement(statement: statement, connection: self)
    }

    /// The number of rows that the last statement changed.
    var changeCount: Int { Int(unsafe sqlite3_changes(handle)) }

    /// Commits the work of `body`, or rolls the transaction back if `body` throws.
    func transaction<Result>(_ kind: String, _ body: () throws -> Result) throws -> Result {
      try run("BEGIN \(kind)")
      do {
        let result = try body()
        try run("COMMIT")
        return result
      } catch {
        try? run("ROLLBACK")
        throw error
      }
    }

    @inline(__always)
    func check(_ status: Int32, _ call: @autoclosure () -> String) throws {
      if status != SQLITE_OK { throw failure(call()) }
    }

    @inline(never)
    func failure(_ call: String) -> BenchFailure {
      // SAFETY: the text is the connection's, valid until its next call.
      let message = unsafe sqlite3_errmsg(handle).map { unsafe String(cString: $0) }
      return .peer(store, call: call, message: message ?? "")
    }
  }

  /// A statement that is prepared once and run often. Parameters are numbered from 1, columns from
  /// 0.
  @safe
  struct SQLiteStatement {
    private let statement: OpaquePointer
    private unowned let connection: SQLiteConnection

    fileprivate init(statement: OpaquePointer, connection: SQLiteConnection) {
      unsafe self.statement = statement
      self.connection = connection
    }

    /// Binds, runs to the first row, calls `row` if there is one, and resets.
    ///
    /// The bytes that `bind` passes must stay valid until the reset: nothing is copied.
    @inline(__always)
    func run<Result>(
      _ bind: (SQLiteStatement) throws -> Void, row: (SQLiteStatement) throws -> Result
    ) throws -> Result? {
      try bind(self)
      let status = unsafe sqlite3_step(statement)
      defer { unsafe sqlite3_reset(statement) }
      switch status {
      case SQLITE_ROW: return try row(self)
      case SQLITE_DONE: return nil
      default: throw connection.failure("sqlite3_step")
      }
    }

    /// Runs a statement that returns no rows.
    @inline(__always)
    func run(_ bind: (SQLiteStatement) throws -> Void) throws {
      _ = try run(bind) { _ in }
    }

    @inline(__always)
    func bind(_ parameter: Int32, blob bytes: RawSpan) throws {
      try unsafe bytes.withUnsafeBytes { bytes in
        // An empty value is not null, so its address must not be null.
        let address = unsafe bytes.baseAddress ?? UnsafeRawPointer(statement)
        // SAFETY: null as the last argument says that the bytes stay valid; see `run`.
        let status = unsafe sqlite3_bind_blob64(
          statement, parameter, address, UInt64(bytes.count), nil)
        try connection.check(status, "sqlite3_bind_blob64")
      }
    }

    @inline(__always)
    func bind(_ parameter: Int32, text bytes: RawSpan) throws {
      try unsafe bytes.withUnsafeBytes { bytes in
        let address = unsafe (bytes.baseAddress ?? UnsafeRawPointer(statement))
          .assumingMemoryBound(to: CChar.self)
        // SAFETY: as above.
        let status = unsafe sqlite3_bind_text64(
          statement, parameter, address, UInt64(bytes.count), nil, UInt8(SQLITE_UTF8))
        try connection.check(status, "sqlite3_bind_text64")
      }
    }

    @inline(__always)
    func bind(_ parameter: Int32, _ number: Int) throws {
      try connection.check(
        unsafe sqlite3_bind_int64(statement, parameter, Int64(number)), "sqlite3_bind_int64")
    }

    @inline(__always)
    func bindNull(_ parameter: Int32) throws {
      try connection.check(unsafe sqlite3_bind_null(statement, parameter), "sqlite3_bind_null")
    }

    func isNull(_ column: Int32) -> Bool {
      unsafe sqlite3_column_type(statement, column) == SQLITE_NULL
    }

    /// Passes a column's bytes, in SQLite's memory, to `body`.
    @inline(__always)
    func withBytes<Result>(_ column: Int32, _ body: (RawSpan) throws -> Result) rethrows -> Result {
      // SAFETY: the bytes are valid until the next step or reset. The length is read after the
      // address, as SQLite requires.
      let address = unsafe sqlite3_column_blob(statement, column)
      let count = Int(unsafe sqlite3_column_bytes(statement, column))
      let bytes = unsafe UnsafeRawBufferPointer(start: address, count: count)
      return try body(unsafe RawSpan(_unsafeBytes: bytes))
    }

    func bytes(_ column: Int32) -> [UInt8] {
      withBytes(column) { bytes in unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) } }
    }
  }
#endif
