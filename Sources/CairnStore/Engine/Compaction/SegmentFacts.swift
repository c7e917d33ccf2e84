/// The input for planning a compaction: a segment of the log at one moment.
package struct SegmentFacts: Sendable {
  package let id: SegmentID
  /// Whether the manifest lists the segment as sealed, and a round can copy it now.
  package let isCandidate: Bool
  /// Whether a round could not read the segment. It does not keep tombstones of other segments from
  /// being copied or dropped, but those that it needs are copied.
  package var isDamaged = false
  /// Bytes of tombstones that damaged segments are known to need.
  package var heldByteCount = 0
  /// Whether the manifest lists the segment as sealed.
  package let isSealed: Bool
  /// Bytes of its records.
  package let byteCount: Int
  package let liveByteCount: Int
  package let livePutCount: Int
  package let deadPutCount: Int
  package let tombstoneByteCount: Int
  package let highestTombstone: SequenceNumber
  package let lowestSequence: SequenceNumber
  package let highestSequence: SequenceNumber
  package let compactedAt: SequenceNumber
}

extension SegmentFacts {
  init(_ segment: Segment, isCandidate: Bool, isSealed: Bool) {
    let usage = segment.usage
    self.init(
      id: segment.id, isCandidate: isCandidate, isSealed: isSealed,
      byteCount: usage.end - SegmentHeader.byteCount, liveByteCount: usage.liveByteCount,
      livePutCount: usage.livePutCount, deadPutCount: usage.deadPutCount,
      tombstoneByteCount: usage.tombstoneByteCount,
      highestTombstone: usage.highestTombstoneSequence, lowestSequence: usage.lowestSequence,
      highestSequence: usage.highestSequence, compactedAt: segment.compactedAt)
  }

  /// Tombstones with this number or a higher one must be kept for as long as this segment stays.
  package var barrier: SequenceNumber {
    TombstoneRule.barrier(
      lowestSequence: lowestSequence, compactedAt: compactedAt, deadPutCount: deadPutCount)
  }

  /// Whether all the segment's tombstones may be dropped if the other segments that stay have this
  /// barrier.
  package func canDropTombstones(_ barrier: SequenceNumber) -> Bool { highestTombstone < barrier }

  /// The minimum number of bytes that a compaction reclaims.
  package func gain(_ barrier: SequenceNumber) -> Int {
    let deadBytes =
      deadPutCount == 0
      ? 0 : max(0, byteCount - max(0, liveByteCount) - tombstoneByteCount)
    return deadBytes + (canDropTombstones(barrier) ? tombstoneByteCount - heldByteCount : 0)
  }

  /// The maximum number of bytes that a compaction must write.
  package func cost(_ barrier: SequenceNumber) -> Int {
    max(0, liveByteCount) + (canDropTombstones(barrier) ? heldByteCount : tombstoneByteCount)
  }
}
