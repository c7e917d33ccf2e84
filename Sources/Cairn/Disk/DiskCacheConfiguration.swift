public import CairnStore

/// The options of a ``DiskCache``.
public struct DiskCacheConfiguration: Sendable {
  /// The options of the cache's store.
  ///
  /// Because a cache's contents can be recreated, three defaults differ from those of
  /// `StoreConfiguration`: `durability` is `.process`, `verification` is `.firstRead`, and
  /// `spaceBound` is 2.
  ///
  /// - `countLimit` and `byteLimit` are the limits of the cache. With a limit of 0, the open throws
  ///   `invalidConfiguration`. To empty a cache, use `removeAll`.
  /// - `lifetime` and `idleLimit` are the defaults for entries.
  /// - `freeDiskSpaceFloor` is the number of bytes that should stay free on the disk.
  /// - `maintenanceInterval` is how often maintenance removes expired entries and checks free
  ///   space.
  /// - `scrubBytesPerSecond` is how fast maintenance scrubs for damage.
  ///
  /// `segmentByteLimit` is an eighth of the byte limit that you pass to `init`, but at least 4 MiB
  /// and at most 64 MiB. Small segments keep the files of a small cache small, because up to two
  /// segments may be dead before their space is reclaimed. Larger segments are written faster.
  public var store: StoreConfiguration

  /// A memory tier in front of the disk. `nil`, the default, means none. The tier has limits of its
  /// own: the other limits in this configuration apply to the disk.
  public var memory: MemoryConfiguration?

  /// How fresh the values of calls with a loader must be, unless a call has its own policy. Default
  /// `.standard`: only fresh values, and no time limits.
  ///
  /// Expired entries stay on disk as long as a policy may return them, and count towards the
  /// limits. A policy set here also covers entries that earlier processes wrote. A call's own
  /// policy applies from that call on.
  public var loadPolicy: LoadPolicy = .standard

  /// How long a call must take to be reported in the log as slow. `nil`, the default, means that
  /// the cache times no calls. The cache's property of the same name can change the threshold
  /// later.
  public var slowCallThreshold: Duration?

  /// For named caches, the name of the directory between the user's cache directory and the cache.
  /// `nil`, the default, means the name of the program, so that caches of two programs do not
  /// clash. An empty name means no such directory.
  public var namespace: String?

  /// What a read does with a value that the value coder cannot decode, or that a coder with another
  /// tag wrote. Default `.keep`. Calls with a loader always load the value again. The policy does
  /// not apply to damaged values: reading one always throws `corrupt`.
  public var unreadableValuePolicy: UnreadableValuePolicy = .keep

  /// What an open does with a corrupt store. Default `.refuse`.
  public var corruptStorePolicy: CorruptStorePolicy = .refuse

  /// The maximum number of entries, or `nil` for no limit. The same as `countLimit` in `store`.
  public var countLimit: Int? {
    get { store.countLimit }
    set { store.countLimit = newValue }
  }

  /// The maximum bytes of all entries, including keys and metadata, or `nil` for no limit. The same
  /// as `byteLimit` in `store`. Setting this property does not change `store.segmentByteLimit`.
  public var byteLimit: Int? {
    get { store.byteLimit }
    set { store.byteLimit = newValue }
  }

  /// The maximum bytes of the files on disk, whatever they contain. `nil`, the default, means no
  /// limit. The same as `diskByteLimit` in `store`, whose description explains the difference from
  /// `byteLimit`.
  public var diskByteLimit: Int? {
    get { store.diskByteLimit }
    set { store.diskByteLimit = newValue }
  }

  /// The lifetime of entries that are set without one. `nil`, the default, means forever. The same
  /// as `lifetime` in `store`.
  public var lifetime: Duration? {
    get { store.lifetime }
    set { store.lifetime = newValue }
  }

  /// The idle limit of entries that are set without one. `nil`, the default, means no limit. The
  /// same as `idleLimit` in `store`.
  public var idleLimit: Duration? {
    get { store.idleLimit }
    set { store.idleLimit = newValue }
  }

  /// What an acknowledged write survives, unless the write has its own class. Default `.process`.
  /// The same as `durability` in `store`.
  public var durability: Durability {
    get { store.durability }
    set { store.durability = newValue }
  }

  /// Receives messages about work outside any call. The same as `log` in `store`.
  public var log: DiagnosticLog {
    get { store.log }
    set { store.log = newValue }
  }

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum bytes of all entries, including keys and metadata, or `nil` for no
  ///     limit. The files may take more: unless writers outrun compaction, up to twice the limit
  ///     plus four segments. The size of a segment is an eighth of the limit, but at least 4 MiB
  ///     and at most 64 MiB. To limit the files, set ``diskByteLimit``.
  ///   - memory: a memory tier in front of the disk, or `nil` for none.
  public init(
    countLimit: Int? = nil, byteLimit: Int? = nil, memory: MemoryConfiguration? = nil
  ) {
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
}

/// What to do with a value that cannot be decoded or has another tag.
public enum UnreadableValuePolicy: Sendable, Hashable, CaseIterable {
  /// The read throws, and the value stays, because another version of the program may be able to
  /// decode it. A call with a loader loads the value again.
  case keep
  /// The read is a miss, and the cache removes the value, unless it has been rewritten since.
  case drop
}

/// What an open does with a corrupt store. A corrupt store is never deleted.
public enum CorruptStorePolicy: Sendable, Hashable, CaseIterable {
  /// The open throws, and changes nothing. A directory without a manifest is no store: whatever the
  /// policy, the open moves segments that a removed cache left there into its folder `quarantine`.
  case refuse
  /// The open moves the corrupt store aside and continues with an empty one. The corrupt store
  /// stays next to the new one, unchanged, under a name with `.quarantine-`, until you remove it.
  /// The log and ``DiskCache/quarantinePath`` say where it is; `cairn salvage` copies everything
  /// sound from it.
  ///
  /// If the path is a symbolic link or a mount point, the open throws as with `refuse`.
  case quarantine
}
