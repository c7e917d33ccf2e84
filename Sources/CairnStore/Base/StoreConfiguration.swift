/// The options for opening a store. The defaults suit a store that must not lose data. Each option
/// documents the trade-off of other values.
public struct StoreConfiguration: Sendable {
  /// What an acknowledged write survives, unless the write sets another class.
  ///
  /// Default `.durable`. `.process` is a hundred times as fast and suits data that can be
  /// recreated. `.interval` bounds the loss in a power cut.
  public var durability: Durability = .durable

  /// The size at which a segment of the log is full, in bytes, from 64 KiB to 1 GiB.
  ///
  /// Default 64 MiB. With smaller segments, compaction reclaims space in smaller steps, and the
  /// store has more files. A value larger than a segment gets its own segment.
  public var segmentByteLimit: Int = 64 << 20

  /// How many bytes the segments may take for each live byte, from 1.1 to 1,000, before compaction
  /// reclaims space. Default 1.5; 2 for a cache.
  ///
  /// A lower bound takes less space but copies more for each overwritten byte: 0.3 bytes at 2,
  /// 0.7 at 1.5, 1.7 at 1.25. Compaction ignores dead bytes below the size of two segments,
  /// unless a whole segment is dead. During a round, compaction takes up to two segments of
  /// extra space.
  ///
  /// Once the dead bytes exceed the bound's allowance by half, overwrites wait for compaction:
  /// `statistics().excessByteCount` and `writeDelay` show the wait, and `log` reports it. Writes of
  /// new keys and removals do not wait. A large value or batch waits until compaction has reclaimed
  /// the space that the previous large write made dead. If compaction cannot reclaim anything, no
  /// write waits.
  public var spaceBound: Double = 1.5

  /// The number of dead bytes that compaction ignores, or `nil` for the size of two segments. For
  /// simulations.
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

  /// The maximum number of entries, or `nil`, the default, for no limit.
  ///
  /// The limit holds when a write returns: the store evicts the least recently used entries, in the
  /// exact order of access. Expired entries count until they are removed. So that not every write
  /// has to evict, each eviction goes below the limit, by up to a hundredth of it and at most 64
  /// entries or 64 KiB.
  ///
  /// If the disk has no room even for a removal, the write that exceeded
  /// the limit stays. Later writes throw and change nothing until the limit holds again.
  public var countLimit: Int?

  /// The maximum bytes of the entries in the log, as in `statistics().liveByteCount`: keys, values,
  /// metadata and at least 24 bytes each. `nil`, the default, means no limit.
  ///
  /// Enforced like `countLimit`. Writing an entry that alone exceeds the limit throws
  /// `valueTooLarge`. On disk, the store takes up to `spaceBound` times as much, plus a few
  /// segments of `segmentByteLimit`. With a small limit, make segments smaller than an eighth of
  /// it.
  public var byteLimit: Int?

  /// The maximum bytes of the store's files on disk, as `du` counts them: all segments, the
  /// reserve, the index file and the manifests. At least 4 MiB. `nil`, the default, means no limit.
  ///
  /// `byteLimit` counts live entries, and the files may temporarily take more. This limit holds
  /// when a write returns. It caps `segmentByteLimit` at a sixteenth of itself. It caps `byteLimit`
  /// at the size that compaction can keep within it: 95 % of the limit minus four segments, divided
  /// by `spaceBound`. If the files exceed the limit when the store is opened, the next writes bring
  /// them under it.
  ///
  /// If writers are faster than compaction, a write waits until compaction has reclaimed enough.
  /// `statistics().delayedWriteCount` counts these writes. If compaction cannot, a cache evicts its
  /// least recently used entries, as on a full disk, and a store throws `noSpace`. Removed files
  /// that a snapshot or a reader still holds do not count.
  public var diskByteLimit: Int?

  /// The lifetime of entries written without one. `nil`, the default, means no end. No read finds
  /// an entry after its lifetime has ended. If zero or less, entries expire at once.
  public var lifetime: Duration?

  /// The idle limit of entries written without one: how long they may go without a read or write.
  /// `nil`, the default, means no limit. No read finds an entry after that time.
  public var idleLimit: Duration?

  /// The number of bytes to keep free on the filesystem. `nil`, the default, means none.
  ///
  /// Maintenance enforces it, not each write, because other programs fill the disk too. It first
  /// reclaims dead space, then removes the least recently used entries.
  public var freeDiskSpaceFloor: Int?

  /// How often the open store does maintenance, which removes expired entries and keeps
  /// `freeDiskSpaceFloor`. It also runs once soon after the first write, to clean up after earlier
  /// sessions. `nil` means only when `Store.maintain` is called. Must be at least a millisecond.
  /// Default 60 s.
  ///
  /// Maintenance runs on a thread that exists only while it has something to wait for.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// How many bytes of the log maintenance scrubs each second, on average, to find damage in data
  /// that nobody reads while an undamaged backup still exists. `nil`, the default, means none.
  ///
  /// Off by default, because it reads from a disk that may be asleep, metered or busy. 1 MiB a
  /// second covers 80 GiB a day. A scrub checks all heads and the newest values, whatever
  /// `verification` is. A *cycle* reports damage to `damageObserver` and the log, and changes
  /// nothing. A cycle begins at most once a day and resumes after a restart. It reads 256 KiB at a
  /// time. A session shorter than one such step reads nothing. The first step loads the whole
  /// index. `statistics().scrub` shows the progress.
  ///
  /// Without `maintenanceInterval`, only `Store.maintain` takes steps, a few at a time. A store
  /// open for reading does not scrub by itself: call `Store.scrub`.
  public var scrubBytesPerSecond: Int?

  /// How many asynchronous calls run at once, each on its own thread. Other calls queue.
  /// Default 16. Less than 1 means 1, and `.max` means no limit.
  ///
  /// Concurrent durable writes share a sync, so a few more calls cost little. The store creates a
  /// thread when it has work for it and ends the thread when the work is done. Without a limit, the
  /// store has as many threads as calls. If the system cannot create another, the calling thread
  /// does the work. Beyond a few dozen, calls wait for each other at the disk.
  public var concurrentCallLimit: Int = 16

  /// When reads check a value against its checksum. Default `.everyRead`, or `.firstRead` in a
  /// cache.
  public var verification: Verification = .everyRead

  /// How long an open waits for another opener to close the store, for example a server shutting
  /// down. With zero, the default, it throws `locked` at once.
  ///
  /// The open notices the close after a few milliseconds. If several openers wait, any of them may
  /// be next.
  public var lockTimeout: Duration = .zero

  /// How bytes are read and written. Default `.mapped`.
  public var access: Access = .mapped

  /// Whether opening an empty path creates a store. Default `true`.
  public var createsStore: Bool = true

  /// The clock that decides expiry. The default is the system's.
  public var clock: any WallClock = SystemClock()

  /// Called for every removed entry, with the cause, on the thread that caused it. The call comes
  /// after the change and outside all locks, so it may use the store. Calls for entries that
  /// maintenance removed just before a close may come after the close. Default `nil`.
  ///
  /// With an observer, an overwrite costs a copy of the key.
  public var removalObserver: (@Sendable (RemovalEvent) -> Void)?

  /// Called for every damaged place that a scrub finds, with its keys, once per cycle. The call
  /// comes on the scrubbing thread and outside all locks, so it may use the store. After a crash,
  /// the last calls may be repeated. Default `nil`.
  public var damageObserver: (@Sendable (DamageEvent) -> Void)?

  /// Whether an eviction candidate was recently read from memory, without an access in the store.
  /// It then counts as just read. Called while entries are chosen, so it must not use the store.
  package var isInUse: (@Sendable (_ key: RawSpan) -> Bool)?

  /// A key that no limit, trim or removal by predicate removes. Only a write of this key or
  /// `removeAll` does.
  package var reservedKey: [UInt8]?

  /// An additional chore of each pass of housekeeping, in bounded rounds. It returns whether it has
  /// more to do.
  package var chore: (@Sendable () throws(StoreError) -> Bool)?

  /// Whether a write that finds no room on the disk evicts the coldest entries, as in a cache.
  package var evictsOnFullDisk = false

  /// Receives reports that no call can throw: a recovery, a quarantined file, a background failure.
  /// They never contain keys or values. The default, `.standardError`, writes warnings and errors,
  /// one line each. `.none` silences the log.
  public var log: DiagnosticLog = .standardError

  /// A batch of at least this many operations is written outside the log, so that other writers can
  /// continue. Lower in simulations.
  package var asideOperationCount: Int = 8192

  /// The background makes a checkpoint once this many bytes, or four times the checkpoint's size,
  /// were appended since the last one. Lower in simulations.
  package var checkpointByteThreshold: Int = 64 << 20

  /// A close makes no checkpoint if at most this many records were written since the last one,
  /// because the next open reads them as quickly.
  package var checkpointRecordThreshold: Int = 16

  /// All new writes get higher versions than this.
  package var precedingVersion: UInt64 = 0

  /// How the store reaches its bytes.
  public enum Access: Sendable, Hashable {
    /// Memory mappings, the fastest way. As with every mapped file, a failing disk or a truncation
    /// by another program can raise SIGBUS in the process.
    case mapped
    /// `pread` and `pwrite`: a system call for every read and write, and an error instead of
    /// SIGBUS.
    case systemCalls
  }

  /// Creates the default configuration, which loses no acknowledged write and sets no limits.
  public init() {}
}
