/// One call that removes many entries: why it does, and what it has done so far.
struct Removal {
  var cause: RemovalCause
  let now: Timestamp
  /// The time that its records say they were written at.
  let written: Timestamp
  /// Whether an entry that was read since it was chosen stays.
  var sparesRead: Bool
  /// Whether an entry that was read elsewhere stays, too.
  var asksForUse: Bool
  private(set) var summary = RemovalSummary()
  /// The version of the last tombstone, or 0.
  private(set) var lastSequence: SequenceNumber = 0
  /// What the observer is still to be told.
  fileprivate(set) var events: [RemovalEvent] = []
  /// Whether that waits until the caller has given a lock up.
  var holdsEvents = false
  /// Where records lie whose head is damaged.
  private(set) var damaged: Set<Location> = []
  /// Whether the medium did not give a head, which it may give later.
  private(set) var hasUnreadable = false

  /// - Parameter written: `nil`: as `now`.
  init(_ cause: RemovalCause, now: Timestamp, written: Timestamp? = nil, sparesRead: Bool) {
    self.cause = cause
    self.now = now
    self.written = written ?? now
    self.sparesRead = sparesRead
    asksForUse = sparesRead
  }

  mutating func noteRemoved(byteCount: Int, sequence: SequenceNumber) {
    summary.count += 1
    summary.cost += byteCount
    lastSequence = sequence
  }

  mutating func note(_ event: RemovalEvent) { events.append(event) }

  /// What the observer is to be told now.
  mutating func takeEvents() -> [RemovalEvent] {
    defer { events = [] }
    return events
  }

  mutating func noteDamaged(_ location: Location, isUnreadable: Bool) {
    damaged.insert(location)
    if isUnreadable { hasUnreadable = true }
    summary.damagedCount = damaged.count
  }

  /// Goes on from what another call has done.
  mutating func add(_ other: Removal) {
    summary.count += other.summary.count
    summary.cost += other.summary.cost
    damaged.formUnion(other.damaged)
    summary.damagedCount = damaged.count
    lastSequence = max(lastSequence, other.lastSequence)
  }
}

/// A removal of many keys by name.
@usableFromInline
package struct KeyRemoval {
  /// How many were there.
  private(set) var count = 0
  /// The version of the last tombstone, or 0.
  private(set) var lastSequence: SequenceNumber = 0
  /// Whether one was not there.
  private(set) var foundAbsent = false

  init() {}

  mutating func noteRemoved(sequence: SequenceNumber) {
    count += 1
    lastSequence = sequence
  }

  mutating func noteAbsent() { foundAbsent = true }
}

/// Some entries that are removed under one hold of the log's lock.
struct VictimGroup {
  /// So few, and so few bytes of tombstones, that the lock is held for far less than a
  /// millisecond.
  static let victimLimit = 64
  static let byteLimit = 8 << 10

  struct Victim {
    var candidate: RemovalCandidate
    var location: Location
    /// Its segment, which is not held: a compaction may have to give its space back meanwhile.
    var segmentID: SegmentID
    /// The tombstone.
    var header: RecordHeader
    /// Where its key lies among all keys of the group.
    var key: Range<Int>
    var recordByteCount: Int
    var sequence: SequenceNumber
    /// When its lifetime ended as far as was known; `Int64.min` where it has no end.
    var end: Int64
    var hasExpired: Bool
  }

  private(set) var victims: [Victim] = []
  private(set) var keys: [UInt8] = []
  /// The most bytes that the tombstones take.
  private(set) var byteCount = 0
  /// Bytes of the records that die, extensions included.
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
    end: Int64, extensionByteCount: Int, hasExpired: Bool
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
        end: end, hasExpired: hasExpired))
    byteCount += header.byteCount + RecordHeader.syncMarkByteCount
    recordByteCount += record.header.byteCount + extensionByteCount
  }
}
