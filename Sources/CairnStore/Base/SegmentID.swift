/// Names a segment of the log within its store. Given out in growing order and never used again.
package struct SegmentID: Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  package static func < (left: SegmentID, right: SegmentID) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// The order of writes in a store, from 1. Order is by this alone, never by clock or file.
@usableFromInline
package typealias SequenceNumber = UInt64
