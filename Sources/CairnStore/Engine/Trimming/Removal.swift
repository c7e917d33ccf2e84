/// One call that removes many entries: its cause, and its progress.
struct Removal {
  var cause: RemovalCause
  let now: Timestamp
  /// The write time in the removal's records.
  let written: Timestamp
  /// Whether to spare an entry that has been read since it was chosen.
  var sparesRead: Bool
  private(set) var summary = RemovalSummary()
  /// The version of the last tombstone, or 0.
  private(set) var lastSequence: SequenceNumber = 0
  /// Events not yet reported to the observer.
  fileprivate(set) var events: [RemovalEvent] = []
  /// Whether events wait until the caller has released a lock.
  var holdsEvents = false
  /// The locations of records with a damaged head.
  private(set) var damaged: Set<Location> = []
  /// Whether the medium could not read a head. It may be readable later.
  private(set) var hasUnreadable = false

  /// - Parameter written: the write time, or `nil` for `now`.
  init(_ cause: RemovalCause, now: Timestamp, written: Timestamp? = nil, sparesRead: Bool) {
    self.cause = cause
    self.now = now
    self.written = written ?? now
    self.sparesRead = sparesRead
  }

  mutating func noteRemoved(byteCount: Int, sequence: SequenceNumber) {
    summary.count += 1
    summary.cost += byteCount
    lastSequence = sequence
  }

  mutating func note(_ event: RemovalEvent) { events.append(event) }

  /// The events to report to the observer now.
  mutating func takeEvents() -> [RemovalEvent] {
    defer { events = [] }
    return events
  }

  mutating func noteDamaged(_ location: Location, isUnreadable: Bool) {
    damaged.insert(location)
    if isUnreadable { hasUnreadable = true }
    summary.damagedCount = damaged.count
  }

  /// Adds the progress of another call.
  mutating func add(_ other: Removal) {
    summary.count += other.summary.count
    summary.cost += other.summary.cost
    damaged.formUnion(other.damaged)
    summary.damagedCount = damaged.count
    lastSequence = max(lastSequence, other.lastSequence)
  }
}

/// Entries that are removed together under the log's lock.
struct VictimGroup {
  /// The maximum number of entries, and of bytes of tombstones before the last one. With these
  /// limits, the log's lock is held for far less than a millisecond, and a group fits into every
  /// segment.
  static let victimLimit = 64
  static let byteLimit = 7 << 10

  struct Victim {
    var candidate: RemovalCandidate
    var location: Location
    /// The id of the record's segment. Not a reference, because a compaction may have to reclaim
    /// the segment's space in the meantime.
    var segmentID: SegmentID
    /// The tombstone.
    var header: RecordHeader
    /// The range of the victim's key among all keys of the group.
    var key: Range<Int>
    var recordByteCount: Int
    var sequence: SequenceNumber
    var hasExpired: Bool
  }

  private(set) var victims: [Victim] = []
  private(set) var keys: [UInt8] = []
  /// An upper bound on the bytes of the tombstones.
  private(set) var byteCount = 0
  /// The number of bytes in the records that become dead.
  private(set) var recordByteCount = 0

  var isFull: Bool { victims.count >= Self.victimLimit || byteCount >= Self.byteLimit }

  mutating func removeAll() {
    victims.removeAll(keepingCapacity: true)
    keys.removeAll(keepingCapacity: true)
    byteCount = 0
    recordByteCount = 0
  }

  mutating func add(
    _ candidate: RemovalCandidate, _ record: borrowing Record, at location: Location,
    hasExpired: Bool
  ) {
    var header = RecordHeader(kind: .tombstone)
    header.keyByteCount = record.header.keyByteCount
    let start = keys.count
    keys.append(contentsOf: record.key.copied())
    victims.append(
      Victim(
        candidate: candidate, location: location, segmentID: record.segment.id, header: header,
        key: start..<keys.count,
        recordByteCount: record.header.byteCount, sequence: record.sequence,
        hasExpired: hasExpired))
    byteCount += header.byteCount + RecordHeader.syncMarkByteCount
    recordByteCount += record.header.byteCount
  }
}
