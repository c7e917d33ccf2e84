public import CairnStore

/// The options of a ``DiskCache``. The two limits are always explicit; the other options have
/// defaults.
public struct DiskCacheConfiguration: Sendable {
  /// The options of the cache's store, beyond those listed here.
  ///
  /// The defaults are those of `StoreConfiguration`, with two exceptions, because the contents of a
  /// cache can be recreated: `durability` is `.process`, and `verification` is `.firstRead`.
  ///
  /// - `countLimit` and `byteLimit` are the limits of the cache. A limit of 0 throws
  ///   `invalidConfiguration`: to empty a cache, trim it to 0.
  /// - `lifetime` and `idleLimit` are the defaults of entries.
  /// - `freeDiskSpaceFloor` is the number of bytes to keep free on the disk.
  /// - `maintenanceInterval` is how often the cache checks that and removes expired entries.
  /// - `scrubBytesPerSecond` is how fast it checks values that nobody reads.
  ///
  /// All numbers are 64-bit.
  ///
  /// `segmentByteLimit` is an eighth of the byte limit that the configuration was made with, from 4
  /// to 64 MiB, so that a small cache has small files: up to two of them may be dead before space
  /// is reclaimed. Larger segments are written faster.
  public var store: StoreConfiguration

  /// A memory tier in front of the disk; `nil`, the default: none. The limits here are those of the
  /// whole cache: memory holds a part of what is on disk.
  public var memory: MemoryTierConfiguration?

  /// Which loaded values are written to disk. Default `.always`.
  public var admission: CacheAdmission = .always

  /// How fresh the values of loading calls must be, unless a call has its own policy. Default
  /// `.standard`: only fresh values, and no limits.
  ///
  /// Expired entries stay on disk and in memory for as long as a policy may return them, and count
  /// towards the limits. A policy set here also covers what an earlier process left. A call's own
  /// policy applies from that call on.
  public var loadPolicy: LoadPolicy = .standard

  /// A directory between that of all caches and this one, for named caches. It must be a valid
  /// name; an empty one means none. `nil`, the default: the name of the program, so that caches of
  /// the same name in two programs do not clash.
  public var namespace: String?

  /// What a read does with a value written under another tag of the value coder. Default `.keep`.
  /// Calls that load missing values always load it again.
  public var changedTypePolicy: UnreadableValuePolicy = .keep

  /// What a read does with a value that the value coder cannot decode. Default `.keep`. Calls that
  /// load missing values always load it again. Damaged bytes are different: a read always throws
  /// `corrupt` for them.
  public var undecodablePolicy: UnreadableValuePolicy = .keep

  /// What opening does with a corrupt store. Default `.refuse`.
  public var corruptStorePolicy: CorruptStorePolicy = .refuse

  /// The maximum number of entries; `nil`: no limit. The same as the option of that name in
  /// `store`.
  public var countLimit: Int? {
    get { store.countLimit }
    set { store.countLimit = newValue }
  }

  /// The maximum bytes of all entries, keys and metadata included; `nil`: no limit. The same as
  /// `byteLimit` in `store`. Setting it does not change `store.segmentByteLimit`.
  public var byteLimit: Int? {
    get { store.byteLimit }
    set { store.byteLimit = newValue }
  }

  /// The maximum bytes of the files on disk, whatever is in them; `nil`, the default: no limit. The
  /// same as the option of that name in `store`, which explains the difference from `byteLimit`.
  public var diskByteLimit: Int? {
    get { store.diskByteLimit }
    set { store.diskByteLimit = newValue }
  }

  /// The lifetime of entries set without one; `nil`, the default: for ever. The same as the option
  /// of that name in `store`.
  public var lifetime: Duration? {
    get { store.lifetime }
    set { store.lifetime = newValue }
  }

  /// The idle limit of entries set without one; `nil`, the default: for ever. The same as the
  /// option of that name in `store`.
  public var idleLimit: Duration? {
    get { store.idleLimit }
    set { store.idleLimit = newValue }
  }

  /// How many asynchronous calls run at once, each on a thread of its own; the others queue.
  /// Default 16. The same as the option of that name in `store`.
  public var concurrentCallLimit: Int {
    get { store.concurrentCallLimit }
    set { store.concurrentCallLimit = newValue }
  }

  /// Makes a configuration with these limits and the defaults for everything else.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries; `nil`: no limit.
  ///   - byteLimit: the maximum bytes of all entries, keys and metadata included; `nil`: no limit.
  ///     The files take up to the store's `spaceBound` times as much, which is 2 here, and four
  ///     segments, each an eighth of it, from 4 to 64 MiB, as long as writers do not outrun the
  ///     compaction; ``diskByteLimit`` limits the files.
  ///   - memory: a memory tier in front of the disk; `nil`: none.
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
  /// The read throws, and the value stays: another version of the program may know it. To a call
  /// that loads missing values, it counts as missing.
  case keep
  /// The read is a miss, and the value is removed, unless it was rewritten meanwhile.
  case drop
}

/// What opening does with a corrupt store. A corrupt store is never wiped.
public enum CorruptStorePolicy: Sendable, Hashable, CaseIterable {
  /// Opening throws.
  case refuse
  /// `Store.salvage` copies everything sound into a new store, which replaces the old one. The old
  /// one stays beside it for inspection, under a name with `.quarantine-`; nothing removes it. The
  /// log and ``DiskCache/salvageReport`` report the salvage.
  ///
  /// Takes time, and as much free space as the sound values; every later open also syncs the
  /// directory that contains the cache. If salvage fails before the exchange, nothing has changed,
  /// and opening throws. If only the sync after the exchange fails, the log reports it, and the
  /// next open finds the new store. After a crash of the machine or the process in the middle, the
  /// next open starts over; a copy that was already finished stays beside the store.
  ///
  /// A path that is a symbolic link, and a store that contains a foreign directory, are left alone:
  /// opening throws as with `refuse`.
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
