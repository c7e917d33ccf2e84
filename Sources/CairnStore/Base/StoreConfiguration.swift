/// The options for opening a store. The defaults suit a store that must not lose anything; each
/// option documents the trade-off of other values.
public struct StoreConfiguration: Sendable {
  /// What an acknowledged write survives, unless the write asks for another class.
  ///
  /// Default `.durable`. `.process` is a hundred times as fast, and suits data that can be
  /// recreated; `.interval` bounds what a power loss can lose.
  public var durability: Durability = .durable

  /// The size at which a segment of the log is full, in bytes, from 64 KiB to 1 GiB.
  ///
  /// Default 64 MiB. With smaller segments, compaction reclaims space in smaller steps, and the
  /// store has more files. A value larger than a segment gets a segment of its own.
  public var segmentByteLimit: Int = 64 << 20

  /// How many bytes the segments may take for each live byte, from 1.1 to 1,000, before compaction
  /// reclaims space. Default 1.5; 2 for a cache.
  ///
  /// A lower bound takes less space but copies more: for each byte that overwrites, 0.3 bytes at 2,
  /// 0.7 at 1.5, 1.7 at 1.25. Dead bytes of less than the size of two segments are left alone,
  /// unless a whole segment is dead. A round of compaction takes more space for a time, two
  /// segments at most.
  ///
  /// Once the dead bytes exceed the bound's allowance by half, writes that overwrite wait for
  /// compaction: `statistics().excessByteCount` and `writeDelay` show it, and `log` reports it.
  /// Writes of new keys and removals do not wait. A large value or batch waits for the space that
  /// the previous large one made dead. If compaction cannot reclaim anything, no write waits.
  public var spaceBound: Double = 1.5

  /// Dead bytes that compaction leaves alone; `nil`: the size of two segments. For simulations.
  package var deadByteFloor: Int?

  /// The longest key, in bytes, from 1 to 65,535. Default 65,535.
  public var keyByteLimit: Int = 65_535

  /// The largest value, in bytes, up to 4,294,967,295. Default 1 GiB.
  public var valueByteLimit: Int = 1 << 30

  /// The largest metadata of an entry, in bytes, up to 65,535. Default 65,535.
  public var metadataByteLimit: Int = 65_535

  /// The maximum size of one atomic batch in the log, in bytes. Default 256 MiB, at most 4 GiB.
  ///
  /// A batch is held in memory until it is committed.
  public var batchByteLimit: Int = 256 << 20

  /// The maximum number of entries; `nil`, the default: no limit.
  ///
  /// The limit holds when a write returns: the least recently used entries go, in the exact order
  /// of access. Expired entries count until they are removed. Each time, the store removes several
  /// entries, so that not every write has to look for one: up to a hundredth of the limit below it,
  /// 64 entries or 64 KiB at most.
  ///
  /// If nothing can be removed because the disk has no room even for that, the write that exceeded
  /// the limit stays; later writes throw and write nothing until the limit holds again.
  public var countLimit: Int?

  /// The maximum bytes of the entries in the log, as in `statistics().liveByteCount`: keys, values,
  /// metadata and at least 24 bytes each. `nil`, the default: no limit.
  ///
  /// Enforced like `countLimit`. An entry that alone exceeds it throws `valueTooLarge`. On disk the
  /// store takes up to `spaceBound` times as much, and some segments of `segmentByteLimit`: with a
  /// small limit, make segments smaller than an eighth of it.
  public var byteLimit: Int?

  /// The maximum bytes of the store's files on disk, as `du` counts them: all segments, the
  /// reserve, the index file and the manifests; at least 4 MiB. `nil`, the default: no limit.
  ///
  /// `byteLimit` counts live entries, and the files may take more for a time. This limit holds when
  /// a write returns. It caps `segmentByteLimit` at a sixteenth of itself, and `byteLimit` at what
  /// compaction can keep within it: 95 % of the limit less four segments, divided by `spaceBound`.
  /// If the files exceed the limit when the store is opened, the next writes bring them under it.
  ///
  /// If writers are faster than compaction, a write waits until compaction has reclaimed enough;
  /// `statistics().delayedWriteCount` counts these writes. If that fails, a cache evicts its
  /// coldest entries, as on a full disk; a store throws `noSpace`. Removed files that a snapshot or
  /// a reader still holds do not count.
  public var diskByteLimit: Int?

  /// The lifetime of entries written without one; `nil`, the default: for ever. No read finds an
  /// entry after its end. Zero or less: entries expire at once.
  public var lifetime: Duration?

  /// The idle limit of entries written without one: how long they may go unread and unwritten;
  /// `nil`, the default: for ever. No read finds an entry after that.
  public var idleLimit: Duration?

  /// The number of bytes to keep free on the filesystem; `nil`, the default: none.
  ///
  /// Maintenance enforces it, not each write, because others fill the disk too: it reclaims dead
  /// space first, then removes the least recently used entries.
  public var freeDiskSpaceFloor: Int?

  /// How often the open store does maintenance: it removes expired entries and keeps
  /// `freeDiskSpaceFloor`. It also does so once soon after the first write, for what earlier
  /// sessions left. `nil`: only when `Store.maintain` is called. Must be at least a millisecond.
  /// Default 60 s.
  ///
  /// Maintenance runs on a thread that exists only while there is something to wait for.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// How many bytes of the log maintenance rereads each second, on average, to find damage in data
  /// that nobody reads while an undamaged backup still exists; `nil`, the default: none.
  ///
  /// Off by default, because it reads from a disk that may be asleep, metered or busy. 1 MiB a
  /// second covers 80 GiB a day. A scrub checks all heads and the newest values, whatever
  /// `verification` is. What a *cycle* finds goes to `damageObserver` and the log; it changes
  /// nothing. A cycle begins at most once a day and resumes after a restart. It reads 256 KiB at a
  /// time; a session shorter than one such step reads nothing. The first step loads the whole
  /// index. `statistics().scrub` shows the progress.
  ///
  /// Without `maintenanceInterval`, only `Store.maintain` takes steps, a few at a time. A store
  /// open for reading does not scrub by itself; call `Store.scrub`.
  public var scrubBytesPerSecond: Int?

  /// How many asynchronous calls run at once, each on a thread of its own; the others queue.
  /// Default 16. Less than 1 means 1; `.max` means no limit.
  ///
  /// Concurrent durable writes share a sync, so a few more cost little. The store makes a thread
  /// when there is work for it and ends it when there is none. Without a limit there are as many
  /// threads as calls; if the system cannot make another, the calling thread does the work. Beyond
  /// some dozens, calls wait for each other at the disk.
  public var concurrentCallLimit: Int = 16

  /// When reads check a value against its checksum. Default `.everyRead`; in a cache `.firstRead`.
  public var verification: Verification = .everyRead

  /// How long an open waits for another opener to close the store, for example a server shutting
  /// down. Default zero: it throws `locked` at once.
  ///
  /// It takes a few milliseconds to notice the close. If several openers wait, any of them may be
  /// next.
  public var lockTimeout: Duration = .zero

  /// How bytes are read and written. Default `.mapped`.
  public var access: Access = .mapped

  /// Whether opening an empty path creates a store. Default `true`.
  public var createsStore: Bool = true

  /// The clock that decides expiry. Default: the system's.
  public var clock: any WallClock = SystemClock()

  /// Called for every removed entry, with the cause, on the thread that caused it, after the change
  /// and outside all locks: it may use the store. Calls for entries that maintenance removed just
  /// before a close may come after the close. Default `nil`.
  ///
  /// With an observer, an overwrite costs a copy of the key.
  public var removalObserver: (@Sendable (RemovalEvent) -> Void)?

  /// Called for every damaged place that a scrub finds, with its keys, once in each cycle; on the
  /// scrubbing thread, outside all locks: it may use the store. After a crash, the last calls may
  /// be repeated. Default `nil`.
  public var damageObserver: (@Sendable (DamageEvent) -> Void)?

  /// Whether an entry about to be removed for not having been read was read elsewhere without the
  /// store being told. It then counts as just read. Called while entries are chosen: it must not
  /// use the store.
  package var isInUse: (@Sendable (_ key: RawSpan) -> Bool)?

  /// A key that no limit, trim or removal by choice removes: only a write of this key or a removal of
  /// all does.
  package var reservedKey: [UInt8]?

  /// An additional chore of each pass of housekeeping, in bounded rounds. It returns whether it has
  /// more to do.
  package var chore: (@Sendable () throws(StoreError) -> Bool)?

  /// Whether a write that finds no room on the disk evicts the coldest entries, as in a cache.
  package var evictsOnFullDisk = false

  /// Receives what the store reports but no call throws: a recovery, a quarantined file, a
  /// background failure. Never keys or values. Default `.standardError`: warnings and errors, one
  /// line each; `.none` silences it.
  public var log: DiagnosticLog = .standardError

  /// A batch of this many operations or more is written outside the log, so that other writers
  /// continue meanwhile. Lower in simulations.
  package var asideOperationCount: Int = 8192

  /// A checkpoint is made in the background once this many bytes, or four times its own size, were
  /// appended since the last one. Lower in simulations.
  package var checkpointByteThreshold: Int = 64 << 20

  /// A close makes no checkpoint if at most this many records were written since the last one: the
  /// next open reads them as quickly.
  package var checkpointRecordThreshold: Int = 16

  /// All new writes get higher versions than this.
  package var precedingVersion: UInt64 = 0

  /// How the store reaches its bytes.
  public enum Access: Sendable, Hashable {
    /// Memory mappings: the fastest. As with every mapped file, a failing disk or a truncation by
    /// another program can raise SIGBUS in the process.
    case mapped
    /// `pread` and `pwrite`: a system call for every read and write, and an error where a mapping
    /// would raise a signal.
    case systemCalls
  }

  /// Creates the default configuration, which loses nothing acknowledged and sets no limits.
  public init() {}
}
