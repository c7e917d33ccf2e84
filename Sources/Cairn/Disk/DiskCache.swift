public import CairnStore

/// A cache on disk: typed keys and values over a `Store`.
///
///     var configuration = DiskCacheConfiguration(countLimit: nil, byteLimit: 1 << 30)
///     configuration.lifetime = .seconds(86_400)
///     let cache = try DiskCache<String, Page>(name: "pages", configuration: configuration)
///     try cache.setValue(page, forKey: url)
///     let page = try cache.value(forKey: url)
///
/// What it holds is there when it is opened again. Its limits are hard: they hold whenever a write returns,
/// and what is least recently used goes. Expiry is looked at with every read. A read never writes to disk.
/// A value that fails its checksum is an error for its key, never a wrong value and never a miss.
///
/// All methods may be called from any thread; each takes effect at one moment. A get or a set that stays in
/// the page cache takes less than a thread hop, so they are synchronous and fit async code as they are, but for a
/// set of class `durable`, which waits for a sync of the disk; what takes long has an asynchronous form under a name
/// with `perform`, and `perform` itself takes any work. Coders and observers run under no lock
/// and may use the cache.
///
/// The unit of cost is the byte, as `StoreStatistics.liveByteCount` has it. The `cost` that a value is
/// given is kept beside it, for a cache in memory before this one.
public final class DiskCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  // What is inlinable is specialised where it is called, for its types: keys and values are handed from one
  // closure to the next there, and everything else is done here, where only bytes are seen.
  let store: Store
  @usableFromInline let keyCoder: KeyCoder<Key>
  @usableFromInline let valueCoder: ValueCoder<Value>
  /// The metadata of a value that was given none.
  let bareMetadata: [UInt8]
  let events: DiskEvents<Key>
  let streams = StreamEnds<CacheEvent<Key>>()
  var workers: WorkQueue { store.workers }
  /// By the bytes of keys.
  let flights = SingleFlight<[UInt8], Value>()
  /// As it was opened.
  public let configuration: DiskCacheConfiguration
  /// The name that it was opened by, or the last part of its path.
  public let name: String
  /// What was salvaged where the store was corrupt and the configuration wanted that; else `nil`.
  public let salvageReport: SalvageReport?

  /// The directory, as it was given, or made of the name.
  public var path: String { store.path }

  /// Opens the cache at a path, or makes one there.
  ///
  /// - Parameters:
  ///   - path: a directory, whose parent must exist. A new one gets mode 0700, its files 0600.
  ///   - configuration: the limits, and the other options.
  ///   - keyCoder: how keys become bytes.
  ///   - valueCoder: how values do.
  /// - Throws: `store` with what `Store.init` throws: `locked` where it is open already, here or in another
  ///   process; `corrupt` where it is damaged, and it is left as it is, unless the configuration's
  ///   `corruptStorePolicy` wants it salvaged. `insideStore` where the path leads into another cache.
  /// - Complexity: as `Store.init`.
  public convenience init(
    path: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) throws(CacheError) {
    try self.init(
      path: path, name: nil, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, environment: .system())
  }

  /// Opens the cache of a name, or makes it: in `$XDG_CACHE_HOME/namespace/name`, or below `~/.cache` where
  /// that variable is not set to an absolute path. Directories on the way are made, with mode 0700.
  ///
  /// - Parameters:
  ///   - name: of up to 200 bytes, without slashes; not "." nor "..".
  ///   - configuration: the limits, and the other options.
  ///   - keyCoder: how keys become bytes.
  ///   - valueCoder: how values do.
  /// - Throws: `invalidName`, `noCacheDirectory`, `insideStore` where the namespace is the name of a cache;
  ///   else as `init(path:configuration:keyCoder:valueCoder:)`.
  public convenience init(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      variables: CacheLocation.variables)
  }

  /// Opens the cache of a name where these variables of the environment say: for tests.
  package convenience init(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>, variables: [String: String]
  ) throws(CacheError) {
    let path = try CacheLocation.path(
      name: name, namespace: configuration.namespace, variables: variables)
    try storing { () throws(StoreError) in
      try Directory.createParents(of: path, fileSystem: SystemFileSystem())
    }
    try self.init(
      path: path, name: name, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, environment: .system())
  }

  /// Opens one in an environment of the caller's: for tests.
  package convenience init(
    path: String, name: String? = nil, configuration: DiskCacheConfiguration,
    keyCoder: KeyCoder<Key>, valueCoder: ValueCoder<Value>, environment: Environment
  ) throws(CacheError) {
    try self.init(
      path: path, name: name, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, environment: environment, front: nil)
  }

  /// Opens one that may have a tier in front.
  init(
    path: String, name: String?, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>, environment: Environment, front: DiskFront<Key>?
  ) throws(CacheError) {
    let events = DiskEvents(
      path: path, keyCoder: keyCoder, log: configuration.store.log, front: front)
    var storeConfiguration = configuration.store
    let observer = storeConfiguration.removalObserver
    storeConfiguration.removalObserver = { event in
      events.noteRemoval(event)
      observer?(event)
    }
    if let place = CacheLocation.store(around: path, environment.fileSystem) {
      throw .insideStore(path: path, store: place)
    }
    self.configuration = configuration
    self.keyCoder = keyCoder
    self.valueCoder = valueCoder
    bareMetadata = CacheMetadata(tag: valueCoder.tag, rest: []).encoded
    self.events = events
    self.name = name ?? path.split(separator: "/").last.map(String.init) ?? path
    (store, salvageReport) = try Self.openStore(
      path, storeConfiguration, configuration.corruptStorePolicy, environment)
  }

  private static func openStore(
    _ path: String, _ configuration: StoreConfiguration, _ policy: CorruptStorePolicy,
    _ environment: Environment
  ) throws(CacheError) -> (Store, SalvageReport?) {
    func open() throws(StoreError) -> Store {
      let store = try Store(
        path: path, configuration: configuration, environment: environment, readOnly: false)
      if policy == .quarantine && !plantedInCache(.quarantineNotSynced) {
        // DURABILITY: a process that put the store in the place of a corrupt one may have died before
        // that was durable. What is written here must not be lost with its name.
        try Directory.synchronizeParent(of: path, fileSystem: environment.fileSystem)
      }
      return store
    }
    return try storing { () throws(StoreError) in
      do throws(StoreError) { return (try open(), nil) } catch {
        if case .invalidConfiguration("liveByteLimit", let reason) = error {
          // A cache has another name for it.
          throw .invalidConfiguration(option: "byteLimit", reason: reason)
        }
        guard case .corrupt = error, policy == .quarantine else { throw error }
        let quarantine = StoreQuarantine(
          path: path, environment: environment, clock: configuration.clock,
          segmentByteLimit: configuration.segmentByteLimit, log: configuration.log)
        return try quarantine.recover(from: error, open: open)
      }
    }
  }

  // MARK: State

  /// How many keys a read would find, those with them whose records are damaged.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`, `system`.
  /// - Complexity: O(1) where no entry can expire, else O(keys), with a look at the head of each record
  ///   that can; `statistics().heldCount` is O(1) always.
  public func count() throws(CacheError) -> Int {
    try storing { () throws(StoreError) in try store.count() }
  }

  /// The bytes of the log that are live: what the byte limit counts. Those of entries that have expired
  /// are among them until they are removed.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: as `statistics`.
  public func totalCost() throws(CacheError) -> Int {
    try storing { () throws(StoreError) in try store.usage().liveByteCount }
  }

  /// What the cache has done, and what it holds. `storeStatistics` tells more of the files.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), which are of 64 MiB; no system call.
  public func statistics() throws(CacheError) -> DiskCacheStatistics {
    let usage = try storing { () throws(StoreError) in try store.usage() }
    var statistics = events.counters.statistics
    statistics.heldCount = usage.indexedKeyCount
    statistics.liveByteCount = usage.liveByteCount
    statistics.deadByteCount = usage.deadByteCount
    statistics.allocatedByteCount = usage.allocatedByteCount
    statistics.pinnedByteCount = usage.pinnedByteCount
    return statistics
  }

  /// The state of the store under the cache: its segments, the version of its format, what the last open
  /// did.
  ///
  /// - Throws: `store` with `closed`, `usedAfterFork`.
  /// - Complexity: O(segments), with a system call for each.
  public func storeStatistics() throws(CacheError) -> StoreStatistics {
    try storing { () throws(StoreError) in try store.statistics() }
  }

  /// Makes every write durable that was acknowledged before, marks the store clean and gives its lock up.
  /// Every later call throws `closed`; a second `close` does nothing. Streams of events end.
  ///
  /// Nothing acknowledged is lost without it, but the next open takes longer.
  ///
  /// - Throws: as `Store.close()`. It is closed all the same.
  public func close() throws(CacheError) {
    SharedCaches.beginClosing(self)
    events.front?.willClose()
    // Of several that close it at once, one closes the store, and may still be doing that when others return.
    var hasEnded = true
    defer {
      events.front?.didClose()
      if hasEnded || plantedInCache(.secondCloseEnds) {
        streams.end()
        SharedCaches.endClosing(self)
      }
    }
    hasEnded = try storing { () throws(StoreError) in try store.closeOnce() }
  }

  /// Closes the store, if `close` was not called. Errors are lost: call `close` to see them.
  deinit {
    try? store.close()
    streams.end()
    SharedCaches.endClosing(self)
  }
}

extension DiskCache: CustomStringConvertible {
  /// The name and the path.
  public var description: String { "DiskCache \(name) at \(path)" }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens the cache at a path with the standard coders: the bytes of `String`, `[UInt8]`, `Data`, and of
  /// integers and `UUID` as keys; JSON for everything else.
  public convenience init(path: String, configuration: DiskCacheConfiguration) throws(CacheError) {
    try self.init(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard)
  }

  /// Opens the cache of a name with the standard coders.
  public convenience init(name: String, configuration: DiskCacheConfiguration) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard)
  }
}

extension DiskCache where Key: Codable {
  /// Opens the cache at a path with the standard coder for keys.
  public convenience init(
    path: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>
  ) throws(CacheError) {
    try self.init(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder)
  }

  /// Opens the cache of a name with the standard coder for keys.
  public convenience init(
    name: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>
  ) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder)
  }
}
