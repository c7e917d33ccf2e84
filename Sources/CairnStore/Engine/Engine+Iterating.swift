/// What an iteration cannot read. It passes that over, and tells the first of it when all else was visited.
struct PassedOver {
  private var first: StoreError?

  /// - Throws: what is no loss of a record alone.
  mutating func note(_ error: StoreError) throws(StoreError) {
    guard error.isLoss else { throw error }
    if first == nil { first = error }
  }

  func tell() throws(StoreError) {
    if let first { throw first }
  }
}

extension Engine {
  /// Visits every entry that is there when its part of the index is reached and has not expired,
  /// in no order.
  func forEach(
    keyPrefix prefix: RawSpan, part: Record.Part,
    _ body: (borrowing FoundRecord, inout PassedOver) throws -> Visit
  ) throws {
    let now = clock.now()
    var passedOver = PassedOver()
    for shard in 0..<HashIndex.shardCount {
      try checkUsable()
      for (entry, segment, end) in try index.entries(inShard: shard, { table.segment(at: $0) }) {
        guard let segment else { continue }
        let record: Record
        do throws(StoreError) {
          record = try Record(in: segment, at: segment.offset(of: entry.location), part: part)
        } catch {
          try passedOver.note(error)
          continue
        }
        guard record.hasKey(prefix: prefix) else { continue }
        if entry.flags.contains(.canExpire),
          hasExpired(record.header.extended(to: end), tick: entry.tick, now: now)
        {
          continue
        }
        let found = FoundRecord(record: record, tick: entry.tick, end: end)
        if try body(found, &passedOver) == .stop { return try passedOver.tell() }
      }
    }
    try passedOver.tell()
  }

  @usableFromInline
  package func forEachKey(prefix: RawSpan, _ body: (RawSpan) throws -> Visit) throws {
    try forEach(keyPrefix: prefix, part: .head) { found, _ in try body(found.record.key) }
  }

  @usableFromInline
  package func forEachEntry(prefix: RawSpan, _ body: (Entry) throws -> Visit) throws {
    try forEach(keyPrefix: prefix, part: .all) { try visit($0, &$1, body) }
  }

  /// Calls `body` with an entry, unless its value is damaged.
  private func visit(
    _ found: borrowing FoundRecord, _ passedOver: inout PassedOver, _ body: (Entry) throws -> Visit
  ) throws -> Visit {
    let entry: Entry
    do throws(StoreError) { entry = try self.entry(of: found) } catch {
      try passedOver.note(error)
      return .next
    }
    return try body(entry)
  }

  // MARK: In a snapshot

  func forEachKey(
    in snapshot: SnapshotState, prefix: RawSpan, _ body: (RawSpan) throws -> Visit
  ) throws {
    try forEach(in: snapshot, keyPrefix: prefix, part: .head) { found, _ in
      try body(found.record.key)
    }
  }

  func forEachEntry(
    in snapshot: SnapshotState, prefix: RawSpan, _ body: (Entry) throws -> Visit
  ) throws {
    try forEach(in: snapshot, keyPrefix: prefix, part: .all) { try visit($0, &$1, body) }
  }

  private func forEach(
    in snapshot: SnapshotState, keyPrefix prefix: RawSpan, part: Record.Part,
    _ body: (borrowing FoundRecord, inout PassedOver) throws -> Visit
  ) throws {
    var passedOver = PassedOver()
    var entries: [IndexEntry] = []
    for shard in 0..<HashIndex.shardCount {
      if processMark.isForeign { throw StoreError.usedAfterFork(path: path) }
      try snapshot.index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries {
        let end = try snapshot.index.end(of: entry, inShard: shard)
        let found: FoundRecord
        do throws(StoreError) {
          guard let record = try record(of: entry, in: snapshot, part: part),
            record.hasKey(prefix: prefix),
            !hasExpired(record.header.extended(to: end), entry, in: snapshot)
          else { continue }
          found = FoundRecord(record: record, tick: entry.tick, end: end)
        } catch {
          try passedOver.note(error)
          continue
        }
        if try body(found, &passedOver) == .stop { return try passedOver.tell() }
      }
    }
    try passedOver.tell()
  }

  func count(in snapshot: SnapshotState) throws(StoreError) -> Int {
    if processMark.isForeign { throw .usedAfterFork(path: path) }
    if snapshot.index.expirableCount == 0 { return snapshot.index.count }
    var passedOver = PassedOver()
    var expired = 0
    var entries: [IndexEntry] = []
    for shard in 0..<HashIndex.shardCount {
      try snapshot.index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries where entry.flags.contains(.canExpire) {
        let end = try snapshot.index.end(of: entry, inShard: shard)
        do throws(StoreError) {
          guard let record = try record(of: entry, in: snapshot, part: .head) else { continue }
          if hasExpired(record.header.extended(to: end), entry, in: snapshot) { expired += 1 }
        } catch { try passedOver.note(error) }
      }
    }
    return snapshot.index.count - expired
  }
}
