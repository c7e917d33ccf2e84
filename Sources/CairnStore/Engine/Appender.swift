/// The end of the log: all writes happen here, one at a time, under the appender's lock.
///
/// Because all writes use one lock, no record is published or acknowledged until every earlier byte
/// of the log is in the page cache.
struct Appender: ~Copyable {
  /// The initial allocation of a segment, unless the session has filled others.
  static let firstAllocation = 64 << 10
  /// The largest step by which a segment grows.
  static let largestGrowth = 8 << 20
  /// So many rolled segments are sealed together, because each sealing writes a manifest.
  static let sealedCount = 8

  /// The segment being appended to, or `nil` until the first write after an open.
  var active: Segment? { didSet { usedActive = active.map { Unretained($0) } } }
  /// An unretained reference to `active`. Valid only while that segment stays active.
  private var usedActive: Unretained<Segment>?
  /// The offset of the next record in the active segment.
  var offset = 0
  /// The next segment, if it is ready.
  var prepared: Segment? { didSet { isNextRequested = false } }
  /// Whether a background job makes the next segment, or has failed a short while ago.
  var isNextRequested = false
  /// The places that the manifest lists for segments after the next one. They have no files yet.
  var reserved: [Manifest.OpenSegment] = []
  /// Rolled segments, in order. The manifest still lists them as open.
  var rolled: [Segment] = []
  /// Whether rolled segments are to be sealed, and no request to seal them has been made.
  var isSealingDue = false
  /// Segments that the manifest lists as sealed. Before the first write, also those that a close
  /// left open.
  var sealed: [Segment]
  /// Whether `sealed` includes both the old and the new segments of a compaction, and so contains
  /// each copied record twice.
  var holdsCopies = false
  /// The batch that is in the log but not entirely in the index, if any.
  var unpublished: UnpublishedBatch?
  /// The size at which a segment is full. One record may be larger.
  var segmentByteCount: Int
  /// The same while segments wait although they are to be sealed.
  var burstByteCount = 0
  /// Rolled segments of so many bytes are sealed even if they are few.
  var sealedByteCount = Int.max
  /// The current maximum growth step. It shrinks on a nearly full disk.
  var growth = largestGrowth
  var nextSequence: SequenceNumber
  /// How many more bytes writers may make dead.
  var allowance = SpaceAllowance()
  /// Why writes are refused.
  var failure: SystemFailure?
  var isClosed = false
  /// The last log end that was announced to processes that follow the store.
  var announced = LogPosition(rawValue: 0)

  /// The end of the log, or `nil` until the first write after an open.
  var position: LogPosition? {
    @inline(__always) get {
      usedActive?.withObject { LogPosition(id: $0.id, end: offset) }
    }
  }

  /// Whether this session has filled a segment. It will probably fill others, so each next one is
  /// prepared early and in full size.
  var isRolling = false
  /// The last sync mark in the active segment's records.
  private var lastSyncMark = 0
  /// The end of the range requested for prefaulting.
  private var prefaultedEnd = 0
  private var scratch: [UInt8] = []
  /// Whether system calls wrote the last record.
  private(set) var isAppendedByCalls = false

  init(sealed: [Segment], nextSequence: SequenceNumber, segmentByteCount: Int) {
    self.segmentByteCount = segmentByteCount
    self.sealed = sealed
    self.nextSequence = nextSequence
  }

  /// Whether the manifest lists places to write to.
  var hasSession: Bool { active != nil || prepared != nil || !reserved.isEmpty }

  /// All segments, in the order of the log.
  var segments: [Segment] { sealed + rolled + (active.map { [$0] } ?? []) }

  /// Whether the index names one record for each key: the one that a replay of the log would find.
  var isConsistent: Bool { !holdsCopies && unpublished == nil }

  /// How much of the next segment to allocate.
  var nextAllocation: Int {
    isRolling
      ? max(Self.firstAllocation, min(growth, segmentByteCount, Self.largestPrefault))
      : Self.firstAllocation
  }

  /// The place of a record in the active segment.
  @inline(__always)
  func place(of location: Location) -> RecordPlace {
    usedActive.map { $0.withObject { RecordPlace($0.id, offset: $0.offset(of: location)) } }
      ?? .unknown
  }

  /// Throws unless writes are possible.
  @inline(__always)
  func checkWritable(path: @autoclosure () -> String) throws(StoreError) {
    if isClosed { throw .closed(path: path()) }
    if let failure { throw .poisoned(cause: failure) }
  }

  /// Refuses all writes if the error leaves it unknown which manifest is on disk: that manifest may
  /// not list the active segment.
  mutating func note(_ error: StoreError) {
    if case .poisoned(let cause) = error { fail(cause) }
  }

  /// Refuses all writes from now on.
  mutating func fail(_ cause: SystemFailure) { if failure == nil { failure = cause } }

  // MARK: Room

  /// What must happen before records of some size can be appended.
  enum Room {
    case ready
    /// The manifest lists no place to write to.
    case needsSession
    /// There is no active segment, or it is full, and the next one is not ready.
    case needsNext
    /// The disk has no room.
    case none(StoreError)
  }

  /// Whether `byteCount` bytes of records fit without a system call or any other preparation.
  @inline(__always)
  func hasRoom(byteCount: Int, reserve: DiskReserve) -> Bool {
    guard let active = usedActive, !reserve.isShort else { return false }
    let end = offset + byteCount + RecordHeader.rollByteCount + Segment.slack
    return active.withObject { active in
      end <= min(active.capacity, active.allocatedByteCount)
        && nextSequence - active.header.baseSequence < 1 << 31
    }
  }

  /// Ensures room for the roll record that ends the active segment. Only a truncation by a failed
  /// write or a close takes that room away.
  func makeRoomForRoll() throws(StoreError) {
    try active?.allocate(to: offset + RecordHeader.rollByteCount)
  }

  /// The first rolled segments that meet a condition. None has records of an unpublished batch,
  /// which a compaction would treat as dead.
  func sealable(if isDue: (Segment) -> Bool) -> [Segment] {
    failure == nil ? Array(rolled.prefix { $0 !== unpublished?.segment && isDue($0) }) : []
  }

  /// Ends the active segment, if any, and continues in another.
  mutating func roll(to next: Segment) throws(StoreError) {
    // Open the file first, because the process may have no descriptor left.
    try next.openFile()
    if let active {
      var header = RecordHeader(kind: .roll)
      header.sequenceDelta = UInt32(nextSequence - active.header.baseSequence)
      var bytes = [UInt8](repeating: 0, count: RecordHeader.rollByteCount)
      let offset = offset
      bytes.withMutableSpan {
        header.encode(key: RawSpan(), metadata: RawSpan(), value: RawSpan(), into: &$0)
        header.seal(&$0, at: offset, seed: active.seed)
      }
      try makeRoomForRoll()
      try write(bytes.rawSpan, to: active, forSync: false)
      active.usage.add(
        header, sequence: nextSequence, end: offset + bytes.count, isLive: false)
      rolled.append(active)
      // Removals make other segments dead, so that a compaction is due.
      if rolled.count >= Self.sealedCount
        || rolled.reduce(0, { $0 + $1.usage.end }) >= sealedByteCount
        || active.usage.tombstoneCount > active.usage.putCount
      {
        isSealingDue = true
      }
    }
    start(in: next, at: SegmentHeader.byteCount)
  }

  /// Ends the active segment and continues in one that no manifest lists yet.
  ///
  /// - Parameters:
  ///   - sequence: the number of the next record.
  ///   - list: makes the manifest list the segment after the active one. If that changes nothing,
  ///     for example for lack of room, the log continues in the prepared segment instead.
  mutating func roll(
    to segment: Segment, from sequence: SequenceNumber, listing list: () throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let prepared else { preconditionFailure("the next segment is not prepared") }
    try prepared.openFile()
    let last = exchange(&nextSequence, with: sequence)
    do throws(StoreError) { try roll(to: segment) } catch {
      nextSequence = last
      throw error
    }
    do throws(StoreError) { try list() } catch {
      note(error)
      // A poisoned store can still be backed up, so the log must not contain the segment.
      if failure != nil, let last = rolled.popLast() {
        start(in: last, at: last.usage.end)
      } else {
        start(in: prepared, at: SegmentHeader.byteCount)
        self.prepared = nil
      }
      throw error
    }
  }

  /// Makes a segment the active one.
  mutating func start(in segment: Segment, at offset: Int) {
    active?.setActive(false)
    segment.setActive(true)
    active = segment
    self.offset = offset
    lastSyncMark = 0
    prefaultedEnd = 0
  }

  // MARK: Records

  /// System calls write records of at least this size. Each page written through a mapping costs a
  /// fault, and an interrupt on every processor when the page goes to disk. System calls also write
  /// records that are synced at once, because syncing a mapped page takes three times as long.
  static let smallestCall = 4096

  /// Appends one record, and returns its location and sequence number. The caller has made room.
  mutating func append(
    _ header: inout RecordHeader, key: RawSpan, metadata: RawSpan, value: RawSpan,
    written: Timestamp, forSync: Bool
  ) throws(StoreError) -> (location: Location, sequence: SequenceNumber) {
    guard let active = usedActive else { preconditionFailure("no room was made") }
    let (sequence, offset) = (nextSequence, offset)
    let mark = active.withObject { $0.syncMark }
    if mark != lastSyncMark {
      header.flags.insert(.syncMark)
      header.syncMark = UInt64(mark)
    }
    active.withObject { header.stamp(sequence, written: written, in: $0.header) }
    let byteCount = header.byteCount
    isAppendedByCalls = forSync || byteCount >= Self.smallestCall
    let isWritten =
      !isAppendedByCalls
      && active.withObject {
        $0.write(header, at: offset, key: key, metadata: metadata, value: value)
      }
    if !isWritten { try appendByCalls(header, key: key, metadata: metadata, value: value) }
    nextSequence = sequence + 1
    self.offset = offset + byteCount
    lastSyncMark = mark
    let end = self.offset
    return active.withObject {
      $0.count(header, sequence: sequence, end: end)
      return ($0.location(at: offset), sequence)
    }
  }

  /// Appends a record whose value and padding are already in place.
  mutating func appendHead(
    _ header: inout RecordHeader, key: RawSpan, metadata: RawSpan, written: Timestamp
  ) throws(StoreError) -> (location: Location, sequence: SequenceNumber) {
    guard let active else { preconditionFailure("no room was made") }
    let (sequence, offset) = (nextSequence, offset)
    header.stamp(sequence, written: written, in: active.header)
    var bytes = [UInt8](repeating: 0, count: header.headByteCount)
    let copy = header
    bytes.withMutableSpan { (buffer: inout MutableRawSpan) in
      copy.encodeHead(key: key, metadata: metadata, into: &buffer)
      copy.seal(&buffer, at: offset, seed: active.seed)
    }
    try write(bytes.rawSpan, to: active, forSync: true)
    nextSequence = sequence + 1
    self.offset = offset + header.byteCount
    active.usage.add(header, sequence: sequence, end: self.offset, isLive: true)
    return (active.location(at: offset), sequence)
  }

  private mutating func appendByCalls(
    _ header: RecordHeader, key: RawSpan, metadata: RawSpan, value: RawSpan
  ) throws(StoreError) {
    guard let segment = active else { preconditionFailure("no room was made") }
    let offset = offset
    // Write a large value from the caller's memory, a small record from one buffer.
    let isLarge = value.byteCount > 64 << 10
    let head = header.headByteCount
    let byteCount = isLarge ? head : header.byteCount
    if scratch.count < byteCount {
      scratch = [UInt8](repeating: 0, count: max(byteCount, 4096))
    }
    scratch.withMutableSpan { (buffer: inout MutableRawSpan) in
      if isLarge {
        header.encodeHead(key: key, metadata: metadata, into: &buffer)
      } else {
        header.encode(key: key, metadata: metadata, value: value, into: &buffer)
      }
      header.seal(&buffer, at: offset, seed: segment.seed)
    }
    if isLarge {
      try write(value, to: segment, at: offset + head, forSync: true)
      let padding = [UInt8](repeating: 0, count: header.byteCount - head - value.byteCount)
      try write(padding.rawSpan, to: segment, at: offset + head + value.byteCount, forSync: true)
    }
    // Write the head last: if the process is killed before that, there is no valid header.
    let bytes = scratch
    try write(bytes.rawSpan.extracting(0..<byteCount), to: segment, at: offset, forSync: true)
  }

  /// Appends the encoded records of a batch. The caller has made room.
  mutating func append(
    _ batch: inout BatchRecords, written: Timestamp, forSync: Bool
  ) throws(StoreError) -> (segment: Segment, offset: Int, firstSequence: SequenceNumber) {
    guard let active else { preconditionFailure("no room was made") }
    let mark = active.syncMark
    let start = offset
    let first = nextSequence
    batch.seal(
      at: start, in: active.header, firstSequence: first, written: written, syncMark: mark)
    let byCalls = forSync || batch.byteCount >= Self.smallestCall
    try batch.forEachChunk { (offset, bytes) throws(StoreError) in
      try write(bytes, to: active, at: start + offset, forSync: byCalls)
    }
    nextSequence = first + UInt64(batch.operations.count)
    offset = start + batch.byteCount
    lastSyncMark = mark
    batch.count(in: active.usage, at: start, firstSequence: first, isLive: true)
    return (active, start, first)
  }

  private mutating func write(
    _ bytes: RawSpan, to segment: Segment, at offset: Int? = nil, forSync: Bool
  ) throws(StoreError) {
    isAppendedByCalls = forSync || bytes.byteCount >= Self.smallestCall
    do throws(StoreError) {
      try segment.write(bytes, at: offset ?? self.offset, byCalls: isAppendedByCalls)
    } catch {
      // Some of the bytes may be in the segment. After a later, shorter record, they could be
      // mistaken for a part of it. If they cannot be cut off, nothing is appended until they are.
      try? segment.trim(to: self.offset)
      throw error
    }
  }

  // MARK: Chores

  /// Background work whose results the writer will need later.
  struct Chores {
    var prefault: (segment: Segment, offset: Int, count: Int)?
    var needsNextSegment = false
    var needsSealing = false
  }

  /// Returns the work that has become due, if any. Returns each range to prefault only once.
  @inline(__always)
  mutating func takeChores(prefaulting: Bool) -> Chores? {
    guard let used = usedActive else { return nil }
    let wantsPrefault =
      prefaulting && !isAppendedByCalls && offset + Self.prefaultLead > prefaultedEnd
      && used.withObject { $0.allocatedByteCount } > prefaultedEnd + 4095
    let wantsNext =
      prepared == nil && !isNextRequested && (isRolling || offset > segmentByteCount / 2)
    if !wantsPrefault && !wantsNext && !isSealingDue { return nil }
    return makeChores(prefault: wantsPrefault, next: wantsNext)
  }

  @inline(never)
  private mutating func makeChores(prefault wantsPrefault: Bool, next wantsNext: Bool) -> Chores? {
    guard let active else { return nil }
    var chores = Chores()
    chores.needsNextSegment = wantsNext
    if wantsNext { isNextRequested = true }
    chores.needsSealing = exchange(&isSealingDue, with: false)
    if wantsPrefault, active.mapping != nil {
      let start = max(prefaultedEnd, offset & ~4095)
      let end = min(active.allocatedByteCount & ~4095, start + Self.largestPrefault)
      if end > start {
        prefaultedEnd = end
        chores.prefault = (active, start, end - start)
      }
    }
    return chores
  }

  /// Prefaulting starts when the writer comes this close to the end of the prefaulted range.
  private static let prefaultLead = 1 << 20
  private static let largestPrefault = 4 << 20
}
