package import CairnStore

extension Store {
  /// Compares the usage counts of each segment with its records and the index, and returns the
  /// differences.
  ///
  /// - Parameter mayCountMore: whether the count of live bytes may be too high.
  package func auditUsage(mayCountMore: Bool = false) throws(StoreError) -> [String] {
    let (log, lookup) = (try currentEngine.log, try currentEngine.lookup)
    var differences: [String] = []
    for segment in log.segments {
      let counted = segment.usage
      let actual = SegmentUsage(total: UsageTotal())
      var scanner = try SegmentScanner(segment, end: counted.end)
      var offset = SegmentHeader.byteCount
      while offset < counted.end, let header = try scanner.header(at: offset) {
        let location = segment.location(at: offset)
        let isLive = try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) in
          try lookup.index.load(shardOf: lookup.hash.hash(key))
          return lookup.index.find(lookup.hash.hash(key), at: location) { _ in }
        }
        offset += header.byteCount
        actual.add(
          header, sequence: segment.sequence(of: header), end: offset,
          isLive: isLive && header.kind != .tombstone)
      }
      let liveByteCount =
        mayCountMore
        ? max(counted.liveByteCount, actual.liveByteCount) : actual.liveByteCount
      let expected = text(of: actual, liveByteCount: liveByteCount)
      let found = text(of: counted, liveByteCount: counted.liveByteCount)
      if found != expected {
        differences.append("\(segment.name): the count is \(found) instead of \(expected)")
      }
    }
    return differences
  }

  private func text(of usage: SegmentUsage, liveByteCount: Int) -> String {
    "live \(usage.livePutCount) of \(usage.putCount) puts, "
      + "\(liveByteCount) bytes, \(usage.tombstoneCount) tombstones of "
      + "\(usage.tombstoneByteCount) bytes to \(usage.highestTombstoneSequence), "
      + "to \(usage.end), numbers \(usage.lowestSequence)...\(usage.highestSequence)"
  }

  /// The keys that a read would find, the least recently accessed first.
  package func keysByRecency() throws -> [[UInt8]] {
    let lookup = try currentEngine.lookup
    let keys = try keys().map { key in
      var tick: UInt64 = 0
      _ = try lookup.index.find(lookup.hash.hash(key.rawSpan), touch: false) { tick = $0.tick }
      return (key: key, tick: tick)
    }
    return keys.sorted { $0.tick < $1.tick }.map(\.key)
  }
}
