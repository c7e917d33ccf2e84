/// What a compaction is planned by: a segment of the log as it is at one moment.
package struct SegmentFacts: Sendable {
  package let id: SegmentID
  /// Whether the manifest lists it as sealed, and nothing in it was found damaged.
  package let isCandidate: Bool
  /// Bytes of its records.
  package let byteCount: Int
  package let liveByteCount: Int
  package let livePutCount: Int
  package let deadPutCount: Int
  package let liveExtensionCount: Int
  package let deadExtensionCount: Int
  package let tombstoneByteCount: Int
  package let highestTombstone: SequenceNumber
  package let lowestSequence: SequenceNumber
  package let compactedAt: SequenceNumber

  package init(
    id: SegmentID, isCandidate: Bool, byteCount: Int, liveByteCount: Int, livePutCount: Int,
    deadPutCount: Int, tombstoneByteCount: Int = 0, highestTombstone: SequenceNumber = 0,
    lowestSequence: SequenceNumber, compactedAt: SequenceNumber = 0, liveExtensionCount: Int = 0,
    deadExtensionCount: Int = 0
  ) {
    self.liveExtensionCount = liveExtensionCount
    self.deadExtensionCount = deadExtensionCount
    self.id = id
    self.isCandidate = isCandidate
    self.byteCount = byteCount
    self.liveByteCount = liveByteCount
    self.livePutCount = livePutCount
    self.deadPutCount = deadPutCount
    self.tombstoneByteCount = tombstoneByteCount
    self.highestTombstone = highestTombstone
    self.lowestSequence = lowestSequence
    self.compactedAt = compactedAt
  }

  init(_ segment: Segment, isCandidate: Bool) {
    let usage = segment.usage
    self.init(
      id: segment.id, isCandidate: isCandidate,
      byteCount: usage.end - SegmentHeader.byteCount, liveByteCount: usage.liveByteCount,
      livePutCount: usage.livePutCount, deadPutCount: usage.deadPutCount,
      tombstoneByteCount: usage.tombstoneByteCount,
      highestTombstone: usage.highestTombstoneSequence, lowestSequence: usage.lowestSequence,
      compactedAt: segment.compactedAt, liveExtensionCount: usage.liveExtensionCount,
      deadExtensionCount: usage.deadExtensionCount)
  }

  /// Tombstones with this number or a higher one must be kept for as long as this segment stays.
  package var barrier: SequenceNumber {
    TombstoneRule.barrier(
      lowestSequence: lowestSequence, compactedAt: compactedAt, deadPutCount: deadPutCount)
  }

  /// Whether all its tombstones may go where the other segments that stay have this barrier.
  package func canDropTombstones(_ barrier: SequenceNumber) -> Bool { highestTombstone < barrier }

  /// Whether it holds a put or an extension that is needed.
  package var hasLiveRecords: Bool { livePutCount > 0 || liveExtensionCount > 0 }

  /// Bytes that a compaction gives back at least.
  package func gain(_ barrier: SequenceNumber) -> Int {
    let deadBytes =
      deadPutCount == 0 && deadExtensionCount == 0
      ? 0 : max(0, byteCount - max(0, liveByteCount) - tombstoneByteCount)
    return deadBytes + (canDropTombstones(barrier) ? tombstoneByteCount : 0)
  }

  /// Bytes that a compaction has to write at most.
  package func cost(_ barrier: SequenceNumber) -> Int {
    max(0, liveByteCount) + (canDropTombstones(barrier) ? 0 : tombstoneByteCount)
  }
}

/// Which tombstones a compaction may drop.
///
/// A tombstone T with number s keeps the older puts of its key dead: were it dropped while one of
/// them lies in a segment that stays, replay would bring that one back. A segment that stays holds no
/// such put if
///
/// - its lowest number is above s: nothing in it is older than T; or
/// - the compaction that wrote it began when T was there already (its `compactedAt` is s or more):
///   the older puts of T's key were dead by then, and a compaction copies live ones only; or
/// - none of its puts is dead: an older put of T's key is dead since T was written.
///
/// What writers do after this was judged changes none of it: a put that dies later is not older than
/// T, for those were dead before; and a segment that begins later holds higher numbers only.
///
/// So each segment that stays sets a barrier, and what lies below all barriers may go.
package enum TombstoneRule {
  package static func barrier(
    lowestSequence: SequenceNumber, compactedAt: SequenceNumber, deadPutCount: Int
  ) -> SequenceNumber {
    if deadPutCount == 0 { return .max }
    return max(lowestSequence, compactedAt + 1)
  }
}
