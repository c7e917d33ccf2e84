// What tests compare with what they expect.
extension Engine {
  /// Why nothing may be written any more, where that is so.
  package var writeFailure: SystemFailure? { appender.withLock { $0.failure } }

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

  /// Compares what is counted of each segment with what its records and the index say, and returns the
  /// differences.
  ///
  /// - Parameter mayCountMore: whether more bytes may be counted as live than are.
  package func auditUsage(mayCountMore: Bool = false) throws(StoreError) -> [String] {
    var differences: [String] = []
    for segment in appender.withLock({ $0.segments }) {
      let counted = segment.usage
      let actual = SegmentUsage(total: UsageTotal())
      var scanner = try SegmentScanner(segment, end: counted.end)
      var offset = SegmentHeader.byteCount
      while offset < counted.end, let header = try scanner.header(at: offset) {
        let location = segment.location(at: offset)
        let isLive = try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) in
          try index.load(shardOf: hash.hash(key))
          if header.kind == .extension {
            return index.location(hash.hash(key), extendedBy: location) != nil
          }
          return index.find(hash.hash(key), at: location) { _ in }
        }
        offset += header.byteCount
        actual.add(
          header, sequence: segment.sequence(of: header), end: offset,
          isLive: isLive && header.kind != .tombstone)
      }
      if !counted.hasSameCounts(as: actual, mayCountMore: mayCountMore) {
        differences.append("\(segment.name): \(counted) is counted instead of \(actual)")
      }
    }
    return differences
  }
}
