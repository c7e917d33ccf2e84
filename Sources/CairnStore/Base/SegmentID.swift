/// Identifies a segment of the log within its store. IDs grow and are never reused.
package struct SegmentID: Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  package static func < (left: SegmentID, right: SegmentID) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// The sequence number of a write in a store, starting at 1. Only sequence numbers order writes,
/// never clocks or files.
@usableFromInline
package typealias SequenceNumber = UInt64
