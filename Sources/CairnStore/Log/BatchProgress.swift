/// Checks that the records of an atomic batch are complete, in order and contiguous, with
/// consecutive sequence numbers.
package struct BatchProgress {
  /// The start of the batch that is not yet complete.
  package private(set) var start: Int?
  private var next: UInt32 = 0
  private var count: UInt32 = 0
  /// The first record's sequence number, relative to the segment's base.
  private var firstDelta: UInt32 = 0

  package init() {}

  /// Adds a record. Returns whether it may follow the previous ones.
  package mutating func accept(_ header: RecordHeader, at offset: Int) -> Bool {
    if start == nil {
      guard header.flags.contains(.batch) else { return true }
      guard header.batchIndex == 0 else { return false }
      start = offset
      next = 0
      count = header.batchCount
      firstDelta = header.sequenceDelta
    }
    guard header.flags.contains(.batch), header.batchIndex == next, header.batchCount == count,
      UInt64(header.sequenceDelta) == UInt64(firstDelta) + UInt64(next)
    else { return false }
    next += 1
    if next == count { start = nil }
    return true
  }
}
