public import CairnStore

/// How a ``DiskCache`` is made. Its two limits are always said; the other options have defaults.
public struct DiskCacheConfiguration: Sendable {
  /// How the store under the cache is opened: everything but what is here.
  ///
  /// As `StoreConfiguration` has it, but for `durability`, which is `.process`: what a cache holds can be
  /// made again. Its `countLimit` and `byteLimit` are the limits of the cache, `lifetime` and
  /// `idleLimit` what an entry gets that asks for none, `freeDiskSpaceFloor` what is to stay free on the
  /// disk, `maintenanceInterval` how often that is looked after and what has expired removed, and `scrubBytesPerSecond`
  /// how fast values that nobody reads are checked. All numbers are 64-bit. A limit of 0 is refused as `invalidConfiguration`: to empty a cache, trim it to 0.
  ///
  /// Its `segmentByteLimit` is an eighth of the limit on bytes that the configuration was made with, from 4 to 64 MiB, so
  /// that a small cache has small files: up to two of them may be dead before space is given back. Larger ones are
  /// written faster.
  public var store: StoreConfiguration

  /// A tier in memory, in front of the disk; `nil`, the default: none. The limits here are those of the whole: memory
  /// holds a part of what is on disk.
  public var memory: MemoryTierConfiguration?

  /// How fresh the values are that calls give which load, where the call does not say. Default `.standard`: only fresh
  /// values, and no limits.
  ///
  /// What has expired stays on disk and in memory for as long as a policy may give it, and counts for the limits. A policy
  /// that is said here holds for what an earlier process has left, too. One that a call brings holds from that call on.
  public var loadPolicy: LoadPolicy = .standard

  /// A directory between that of all caches and this one, for caches that are known by name. It must be valid as a
  /// name; an empty one is none. `nil`, the default: the name of the program, so that two programs with a cache of one
  /// name do not meet.
  public var namespace: String?

  /// What becomes of a value that was written under another tag of the value coder, when it is read.
  /// Default `.keep`. Calls that load what is missing load it anew, whatever is said here.
  public var changedTypePolicy: UnreadableValuePolicy = .keep

  /// What becomes of a value that the value coder cannot decode, when it is read. Default `.keep`. Calls
  /// that load what is missing load it anew, whatever is said here. Damaged bytes are something else: to a
  /// read they are always a `corrupt` error.
  public var undecodablePolicy: UnreadableValuePolicy = .keep

  /// What happens where the store is found corrupt when it is opened. Default `.refuse`.
  public var corruptStorePolicy: CorruptStorePolicy = .refuse

  /// How many entries there may be; `nil`: any number. The same as the option of that name in `store`.
  public var countLimit: Int? {
    get { store.countLimit }
    set { store.countLimit = newValue }
  }

  /// How many bytes they may take, keys and metadata included; `nil`: any number. The same as
  /// `byteLimit` in `store`. Setting it leaves `store.segmentByteLimit` as it is.
  public var byteLimit: Int? {
    get { store.byteLimit }
    set { store.byteLimit = newValue }
  }

  /// How many bytes the files may take on disk, whatever is in them; `nil`, the default: what the disk has. The same as
  /// the option of that name in `store`, which says how it differs from `byteLimit`.
  public var diskByteLimit: Int? {
    get { store.diskByteLimit }
    set { store.diskByteLimit = newValue }
  }

  /// How long an entry lives that is given no lifetime; `nil`, the default: for ever. The same as the
  /// option of that name in `store`.
  public var lifetime: Duration? {
    get { store.lifetime }
    set { store.lifetime = newValue }
  }

  /// How long an entry may go unread and unwritten that is given no idle limit; `nil`, the default: for
  /// ever. The same as the option of that name in `store`.
  public var idleLimit: Duration? {
    get { store.idleLimit }
    set { store.idleLimit = newValue }
  }

  /// How many of the asynchronous methods are at work at once, each on a thread of its own; the others wait in line.
  /// Default 16. The same as the option of that name in `store`.
  public var concurrentCallLimit: Int {
    get { store.concurrentCallLimit }
    set { store.concurrentCallLimit = newValue }
  }

  /// Makes a configuration with these limits and the defaults of all else.
  ///
  /// - Parameters:
  ///   - countLimit: how many entries there may be; `nil`: any number.
  ///   - byteLimit: how many bytes they may take, keys and metadata included; `nil`: any number. The files
  ///     take up to the store's `spaceBound` times as much, and four segments, each an eighth of it, from 4 to 64 MiB,
  ///     as long as writers do not outrun the compaction; ``diskByteLimit`` is a limit on the files.
  ///   - memory: a tier in memory, in front of the disk; `nil`: none.
  public init(countLimit: Int?, byteLimit: Int?, memory: MemoryTierConfiguration? = nil) {
    self.memory = memory
    store = StoreConfiguration()
    store.durability = .process
    store.countLimit = countLimit
    store.byteLimit = byteLimit
    if let byteLimit {
      store.segmentByteLimit = min(max(byteLimit / 8, 4 << 20), store.segmentByteLimit)
    }
  }

  /// A cache that holds all that it is given, until it expires.
  public static var unlimited: DiskCacheConfiguration {
    DiskCacheConfiguration(countLimit: nil, byteLimit: nil)
  }
}

/// What becomes of a value that is there and cannot be made sense of.
public enum UnreadableValuePolicy: Sendable, Hashable, CaseIterable {
  /// The read throws, and the value stays: another version of the program may know it. A call that loads
  /// what is missing takes it for missing.
  case keep
  /// The read is a miss, and the value is removed, unless it was written anew meanwhile.
  case drop
}

/// What happens to a store that cannot be opened since it is corrupt. It is never wiped.
public enum CorruptStorePolicy: Sendable, Hashable, CaseIterable {
  /// Opening throws.
  case refuse
  /// What is sound is copied into a new store, by `Store.salvage`, which takes the place of the old one. The
  /// old one stays beside it, under a name with `.quarantine-`, for who wants to look into it; nobody
  /// removes it. The log reports it, and so does ``DiskCache/salvageReport``.
  ///
  /// Needs as much free space as the sound values take, and time; and every open syncs the directory that
  /// the cache is in. Where it fails before the exchange, all is as before, and opening throws; where only
  /// the sync after it fails, the next open finds the new store, and the log has told of it. After a crash of
  /// the machine or the process in the middle of it, the next open starts anew; a copy that was finished by
  /// then stays beside.
  ///
  /// A path that is a symbolic link, and a store with somebody's directory in it, are left alone: opening
  /// throws as with `refuse`.
  case quarantine
}
