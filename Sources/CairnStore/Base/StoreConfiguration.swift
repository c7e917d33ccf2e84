/// How a store is opened. The defaults suit a store that must not lose anything; each option
/// says what another choice trades.
public struct StoreConfiguration: Sendable {
  /// What a write survives once it is acknowledged, unless it asks for another class itself.
  ///
  /// Default `.durable`. `.process` is a hundred times as fast and right for what can be made
  /// again; `.interval` bounds what a power loss may take.
  public var durability: Durability = .durable

  /// The size at which a segment of the log is full, in bytes, from 64 KiB to 1 GiB.
  ///
  /// Default 64 MiB. Smaller segments give space back in smaller steps and cost more files; a
  /// value that is larger than a segment gets a segment of its own.
  public var segmentByteLimit: Int = 64 << 20

  /// How many bytes the segments may take for each byte that is live, from 1.1 to 1,000, before
  /// compaction gives space back. Default 1.5.
  ///
  /// A lower bound takes less space, and more of what was written is written again: at 1.5 about
  /// two bytes for each that is given back, at 1.1 ten. Dead bytes of less than the size of two
  /// segments are left alone, unless a whole segment is dead. A round of
  /// compaction takes more for a time, two segments at most.
  ///
  /// Once the dead bytes are half as many again as the bound allows, writes that overwrite wait for compaction:
  /// `statistics().excessByteCount` and `writeDelay` show it, and `log` says so. Writes of new keys and removals
  /// do not wait. A large value or batch waits for the space that the large one before it has made dead. If
  /// compaction gives nothing back, no write waits.
  public var spaceBound: Double = 1.5

  /// Dead bytes that are left alone; `nil`: the size of two segments. For simulations.
  package var deadByteFloor: Int?

  /// The longest key, in bytes, from 1 to 65,535. Default 65,535.
  public var keyByteLimit: Int = 65_535

  /// The largest value, in bytes, up to 4,294,967,295. Default 1 GiB.
  public var valueByteLimit: Int = 1 << 30

  /// The largest metadata of an entry, in bytes, up to 65,535. Default 65,535.
  public var metadataByteLimit: Int = 65_535

  /// The most bytes that one atomic batch may take in the log. Default 256 MiB, at most 4 GiB.
  ///
  /// A batch is held in memory until it is committed.
  public var batchByteLimit: Int = 256 << 20

  /// How many entries there may be; `nil`, the default: any number.
  ///
  /// A write returns only when the limit holds: the least recently used entries go, to the very
  /// order of accesses. Entries that have expired count until they are removed. Several go at a time, so that
  /// not every write has to look for one: up to a hundredth of the limit below it, 64 entries or 64 KiB at
  /// most.
  ///
  /// Where nothing can be removed, since a disk has no room even for that, the write that found it
  /// so stands; those after it throw and write nothing until the limit holds again.
  public var countLimit: Int?

  /// How many bytes the entries may take in the log, as `statistics().liveByteCount` has them: keys,
  /// values, metadata and at least 24 for each. `nil`, the default: any number.
  ///
  /// Kept as `countLimit` is. An entry that is larger by itself is refused as `valueTooLarge`. On
  /// disk the store takes up to `spaceBound` times as much, and some segments of `segmentByteLimit`: make those
  /// smaller than an eighth of a small limit.
  public var byteLimit: Int?

  /// How many bytes the store's files may take on disk, as `du` counts them: all segments, the reserve, the index file and
  /// the manifests; from 4 MiB. `nil`, the default: what the disk has.
  ///
  /// `byteLimit` counts live entries, and the files may take more for a time. This limit holds when a write returns. It lowers
  /// `segmentByteLimit` to a sixteenth of it at most, and `byteLimit` to what compaction can keep within it: 95 % of the limit
  /// less four segments, divided by `spaceBound`. Files that take more already when the store is opened come under it with
  /// the next writes.
  ///
  /// Where writers are faster than compaction, a write waits until it has given back enough, which
  /// `statistics().delayedWriteCount` counts. A cache gives up its coldest entries before that fails, as on a full disk; a
  /// store throws `noSpace`. Files that a snapshot or a reader still holds after they were removed are not counted.
  public var diskByteLimit: Int?

  /// How long an entry lives that is written without a lifetime of its own; `nil`, the default: for
  /// ever. No read finds an entry after that. Zero or less: it has expired at once.
  public var lifetime: Duration?

  /// How long an entry may go unread and unwritten that has no idle limit of its own; `nil`, the
  /// default: for ever. No read finds an entry after that.
  public var idleLimit: Duration?

  /// How many bytes of the filesystem are to stay free; `nil`, the default: none.
  ///
  /// Kept by maintenance, not with every write, since others fill the disk too: dead space is given
  /// back first, then the least recently used entries go.
  public var freeDiskSpaceFloor: Int?

  /// How often the store looks after itself while it is open: removes what has expired, keeps
  /// `freeDiskSpaceFloor`; and once soon after its first write, for what was left before. `nil`: only when
  /// `Store.maintain` is called. Less than a millisecond is refused. Default 60 s.
  ///
  /// It runs on a thread that the store has only where there is something to wait for.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// How many bytes of the log maintenance reads again each second, on average, so that damage to what nobody reads is
  /// found while a backup without it still exists; `nil`, the default: none.
  ///
  /// Off by default, since it reads from a disk that may be asleep, metered or busy with something else. 1 MiB a
  /// second goes through 80 GiB a day. All heads and the newest values are checked, `verifiesValues` or not; what a
  /// *cycle* finds is told to `damageObserver` and the log, and nothing is changed. A cycle begins at most once a
  /// day, and goes on after a restart where it was. It takes 256 KiB at a time; a session that is shorter than that
  /// takes reads nothing. The first step loads the whole index. `statistics().scrub` says how far it is.
  ///
  /// Without `maintenanceInterval`, only `Store.maintain` takes steps, a few at a time. A store that is open for
  /// reading does not scrub by itself; `Store.scrub` does so by hand.
  public var scrubBytesPerSecond: Int?

  /// How many asynchronous calls are at work at once, each on a thread of its own; the others wait in line. Default
  /// 16. Less than 1 is as 1; `.max` is no limit.
  ///
  /// Durable writes that wait for the disk at the same time share a sync, so a few more are no burden. A thread is
  /// made when there is work for it, and ends when there is none. Without a limit there are as many as calls under
  /// way; where the system gives no more, the work is done on the thread that asks for it. More than some
  /// dozens wait for each other at the disk.
  public var concurrentCallLimit: Int = 16

  /// Whether reads check a value against its checksum. Default `true`.
  ///
  /// Without it, reads of large values are faster, and a damaged value is handed out as it is.
  /// Headers and keys are always checked.
  public var verifiesValues: Bool = true

  /// How long an open waits for another opener to close the store, as for a server that is shutting down. Default: not at
  /// all. Then it throws `locked`.
  ///
  /// It takes a few milliseconds to notice. Of several that wait any may be next.
  public var lockTimeout: Duration = .zero

  /// How bytes are read and written. Default `.mapped`.
  public var access: Access = .mapped

  /// Whether opening a path where nothing is makes a new store. Default `true`.
  public var createsStore: Bool = true

  /// The clock that expiry goes by. Default: the system's.
  public var clock: any WallClock = SystemClock()

  /// Told of every entry that goes, with the cause, on the thread that caused it, after the
  /// change, outside all locks: it may use the store. Of what maintenance removed just before a close it may
  /// be told after it. Default `nil`.
  ///
  /// With an observer, an overwrite costs a copy of the key.
  public var removalObserver: (@Sendable (RemovalEvent) -> Void)?

  /// Told of every damaged place that a scrub finds, with its keys, once in each cycle; on the thread that scrubs, outside all
  /// locks: it may use the store. What is told just before a crash is told again after it. Default `nil`.
  public var damageObserver: (@Sendable (DamageEvent) -> Void)?

  /// Whether an entry that is about to go for not having been read was read elsewhere, and the store not
  /// told of it. It then counts as just read. Called while entries are chosen: it must not use the store.
  package var isInUse: (@Sendable (_ key: RawSpan) -> Bool)?

  /// A key that no limit, trim or removal by choice makes go: what is under it goes by its key or with all.
  package var reservedKey: [UInt8]?

  /// What housekeeping does in each pass beside its own, in bounded rounds. It returns whether it has more to do.
  package var chore: (@Sendable () throws(StoreError) -> Bool)?

  /// Whether a write that finds no room on the disk makes the coldest entries go, as a cache's does.
  package var evictsOnFullDisk = false

  /// Where the store reports what no call throws: a recovery, a file set aside, a background failure. Never keys or
  /// values. Default `.standardError`: warnings and errors, one line each; `.none` silences it.
  public var log: DiagnosticLog = .standardError

  /// A batch of so many operations is written beside the log, so that other writers get on meanwhile. Fewer
  /// in simulations.
  package var asideOperationCount: Int = 8192

  /// A checkpoint is made in the background when so many bytes were appended since the last one, or
  /// four times its own size. Smaller in simulations.
  package var checkpointByteThreshold: Int = 64 << 20

  /// A close makes no checkpoint where at most so many records were written since the last one: the
  /// next open reads them as fast.
  package var checkpointRecordThreshold: Int = 16

  /// The store gives its writes higher versions than this.
  package var precedingVersion: UInt64 = 0

  /// How a store's bytes are reached.
  public enum Access: Sendable, Hashable {
    /// Through memory mappings: the fastest. As with every mapped file, a failing disk or a
    /// foreign truncation can raise SIGBUS in the process.
    case mapped
    /// By `pread` and `pwrite`: a system call for every read and write, an error where a mapping
    /// would raise a signal.
    case systemCalls
  }

  /// Creates the default configuration, which loses nothing that was acknowledged and sets no limits.
  public init() {}
}
