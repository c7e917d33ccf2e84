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

extension Reader {
  /// Visits every entry that is there when its part of the index is reached and has not expired,
  /// in no order.
  func forEach(
    keyPrefix prefix: RawSpan, part: Record.Part,
    _ body: (borrowing FoundRecord, inout PassedOver) throws -> Visit
  ) throws {
    let now = session.clock.now()
    var passedOver = PassedOver()
    for shard in 0..<HashIndex.shardCount {
      try session.checkUsable()
      for (entry, segment, end) in try lookup.index.entries(
        inShard: shard, { lookup.table.segment(at: $0) })
      {
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
          lookup.hasExpired(record.header.extended(to: end), tick: entry.tick, now: now)
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
  func visit(
    _ found: borrowing FoundRecord, _ passedOver: inout PassedOver, _ body: (Entry) throws -> Visit
  ) throws -> Visit {
    let entry: Entry
    do throws(StoreError) { entry = try self.entry(of: found) } catch {
      try passedOver.note(error)
      return .next
    }
    return try body(entry)
  }

  // MARK: For tests

  /// The keys that a read would find, the least recently accessed first.
  package func keysByRecency() throws -> [[UInt8]] {
    var keys: [(key: [UInt8], tick: UInt64)] = []
    try [UInt8]().withSpan { prefix in
      try forEach(keyPrefix: prefix, part: .head) { found, _ in
        keys.append((found.record.key.copied(), found.tick))
        return .next
      }
    }
    return keys.sorted { $0.tick < $1.tick }.map(\.key)
  }
}
