internal import CairnStore

/// A cache in memory in front of one on disk.
///
///     let configuration = TieredCacheConfiguration(
///       memory: MemoryCacheConfiguration(countLimit: nil, costLimit: 64 << 20),
///       disk: DiskCacheConfiguration(countLimit: nil, byteLimit: 1 << 30))
///     let pages = try TieredCache<String, Page>(name: "pages", configuration: configuration)
///     let page = try await pages.value(forKey: url) { try await fetch(url) }
///
/// The disk holds everything, and memory a part of it. A write goes to disk first and then to memory; a read
/// that finds nothing in memory looks on disk and keeps what it finds in memory, with its cost, its lifetime
/// and its version. What goes from the disk, for whatever reason, goes from memory; what memory drops to keep
/// its own limits stays on disk.
///
/// All methods may be called from any thread; each takes effect at one moment, and no read finds what is
/// older than what a read before it has found, or than a write that has returned; `count`, `keys`, `forEachKey`,
/// `remove(where:)` and `trim(toCount:)` are no such reads: while a removal is under way, a key that they do not
/// show or count any more may still be found. A write that throws has not happened, and the old value stays in
/// both tiers; but after `durabilityUnknown` the new one is on disk as far as anybody can tell, and memory holds
/// neither.
///
/// Keys are told apart by their bytes, as on disk: two strings that are canonically equal and differ in
/// their UTF-8 are two keys.
///
/// Values that come from disk are decoded once for each time that they come; those in memory are handed out
/// as they are.
public final class TieredCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// The tier on disk. A value that a call there replaces or removes goes from memory before the call
  /// returns; a read there, or a removal that finds nothing, may be ahead of the front while a write is under way.
  public let disk: DiskCache<Key, Value>
  @usableFromInline let held: MemoryCache<TierKey<Key>, Value>
  /// Whether `==` of keys may not agree with their bytes.
  @usableFromInline let comparesBytes: Bool
  let recency: TierRecency<Key, Value>
  let streams: StreamEnds<TierEvent<Key>>
  /// As it was opened.
  public let configuration: TieredCacheConfiguration
  let environment: MemoryCacheEnvironment

  /// The tier in memory.
  public var memory: MemoryTier<Key, Value> { MemoryTier(self) }

  /// The directory of the tier on disk, as it was given, or made of the name.
  public var path: String { disk.path }

  /// The name that it was opened by, or the last part of its path.
  public var name: String { disk.name }

  /// Opens the cache at a path, or makes one there.
  ///
  /// - Parameters:
  ///   - path: a directory, whose parent must exist. A new one gets mode 0700, its files 0600.
  ///   - configuration: the limits, and the other options.
  ///   - keyCoder: how keys become bytes.
  ///   - valueCoder: how values do.
  ///   - costing: what a value costs in memory that is set without a cost; as with `MemoryCache.init`. `nil`:
  ///     its bytes on disk, so that a cost limit is one of bytes.
  /// - Throws: as `DiskCache.init(path:)`; `invalidConfiguration` also where an option is set for memory that only
  ///   the one of the store can say.
  /// - Complexity: as `Store.init`.
  public convenience init(
    path: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      path: path, name: nil, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, costing: costing, environment: .system(), memory: .shared)
  }

  /// Opens the cache of a name, or makes it; as `DiskCache.init(name:)`.
  public convenience init(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      costing: costing, variables: CacheLocation.variables)
  }

  /// Opens the cache of a name with other variables of the environment: for tests.
  package convenience init(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    variables: [String: String]
  ) throws(CacheError) {
    try configuration.check()
    let path = try CacheLocation.path(
      name: name, namespace: configuration.disk.namespace, variables: variables)
    try callingStore { () throws(StoreError) in
      try Directory.createParents(of: path, fileSystem: SystemFileSystem())
    }
    try self.init(
      path: path, name: name, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, costing: costing, environment: .system(), memory: .shared)
  }

  /// Opens one in environments of the caller's: for tests.
  package init(
    path: String, name: String? = nil, configuration: TieredCacheConfiguration,
    keyCoder: KeyCoder<Key>, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    environment: Environment, memory: MemoryCacheEnvironment
  ) throws(CacheError) {
    try configuration.check()
    var ofMemory = configuration.memory
    ofMemory.lifetime = configuration.disk.store.lifetime
    ofMemory.idleLimit = configuration.disk.store.idleLimit
    // The front responds in its place.
    ofMemory.respondsToMemoryPressure = false
    var ofTier: (@Sendable (TierKey<Key>, Value) -> Int)?
    if let costing { ofTier = { key, value in costing(key.key, value) } }
    let comparesBytes = keyCoder.identity == .bytes
    let streams = StreamEnds<TierEvent<Key>>()
    self.streams = streams
    // Memory goes by the clock of the store, so it is made once that is open. What happens below before that is
    // nothing to an empty tier.
    let front = LateFront<Key, Value>()
    var ofDisk = configuration.disk
    if TierRecency<Key, Value>.knowsKeysByBytes(keyCoder) {
      ofDisk.store.isInUse = { front.recency?.isInUse($0) ?? false }
    }
    disk = try DiskCache(
      path: path, name: name, configuration: ofDisk, keyCoder: keyCoder, valueCoder: valueCoder,
      environment: environment,
      front: DiskFront { event in
        guard let recency = front.recency else { return }
        Self.drop(event, from: recency.memory, keyCoder, comparesBytes: comparesBytes, recency)
      } didWrite: { key, version, cause in
        let bytes = comparesBytes ? try? keyCoder.encode(key) { [UInt8](copying: $0) } : nil
        front.recency?.memory.invalidate(
          TierKey(key, bytes: bytes), through: version - 1, cause)
      } didTrimToZero: {
        // Also where nothing is held: what was read below before must not be put in.
        front.recency?.memory.removeAll(cause: .removed, isToldOfNothing: false)
      } willWrite: { count, byteCount in
        front.recency?.tellBeforeWrite(of: count, byteCount)
      } didReopen: { store in
        front.recency?.begin(store)
      } willClose: {
        front.recency?.tell()
      } didClose: {
        // What is under way cannot put anything in any more: its tickets are void.
        // A second close has nothing to tell.
        front.recency?.memory.removeAll(cause: .evicted(.trim), isToldOfNothing: false)
        streams.end()
      })
    held = MemoryCache<TierKey<Key>, Value>(
      configuration: ofMemory, costing: ofTier, environment: memory,
      clockBelow: disk.store.clock)
    recency = front.begin(
      TierRecency(memory: held, keyCoder: keyCoder, background: memory.background))
    self.comparesBytes = comparesBytes
    self.configuration = configuration
    self.environment = memory
    recency.begin(disk.store)
    if configuration.memory.respondsToMemoryPressure { memory.pressureMonitor.add(self) }
  }

  /// Drops from memory what went below.
  private static func drop(
    _ event: RemovalEvent, from held: MemoryCache<TierKey<Key>, Value>, _ keyCoder: KeyCoder<Key>,
    comparesBytes: Bool, _ recency: TierRecency<Key, Value>
  ) {
    switch event {
    case .all(_, let count): held.removeAll(cause: .removed, isToldOfNothing: count > 0)
    case .entry(let bytes, let version, let cause):
      let cause = CacheRemovalCause(cause)
      // That of a record that is damaged is not known.
      let version = version == 0 ? nil : version
      if case .evicted = cause { recency.noteEviction() }
      if comparesBytes {
        let hash = MemoryTable<TierKey<Key>, Value>.hash(ofBytes: bytes)
        held.invalidate(hash: hash, through: version, cause) { $0.bytes == bytes }
        return
      }
      do throws(CacheError) {
        let key = try bytes.withBytes { (bytes) throws(CacheError) -> Key in
          try keyCoder.decode(bytes)
        }
        held.invalidate(
          TierKey(key, bytes: comparesBytes ? bytes : nil), through: version, cause)
      } catch {
        // Whatever it was, it is not found any more. With a coder of those here that is none of this cache's.
        held.removeAll(cause: cause)
      }
    }
  }

  /// Closes the store, if `close` was not called. Errors are lost: call `close` to see them.
  deinit {
    recency.tell()
    // The tier on disk, and with it what tells memory of what goes there, may be kept alone.
    held.removeAll(cause: .evicted(.trim), isToldOfNothing: false)
    streams.end()
    SharedCaches.endFront(of: disk)
  }

  // MARK: State

  /// How many keys a read would find.
  ///
  /// - Throws: as `DiskCache.count()`.
  /// - Complexity: as `DiskCache.count`.
  public func count() throws(CacheError) -> Int { try disk.count() }

  /// The bytes that are live on disk: what its byte limit counts. `memory.totalCost` tells what memory
  /// holds.
  ///
  /// - Throws: as `DiskCache.totalCost()`.
  /// - Complexity: as `DiskCache.totalCost`.
  public func totalCost() throws(CacheError) -> Int { try disk.totalCost() }

  /// Closes the tier on disk and empties the one in memory, as `disk.close` does. Every later call that can throw
  /// throws `closed`; a second `close` does nothing. Streams of events end.
  ///
  /// Nothing acknowledged is lost without it, but the next open takes longer.
  ///
  /// - Throws: as `Store.close()`. It is closed all the same.
  public func close() throws(CacheError) { try disk.close() }

  // MARK: Keys

  /// A key as memory has it, where that takes its bytes.
  @usableFromInline
  func encoded(_ key: Key) throws(CacheError) -> TierKey<Key> {
    TierKey(key, bytes: try disk.bytes(of: key))
  }

  @inlinable
  @inline(__always)
  func tierKey(_ key: Key) throws(CacheError) -> TierKey<Key> {
    comparesBytes ? try encoded(key) : TierKey(key)
  }
}

extension TieredCache: CustomStringConvertible {
  /// The name and the path.
  public var description: String { "TieredCache \(name) at \(path)" }
}

extension TieredCache where Key: Codable, Value: Codable {
  /// Opens the cache at a path with the standard coders; as `DiskCache` has them.
  public convenience init(
    path: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coders.
  public convenience init(
    name: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}

extension TieredCache where Key: Codable {
  /// Opens the cache at a path with the standard coder for keys.
  public convenience init(
    path: String, configuration: TieredCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coder for keys.
  public convenience init(
    name: String, configuration: TieredCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) {
    try self.init(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }
}
