/// Entries that an iteration cannot read. The iteration skips them, and throws the first error
/// after visiting all other entries.
struct PassedOver {
  private var first: StoreError?

  /// - Throws: an error that affects more than one record.
  mutating func note(_ error: StoreError) throws(StoreError) {
    guard error.isLoss else { throw error }
    if first == nil { first = error }
  }

  func tell() throws(StoreError) {
    if let first { throw first }
  }
}

/// The entries of the current store or of a snapshot, and the locations of their records.
protocol EntryView {
  /// The entries of one shard, all from one moment.
  func places(inShard shard: Int) throws(StoreError) -> [Lookup.Place]

  /// - Parameter tick: the last access of the record's entry.
  func hasExpired(_ header: RecordHeader, tick: UInt64) -> Bool
}

extension EntryView {
  func hasExpired(_ entry: IndexEntry, _ header: RecordHeader) -> Bool {
    entry.flags.contains(.canExpire) && hasExpired(header, tick: entry.tick)
  }
}

/// The entries of each shard at the moment when the iteration reaches it.
private struct LiveEntries: EntryView {
  let lookup: Lookup
  let now: Timestamp

  func places(inShard shard: Int) throws(StoreError) -> [Lookup.Place] {
    try lookup.session.checkUsable()
    let entries = try lookup.index.entries(inShard: shard) { lookup.table.segment(at: $0) }
    return entries.compactMap { entry, segment in
      segment.map { Lookup.Place(entry: entry, segment: $0) }
    }
  }

  func hasExpired(_ header: RecordHeader, tick: UInt64) -> Bool {
    lookup.hasExpired(header, tick: tick, now: now)
  }
}

extension Reader {
  /// The current store, shard by shard.
  var live: some EntryView { LiveEntries(lookup: lookup, now: session.clock.now()) }

  /// Visits every entry that has not expired, in no particular order.
  func forEach(
    in view: some EntryView, keyPrefix prefix: RawSpan, part: Record.Part,
    _ body: (borrowing FoundRecord, inout PassedOver) throws -> Visit
  ) throws {
    var passedOver = PassedOver()
    for shard in 0..<HashIndex.shardCount {
      try session.checkProcess()
      for place in try view.places(inShard: shard) {
        let found: FoundRecord
        do throws(StoreError) {
          found = try record(at: place, part: part)
        } catch {
          try passedOver.note(error)
          continue
        }
        guard found.record.hasKey(prefix: prefix), !view.hasExpired(place.entry, found.header)
        else { continue }
        if try body(found, &passedOver) == .stop { return try passedOver.tell() }
      }
    }
    try passedOver.tell()
  }

  func record(
    at place: Lookup.Place, part: Record.Part
  ) throws(StoreError) -> FoundRecord {
    FoundRecord(
      record: try Record.put(in: place.segment, at: place.entry.location, part: part),
      tick: place.entry.tick)
  }

  func forEachKey(
    in view: some EntryView, prefix: RawSpan, _ body: (RawSpan) throws -> Visit
  ) throws {
    try forEach(in: view, keyPrefix: prefix, part: .head) { found, _ in try body(found.record.key) }
  }

  /// Calls `body` with the head of each entry.
  func forEachHead(
    in view: some EntryView,
    _ body: (_ key: RawSpan, _ metadata: RawSpan, _ version: SequenceNumber) throws -> Visit
  ) throws {
    try forEach(in: view, keyPrefix: [UInt8]().rawSpan, part: .head) { found, _ in
      try body(found.record.key, found.record.metadata, found.record.sequence)
    }
  }

  func forEachEntry(
    in view: some EntryView, prefix: RawSpan, _ body: (ByteEntry) throws -> Visit
  ) throws {
    try forEach(in: view, keyPrefix: prefix, part: .all) { try visit($0, &$1, body) }
  }

  @usableFromInline
  package func forEachKey(prefix: RawSpan, _ body: (RawSpan) throws -> Visit) throws {
    try forEachKey(in: live, prefix: prefix, body)
  }

  @usableFromInline
  package func forEachEntry(prefix: RawSpan, _ body: (ByteEntry) throws -> Visit) throws {
    try forEachEntry(in: live, prefix: prefix, body)
  }

  /// Calls `body` with an entry, unless its value is damaged.
  func visit(
    _ found: borrowing FoundRecord, _ passedOver: inout PassedOver,
    _ body: (ByteEntry) throws -> Visit
  ) throws -> Visit {
    let entry: ByteEntry
    do throws(StoreError) { entry = try self.entry(of: found) } catch {
      try passedOver.note(error)
      return .next
    }
    return try body(entry)
  }
}
