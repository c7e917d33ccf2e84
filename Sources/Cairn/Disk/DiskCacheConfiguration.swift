public import CairnStore

/// The options of a ``DiskCache``. You always give the two limits explicitly. The other options
/// have defaults.
public struct DiskCacheConfiguration: Sendable {
  /// The options of the cache's store, beyond those listed here.
  ///
  /// The defaults are those of `StoreConfiguration`, with two exceptions, because a cache's
  /// contents can be recreated: `durability` is `.process`, and `verification` is `.firstRead`.
  ///
  /// - `countLimit` and `byteLimit` are the limits of the cache. A limit of 0 throws
  ///   `invalidConfiguration`: to empty a cache, trim it to 0.
  /// - `lifetime` and `idleLimit` are the defaults of entries.
  /// - `freeDiskSpaceFloor` is the number of bytes to keep free on the disk.
  /// - `maintenanceInterval` is how often the cache checks free space and removes expired entries.
  /// - `scrubBytesPerSecond` is how fast the cache checks values that nobody reads.
  ///
  /// All numbers are 64-bit.
  ///
  /// `segmentByteLimit` is an eighth of the byte limit that the configuration was made with, from 4
  /// to 64 MiB. A small cache thus has small files, because up to two segments may be dead before
  /// space is reclaimed. Larger segments are written faster.
  public var store: StoreConfiguration

  /// A memory tier in front of the disk. `nil`, the default, means none. The limits in this
  /// configuration apply to the disk. The tier has limits of its own, which are the only ones for
  /// entries in memory only.
  public var memory: MemoryTierConfiguration?

  /// Which loaded values are written to disk. Default `.always`.
  public var admission: CacheAdmission = .always

  /// How fresh the values of loading calls must be, unless a call has its own policy. Default
  /// `.standard`: only fresh values, and no limits.
  ///
  /// Expired entries stay on disk and in memory for as long as a policy may return them, and count
  /// towards the limits. A policy set here also covers entries from earlier processes. A call's own
  /// policy applies from that call on.
  public var loadPolicy: LoadPolicy = .standard

  /// For named caches, a directory between the user's cache directory and the cache. It must be a
  /// valid name. An empty name means none. `nil`, the default, means the name of the program, so
  /// that caches of the same name in two programs do not clash.
  public var namespace: String?

  /// What a read does with a value written under another tag of the value coder. Default `.keep`.
  /// Calls with a loader always load it again.
  public var changedTypePolicy: UnreadableValuePolicy = .keep

  /// What a read does with a value that the value coder cannot decode. Default `.keep`. Calls with
  /// a loader always load it again. Damaged bytes are different: a read always throws `corrupt` for
  /// them.
  public var undecodablePolicy: UnreadableValuePolicy = .keep

  /// What opening does with a corrupt store. Default `.refuse`.
  public var corruptStorePolicy: CorruptStorePolicy = .refuse

  /// The maximum number of entries, or `nil` for no limit. The same as `countLimit` in `store`.
  public var countLimit: Int? {
    get { store.countLimit }
    set { store.countLimit = newValue }
  }

  /// The maximum bytes of all entries, including keys and metadata, or `nil` for no limit. The same
  /// as `byteLimit` in `store`. Setting it does not change `store.segmentByteLimit`.
  public var byteLimit: Int? {
    get { store.byteLimit }
    set { store.byteLimit = newValue }
  }

  /// The maximum bytes of the files on disk, whatever they contain. `nil`, the default, means no
  /// limit. The same as `diskByteLimit` in `store`, which explains the difference from `byteLimit`.
  public var diskByteLimit: Int? {
    get { store.diskByteLimit }
    set { store.diskByteLimit = newValue }
  }

  /// The lifetime of entries set without one. `nil`, the default, means no end. The same as
  /// `lifetime` in `store`.
  public var lifetime: Duration? {
    get { store.lifetime }
    set { store.lifetime = newValue }
  }

  /// The idle limit of entries set without one. `nil`, the default, means no limit. The same as
  /// `idleLimit` in `store`.
  public var idleLimit: Duration? {
    get { store.idleLimit }
    set { store.idleLimit = newValue }
  }

  /// How many asynchronous calls run at once, each on its own thread. Other calls queue. Default
  /// 16. The same as `concurrentCallLimit` in `store`.
  public var concurrentCallLimit: Int {
    get { store.concurrentCallLimit }
    set { store.concurrentCallLimit = newValue }
  }

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum bytes of all entries, including keys and metadata, or `nil` for no
  ///     limit. The files take up to the store's `spaceBound` times as much, which is 2 here, plus
  ///     four segments, each an eighth of the limit, from 4 to 64 MiB, unless writers outrun
  ///     compaction. ``diskByteLimit`` limits the files.
  ///   - memory: a memory tier in front of the disk, or `nil` for none.
  public init(countLimit: Int?, byteLimit: Int?, memory: MemoryTierConfiguration? = nil) {
    self.memory = memory
    store = StoreConfiguration()
    store.durability = .process
    store.verification = .firstRead
    store.spaceBound = 2
    store.countLimit = countLimit
    store.byteLimit = byteLimit
    if let byteLimit {
      store.segmentByteLimit = min(max(byteLimit / 8, 4 << 20), store.segmentByteLimit)
    }
  }

  /// A cache without limits: entries stay until they expire.
  public static var unlimited: DiskCacheConfiguration {
    DiskCacheConfiguration(countLimit: nil, byteLimit: nil)
  }
}

/// What to do with a value that cannot be decoded or has another tag.
public enum UnreadableValuePolicy: Sendable, Hashable, CaseIterable {
  /// The read throws, and the value stays, because another version of the program may be able to
  /// read it. For a call with a loader, the value counts as missing.
  case keep
  /// The read is a miss, and the value is removed, unless it was rewritten meanwhile.
  case drop
}

/// What opening does with a corrupt store. A corrupt store is never wiped.
public enum CorruptStorePolicy: Sendable, Hashable, CaseIterable {
  /// Opening throws.
  case refuse
  /// `Store.salvage` copies everything sound into a new store, which replaces the old one. The old
  /// store stays next to it for inspection, under a name with `.quarantine-`, until you remove it.
  /// The log and ``DiskCache/salvageReport`` report the salvage.
  ///
  /// Salvage takes time, and as much free space as the sound values. Every later open also syncs
  /// the directory that contains the cache. If salvage fails before the exchange, nothing has
  /// changed, and opening throws. If only the sync after the exchange fails, the log reports it,
  /// and the next open finds the new store. After a crash in the middle, the next open starts over.
  /// A copy that was already finished stays next to the store.
  ///
  /// If the path is a symbolic link, or the store contains a foreign directory, opening changes
  /// nothing and throws as with `refuse`.
  case quarantine
}

/// Which values a ``DiskCache`` writes to disk when a call loads them. A value that is set is always
/// written.
public enum CacheAdmission: Sendable, Hashable {
  /// All of them.
  case always
  /// Those of keys that were loaded before. Until then a value is only in memory, if the cache has
  /// that tier, so that values that are never asked for again cost no write. Values of keys that
  /// the disk has are always written.
  ///
  /// Two Bloom filters of 128 KiB in memory know at least the last 100,000 loaded keys, and at most
  /// twice as many; about 1 % of new keys are taken for known ones. They begin empty at each open.
  case secondRequest
}
