/// A look at all records that have expired or will, which tells each segment when the first of those
/// that stay does. The next look then leaves the segments out in which none has by then.
struct ExpiryLook {
  private struct Seen {
    var segment: Segment
    /// Where its records ended when the look began.
    var end: Int
    /// The first end of a lifetime among the records that stay.
    var earliestExpiry = Int64.max
  }

  /// Segments in which something has expired: all of their entries are looked at.
  private var seen: [SegmentID: Seen] = [:]
  private(set) var expiredCount = 0

  init(at segments: [Segment], now: Timestamp) {
    for segment in segments where segment.usage.mayHaveEnded(by: now) {
      seen[segment.id] = Seen(segment: segment, end: segment.usage.end)
    }
  }

  mutating func note(_ found: borrowing FoundRecord, hasExpired: Bool) {
    if hasExpired {
      expiredCount += 1
    } else if found.record.header.flags.contains(.expiry) {
      let expires = found.header.expires
      let id = found.record.segment.id
      if let known = seen[id]?.earliestExpiry, expires < known {
        seen[id]?.earliestExpiry = expires
      }
    }
  }

  /// To be called where all that had expired is removed, under the appender's lock.
  func finish() {
    // Entries only ever leave a segment, but for those of records that are appended to it, and for
    // those that a compaction moves, at which time there is no look at segments.
    for seen in seen.values where seen.segment.usage.end == seen.end {
      seen.segment.usage.setEarliestExpiry(seen.earliestExpiry)
    }
  }
}
