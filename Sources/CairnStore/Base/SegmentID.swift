/// Identifies a segment of the log within its store. IDs grow and are never reused.
package struct SegmentID: Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  package static func < (left: SegmentID, right: SegmentID) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// The sequence number of a write in a store, from 1. Only this number orders writes, never a clock
/// or a file.
@usableFromInline
package typealias SequenceNumber = UInt64
