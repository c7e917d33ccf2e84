public import CairnStore

/// The options of a ``DiskCache``. All options of its store are options of the cache:
///
///     var configuration = DiskCacheConfiguration(countLimit: 100_000)
///     configuration.diskByteLimit = 1 << 30
///     configuration.lifetime = .hours(12)
@dynamicMemberLookup
public struct DiskCacheConfiguration: Sendable {
  /// The options of the cache's store.
  ///
  /// Because a cache's contents can be recreated, three defaults differ from those of
  /// `StoreConfiguration`: `durability` is `.process`, `verifiesEveryRead` is false, and `spaceBound`
  /// is 2.
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

  /// How fresh the values of calls with a loader must be, unless a call has its own policy. By
  /// default, only fresh values, and no time limits.
  ///
  /// Expired entries stay on disk as long as a policy may return them, and count towards the
  /// limits. A policy set here also covers entries that earlier processes wrote. A call's own
  /// policy applies from that call on.
  public var loadPolicy = LoadPolicy()

  /// How long a call must take to be reported in the log as slow. With zero or less, every call is
  /// slow. `nil` means that no call is timed.
  ///
  /// If the threshold is set, the cache times each call that reaches the disk, and
  /// ``CacheStatistics/prometheus(prefix:)`` has the durations. A read that finds its value in
  /// memory is never timed.
  ///
  /// The log gets at most one warning a second, without the key. It says how many slow calls it
  /// has left out. The duration of an async call includes its wait for a thread. Loads are timed by
  /// the cache's clock, and include the write of the loaded value. Some calls read the disk more
  /// than once: an update reads before it writes, and a load reads again before it calls the
  /// loader. Each of these reads is timed. Calls about many entries, such as trims, iteration and
  /// backups, are not timed, except removals by keys, by tag or of everything.
  public var slowCallThreshold: Duration?

  /// For named caches, the name of the directory between the user's cache directory and the cache.
  /// `nil`, the default, means the name of the program, so that caches of two programs do not
  /// clash. An empty name means no such directory.
  public var namespace: String?

  /// Whether the cache removes a value that the value coder cannot decode, or that a coder with
  /// another tag wrote. Default false.
  ///
  /// With `false`, reading the value throws `undecodable`, and the value stays, because another
  /// version of the program may be able to decode it. With `true`, the read is a miss, and the value
  /// is removed, unless it has been rewritten since. Calls with a loader always load the value again.
  /// Reading a damaged value always throws `corrupt`.
  public var dropsUnreadableValues = false

  /// Whether the open of a corrupt store moves it aside and continues with an empty one. Default
  /// false: the open throws, and changes nothing.
  ///
  /// The corrupt store stays next to the new one, unchanged, under a name with `.quarantine-`, until
  /// you remove it. The log and ``DiskCache/quarantinePath`` say where it is; `cairn salvage` copies
  /// everything sound from it. If the path is a symbolic link or a mount point, the open throws.
  ///
  /// A directory without a manifest is no store: the open moves segments that a removed cache left
  /// there into its folder `quarantine`.
  public var quarantinesCorruptStores = false

  /// The options of ``store``, such as `configuration.diskByteLimit`.
  public subscript<Option>(
    dynamicMember option: WritableKeyPath<StoreConfiguration, Option>
  ) -> Option {
    get { store[keyPath: option] }
    set { store[keyPath: option] = newValue }
  }

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum bytes of all entries, including keys and metadata, or `nil` for no
  ///     limit. The files may take more: unless writers outrun compaction, up to twice the limit
  ///     plus four segments. The size of a segment is an eighth of the limit, but at least 4 MiB
  ///     and at most 64 MiB. To limit the files, set `diskByteLimit`.
  ///   - diskByteLimit: the maximum bytes of the files on disk, whatever they contain, or `nil`
  ///     for no limit. What a user sees with `du`.
  ///   - memory: a memory tier in front of the disk, or `nil` for none.
  public init(
    countLimit: Int? = nil, byteLimit: Int? = nil, diskByteLimit: Int? = nil,
    memory: MemoryConfiguration? = nil
  ) {
    self.memory = memory
    store = StoreConfiguration()
    store.durability = .process
    store.verifiesEveryRead = false
    store.spaceBound = 2
    store.countLimit = countLimit
    store.byteLimit = byteLimit
    store.diskByteLimit = diskByteLimit
    if let byteLimit {
      store.segmentByteLimit = min(max(byteLimit / 8, 4 << 20), store.segmentByteLimit)
    }
  }
}
