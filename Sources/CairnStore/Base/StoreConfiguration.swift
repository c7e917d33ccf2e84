/// The options for opening a store. The defaults suit a store that must not lose data.
public struct StoreConfiguration: Sendable {
  /// What an acknowledged write survives, unless the write specifies its own class.
  ///
  /// Default `.durable`. `.process` is hundreds of times as fast and suits data that can be
  /// recreated. `.interval` limits what a power cut can lose.
  public var durability: Durability = .durable

  /// The largest size of a full segment of the log, in bytes, from 64 KiB to 1 GiB; 72 KiB are used
  /// at least.
  ///
  /// Default 64 MiB. A segment is a 64th of the log, but at least 1 MiB, or up to 16 MiB on a disk
  /// with slow syncs, within this limit. With a lower limit, compaction starts earlier and reclaims
  /// space in smaller steps, but copies more. A value larger than a segment gets one of its own.
  public var segmentByteLimit: Int = 64 << 20

  /// How many bytes the segments may take per live byte before compaction reclaims space, from 1.1
  /// to 1,000. Default 1.5, or 2 in a cache.
  ///
  /// With a lower bound, the store takes less space, but compaction copies more for each
  /// overwritten byte: 0.3 bytes at 2, 0.7 at 1.5, 1.7 at 1.25. Compaction ignores dead bytes below
  /// twice `segmentByteLimit`, unless a whole segment is dead. While compaction runs, it takes up to
  /// as much extra space.
  ///
  /// If the dead bytes exceed what the bound allows by more than half, and by more than
  /// twice `segmentByteLimit`, overwrites wait for compaction. Just below that, overwrites are
  /// slowed. The metrics `excessBytes` and `writeDelaySeconds` show these waits, and `log` reports
  /// them. Removals and writes of new keys do not wait. A large value or batch waits until
  /// compaction has reclaimed the space that the previous large write made dead. If compaction
  /// cannot reclaim anything, no write waits.
  public var spaceBound: Double = 1.5

  /// The number of dead bytes that compaction ignores, or `nil` for twice `segmentByteLimit`. For
  /// simulations.
  package var deadByteFloor: Int?

  /// The longest key, in bytes, from 1 to 65,535. Default 65,535.
  package var keyByteLimit: Int = 65_535

  /// The largest value that a write accepts, in bytes, up to 4,294,967,295. Default 1 GiB. It does
  /// not limit reads, so values that were written under a higher limit stay readable.
  public var valueByteLimit: Int = 1 << 30

  /// The largest metadata of an entry, in bytes, up to 65,535. Default 65,535.
  package var metadataByteLimit: Int = 65_535

  /// The maximum size of one atomic batch in the log, in bytes. Default 256 MiB, at most 4 GiB.
  ///
  /// A batch is held in memory until it is written.
  package var batchByteLimit: Int = 256 << 20

  /// The maximum number of entries, or `nil`, the default, for no limit.
  ///
  /// The limit holds when a write returns: the store evicts the least recently used entries, in the
  /// exact order of access. Expired entries count until they are removed. An eviction removes
  /// slightly more than necessary, so that not every write has to evict: up to a hundredth of the
  /// limit, and at most 64 entries or 64 KiB.
  ///
  /// If the disk has no room even for a removal, the write that exceeded the limit stays. Later
  /// writes then throw and change nothing, until the store is within the limit again.
  public var countLimit: Int?

  /// The maximum number of live bytes, as in `statistics().liveByteCount`: keys, values, metadata
  /// and at least 24 bytes per entry. `nil`, the default, means no limit.
  ///
  /// Enforced like `countLimit`. Writing an entry that alone exceeds the limit throws
  /// `tooLarge`. On disk, the store takes up to `spaceBound` times as much, plus a few
  /// segments of `segmentByteLimit`. With a small limit, set `segmentByteLimit` to less than an
  /// eighth of the limit.
  public var byteLimit: Int?

  /// The maximum bytes of the store's files on disk, as `du` counts them: segments, the reserve,
  /// the checkpoint and the manifests. At least 4 MiB. `nil`, the default, means no limit.
  ///
  /// `byteLimit` counts only live entries, but this limit counts files, and holds when a write
  /// returns. Entries are evicted once they fill 90 % of it, with 112 bytes for each entry beside its
  /// record: about 80 % if values have 1 KB, and less with smaller ones. (Below 32 MiB, other files
  /// take a larger share.) A full cache writes 1.5 to 2 bytes for each byte that it stores. A full
  /// store whose entries are mostly overwritten writes more than 4, and is slow; with a `byteLimit`
  /// of 70 % of this limit, it writes about 2. `segmentByteLimit` is lowered to a 128th of this
  /// limit, but at least 256 KiB. If the files exceed the limit when the store is opened, the next
  /// writes shrink them.
  ///
  /// If writers are faster than compaction, a write waits until compaction has reclaimed enough
  /// space. The metric `delayedWrites` counts these writes. If compaction cannot reclaim
  /// enough, a cache evicts its least recently used entries, as on a full disk, and a store throws
  /// `noSpace`. Removed files that a snapshot or a reader still holds do not count.
  public var diskByteLimit: Int?

  /// The lifetime of entries that are written without one. Default `.unlimited`, which `.standard`
  /// means here too. No read finds an entry after its lifetime has ended. With zero or less, or
  /// after the time of `.until`, entries expire at once.
  public var lifetime = Lifetime.unlimited

  /// The idle limit of entries that are written without one: how long they may go without a read or
  /// write. `nil`, the default, means no limit. No read finds an entry that has been idle for
  /// longer.
  public var idleLimit: Duration?

  /// How many bytes of the filesystem should stay free. `nil`, the default, means none.
  ///
  /// Because other programs fill the disk too, maintenance enforces this floor, not each write.
  /// Maintenance first reclaims dead space, then evicts the least recently used entries.
  public var freeDiskSpaceFloor: Int?

  /// How often maintenance runs. Maintenance removes expired entries, enforces `freeDiskSpaceFloor`
  /// and saves when entries were last accessed. It also runs once soon after the first write, to
  /// clean up after earlier sessions. Default 60 s, at least a millisecond. With `nil`, maintenance
  /// runs only when you call `Store.maintain`.
  ///
  /// The store keeps a thread for maintenance only while there is work to do or to wait for.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// How many bytes of the log maintenance scrubs per second, on average. `nil`, the default, means
  /// none. A scrub finds damage even in data that nobody reads, so that you learn of it while you
  /// still have an undamaged backup.
  ///
  /// Scrubs are off by default, because the disk may be asleep, metered or busy. 1 MiB per second
  /// covers 80 GiB a day. A scrub checks all heads and the newest values. It reports damage to
  /// `damageObserver` and the log, and changes nothing. A *cycle* reads the whole log once. A
  /// session begins one at most once a day, at a random segment, so sessions that are long enough
  /// for one segment together read the whole log. Each step of a cycle reads 256 KiB, and the first
  /// step loads the whole index. A session that is too short for a step reads nothing. The
  /// description of `statistics()` shows the progress.
  ///
  /// Without a `maintenanceInterval`, only `Store.maintain` takes steps, a few in each call. A
  /// store that is open for reading does not scrub by itself, but you can call `Store.scrub`.
  public var scrubBytesPerSecond: Int?

  /// How many asynchronous calls run at once, each on its own thread. Other calls queue. Writes
  /// have a queue of their own, with the same limit, so that long work does not delay them. The
  /// default is 16. A limit below 1 means 1, and `.max` means no limit.
  ///
  /// The store creates threads when it has work for them, and ends them when the work is done. If
  /// the system cannot create another thread, the calling thread does the work. With more than a
  /// few dozen threads, calls wait for each other at the disk.
  public var concurrentCallLimit: Int = 16

  /// Whether every read checks its value against the checksum. Default true, or false in a cache.
  ///
  /// With `false`, a large value is checked only by its first read since the segment was mapped or
  /// the record was moved. Large values are those of 4 KiB or more in segments that this process does
  /// not write to. If such a value is damaged after its first read, a scrub, a verification or the
  /// next session finds the damage. All reads check the record's header and key. RocksDB and ZFS
  /// offer the same choice.
  public var verifiesEveryRead = true

  /// How long an open waits if the store is open elsewhere, for example in a server that is
  /// shutting down. With zero, the default, the open throws `locked` at once.
  ///
  /// A waiting open notices the close within a few milliseconds. If several wait, any of them may
  /// be next.
  public var lockTimeout: Duration = .zero

  /// Whether the store maps its files into memory, the fastest way. Default true.
  ///
  /// As with every mapped file, a failing disk, or another program that truncates a file, can raise
  /// SIGBUS in the process. With `false`, each read and write is a system call, `pread` or `pwrite`,
  /// and failures cause errors instead.
  public var mapsFiles = true

  /// Whether an open creates the store if it does not exist. Default `true`.
  public var createsStore: Bool = true

  /// The clock that decides expiry. The default is the system's.
  public var clock: any WallClock = SystemClock()

  /// Called for every removed entry, with the cause. Default `nil`. The call follows the removal,
  /// on the thread that removed the entry and outside all locks, so the closure may use the store.
  /// For entries that maintenance removed just before a close, the call may come after the close.
  ///
  /// With an observer, each overwrite also copies the key.
  public var removalObserver: (@Sendable (RemovalEvent) -> Void)?

  /// Called for every damaged place that a scrub finds, once per cycle, and for every damaged value
  /// that a compaction copies. Default `nil`. The call is made outside all locks, so the closure may
  /// use the store: on the scrubbing thread or, after a compaction, on a thread of the store.
  public var damageObserver: (@Sendable (Damage) -> Void)?

  /// A key that no limit, trim or removal by predicate removes. Only a write of this key or
  /// `removeAll` does.
  package var reservedKey: [UInt8]?

  /// An additional chore for each housekeeping pass, in bounded rounds. Returns whether more work
  /// remains.
  package var chore: (@Sendable () throws(StoreError) -> Bool)?

  /// Whether the entries can be recreated, as those of a cache. A write that finds no room on the
  /// disk then evicts the coldest ones, and an open moves segments without a manifest aside.
  package var isOfCache = false

  /// Receives messages about problems that no call can throw. Messages never contain keys or
  /// values. The default, `.standardError`, writes warnings and errors to standard error, one line
  /// each. `.none` silences the log.
  public var log: DiagnosticLog = .standardError

  /// A batch of at least this many operations is written outside the log, so that other writers can
  /// continue. Lower in simulations.
  package var asideOperationCount: Int = 8192

  /// The store makes a checkpoint in the background once this many bytes, or four times the
  /// checkpoint's size, have been appended since the last one. Lower in simulations.
  package var checkpointByteThreshold: Int = 64 << 20

  /// A close makes no checkpoint if at most this many records have been written since the last one,
  /// because the next open reads them as quickly.
  package var checkpointRecordThreshold: Int = 16

  /// Makes the default configuration: writes are durable, and nothing is limited.
  public init() {}
}
