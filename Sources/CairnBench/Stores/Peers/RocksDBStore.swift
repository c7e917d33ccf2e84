#if Peers
  import CRocksDB
  import Cairn
  import CairnLibC

  /// RocksDB through its C interface, configured for lookups by key.
  ///
  /// - The preset for point lookups (a hash in each block, Bloom filters, also one for data not yet
  ///   on disk) with a cache that holds all values, and without compression, which only costs time
  ///   with random bytes.
  /// - Large values are in blob files, which have a cache of the same size.
  /// - Every write goes to the log by a system call, so that it outlives the process. With
  ///   `.durable`, the log is synced.
  /// - Values are read as pinned slices of the cache, and copied from there if a copy is requested.
  /// - RocksDB does not report whether a removed key existed, so a removal reads the key first. If
  ///   two threads remove one key, both may report that it existed.
  // SAFETY: `@unchecked Sendable` because a database is safe to use from any thread, and the
  // options do not change after `init`.
  @safe
  final class RocksDBStore: KeyValueStore, @unchecked Sendable {
    static let name = StoreKind.rocksDB.rawValue
    static let abilities: StoreAbilities = [
      .zeroCopyReads, .durableWrites, .concurrentWrites, .reopening, .compaction,
    ]

    private let database: OpaquePointer
    private let family: OpaquePointer
    private let options: OpaquePointer
    private let readOptions: OpaquePointer
    private let writeOptions: OpaquePointer

    /// The size of the cache, with room for overheads and for blocks of rewritten values.
    private static func cacheMebibytes(_ options: StoreOptions) -> UInt64 {
      UInt64(max(64, min(4_096, 2 * options.expectedByteCount >> 20)))
    }

    init(at path: String, options wanted: StoreOptions) throws {
      // The calls that make options always return an address.
      guard let options = unsafe rocksdb_options_create(),
        let readOptions = unsafe rocksdb_readoptions_create(),
        let writeOptions = unsafe rocksdb_writeoptions_create()
      else { throw Self.failure("rocksdb_options_create", "out of memory") }
      unsafe rocksdb_options_set_create_if_missing(options, 1)
      unsafe rocksdb_options_increase_parallelism(
        options, Int32(clamping: sysconf(Int32(_SC_NPROCESSORS_ONLN))))
      unsafe rocksdb_options_optimize_for_point_lookup(options, Self.cacheMebibytes(wanted))
      unsafe rocksdb_options_set_compression(options, Int32(rocksdb_no_compression))
      if wanted.expectedByteCount >= 16_384 * max(1, wanted.expectedKeyCount) {
        unsafe Self.useBlobFiles(options, cacheByteCount: Self.cacheMebibytes(wanted) << 20)
      }
      // Log warnings and errors only.
      unsafe rocksdb_options_set_info_log_level(options, 2)
      if wanted.durability != .process { unsafe rocksdb_writeoptions_set_sync(writeOptions, 1) }
      unsafe (self.options, self.readOptions) = (options, readOptions)
      unsafe self.writeOptions = writeOptions
      do {
        unsafe (database, family) = try Self.open(path, options)
      } catch {
        unsafe rocksdb_options_destroy(options)
        unsafe rocksdb_readoptions_destroy(readOptions)
        unsafe rocksdb_writeoptions_destroy(writeOptions)
        throw error
      }
    }

    private static func useBlobFiles(_ options: OpaquePointer, cacheByteCount: UInt64) {
      unsafe rocksdb_options_set_enable_blob_files(options, 1)
      unsafe rocksdb_options_set_min_blob_size(options, 4_096)
      unsafe rocksdb_options_set_enable_blob_gc(options, 1)
      guard let cache = unsafe rocksdb_cache_create_lru(Int(cacheByteCount)) else { return }
      unsafe rocksdb_options_set_blob_cache(options, cache)
      unsafe rocksdb_cache_destroy(cache)
    }

    /// Opens the database with its one column family, which the calls for many keys require by
    /// name.
    private static func open(
      _ path: String, _ options: OpaquePointer
    ) throws -> (database: OpaquePointer, family: OpaquePointer) {
      var family: OpaquePointer?
      // SAFETY: the lists have one element each; the call reads two and fills the third.
      let database = try unsafe "default".withCString { name in
        var name: UnsafePointer<CChar>? = unsafe name
        var familyOptions: OpaquePointer? = unsafe options
        return try unsafe checking("rocksdb_open \(path)") {
          unsafe rocksdb_open_column_families(
            options, path, 1, &name, &familyOptions, &family, &$0)
        }
      }
      guard let database = unsafe database, let family = unsafe family else {
        throw failure("rocksdb_open \(path)", "no database")
      }
      return unsafe (database, family)
    }

    // MARK: Reading

    @inline(__always)
    func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
      let found = try unsafe key.withUnsafeBytes { key in
        try unsafe Self.checking("rocksdb_get_pinned") {
          unsafe rocksdb_get_pinned(database, readOptions, key.characters, key.count, &$0)
        }
      }
      guard let slice = unsafe found else { return nil }
      defer { unsafe rocksdb_pinnableslice_destroy(slice) }
      return try body(unsafe RawSpan(_unsafeBytes: Self.bytes(of: slice)))
    }

    func value(forKey key: RawSpan) throws -> [UInt8]? {
      try withValue(forKey: key) { value in
        unsafe value.withUnsafeBytes { unsafe [UInt8]($0) }
      }
    }

    /// Reads all values in one call, which reads each block and file once.
    func values(forKeys keys: some Collection<some ByteSource>) throws -> [[UInt8]?] {
      var bytes: [UInt8] = []
      var counts: [Int] = []
      for key in keys {
        key.withBytes { key in
          unsafe key.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
          counts.append(key.byteCount)
        }
      }
      var slices: [OpaquePointer?] = unsafe Array(repeating: nil, count: counts.count)
      var messages: [UnsafeMutablePointer<CChar>?] = unsafe Array(
        repeating: nil, count: counts.count)
      defer {
        for index in unsafe slices.indices { unsafe rocksdb_pinnableslice_destroy(slices[index]) }
        for index in unsafe messages.indices { unsafe rocksdb_free(messages[index]) }
      }
      // SAFETY: all lists have as many elements as there are keys; the keys' bytes are contiguous
      // and stay until the call ends.
      unsafe bytes.withUnsafeBytes { bytes in
        var addresses: [UnsafePointer<CChar>?] = unsafe []
        var offset = 0
        for count in counts {
          unsafe addresses.append(bytes.characters.map { unsafe $0 + offset })
          offset += count
        }
        unsafe rocksdb_batched_multi_get_cf(
          database, readOptions, family, counts.count, addresses, counts, &slices, &messages, false)
      }
      for index in unsafe messages.indices {
        guard let message = unsafe messages[index] else { continue }
        throw Self.failure("rocksdb_batched_multi_get_cf", unsafe String(cString: message))
      }
      return unsafe slices.map { slice in
        guard let slice = unsafe slice else { return nil }
        return unsafe [UInt8](Self.bytes(of: slice))
      }
    }

    /// The bytes of a slice, valid until it is destroyed.
    @inline(__always)
    private static func bytes(of slice: OpaquePointer) -> UnsafeRawBufferPointer {
      var count = 0
      let address = unsafe rocksdb_pinnableslice_value(slice, &count)
      return unsafe UnsafeRawBufferPointer(start: address, count: count)
    }

    // MARK: Writing

    func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
      try unsafe key.withUnsafeBytes { key in
        try unsafe value.withUnsafeBytes { value in
          try unsafe Self.checking("rocksdb_put") {
            unsafe rocksdb_put(
              database, writeOptions, key.characters, key.count, value.characters, value.count, &$0)
          }
        }
      }
    }

    func setValues<Key: ByteSource, Value: ByteSource>(
      _ pairs: some Sequence<(key: Key, value: Value)>
    ) throws {
      let batch = unsafe rocksdb_writebatch_create()
      defer { unsafe rocksdb_writebatch_destroy(batch) }
      for (key, value) in pairs {
        key.withBytes { key in
          value.withBytes { value in
            unsafe key.withUnsafeBytes { key in
              unsafe value.withUnsafeBytes { value in
                unsafe rocksdb_writebatch_put(
                  batch, key.characters, key.count, value.characters, value.count)
              }
            }
          }
        }
      }
      try unsafe Self.checking("rocksdb_write") {
        unsafe rocksdb_write(database, writeOptions, batch, &$0)
      }
    }

    func removeValue(forKey key: RawSpan) throws -> Bool {
      guard try withValue(forKey: key, { _ in true }) != nil else { return false }
      try unsafe key.withUnsafeBytes { key in
        try unsafe Self.checking("rocksdb_delete") {
          unsafe rocksdb_delete(database, writeOptions, key.characters, key.count, &$0)
        }
      }
      return true
    }

    func compact() throws {
      unsafe rocksdb_compact_range(database, nil, 0, nil, 0)
    }

    func close() throws {
      unsafe rocksdb_column_family_handle_destroy(family)
      unsafe rocksdb_close(database)
      unsafe rocksdb_options_destroy(options)
      unsafe rocksdb_readoptions_destroy(readOptions)
      unsafe rocksdb_writeoptions_destroy(writeOptions)
    }

    // MARK: Errors

    /// Calls the library with room for an error message, and throws that message if there is one.
    @inline(__always)
    private static func checking<Result>(
      _ call: @autoclosure () -> String,
      _ body: (inout UnsafeMutablePointer<CChar>?) -> Result
    ) throws -> Result {
      var message: UnsafeMutablePointer<CChar>?
      let result = unsafe body(&message)
      if let message = unsafe message {
        defer { unsafe rocksdb_free(message) }
        throw failure(call(), unsafe String(cString: message))
      }
      return result
    }

    private static func failure(_ call: String, _ message: String) -> BenchFailure {
      .peer(name, call: call, message: message)
    }
  }

  extension UnsafeRawBufferPointer {
    /// The start of the bytes, as C characters.
    fileprivate var characters: UnsafePointer<CChar>? {
      unsafe baseAddress?.assumingMemoryBound(to: CChar.self)
    }
  }
#endif
