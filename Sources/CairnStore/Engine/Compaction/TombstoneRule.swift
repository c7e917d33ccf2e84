/// Which tombstones a compaction may drop.
///
/// A tombstone T with number s keeps the older puts of its key dead. If it were dropped while one
/// of them is in a segment that stays, replay would bring that put back. A segment that stays has
/// no such put if one of these holds:
///
/// - its lowest number is above s: nothing in it is older than T;
/// - the compaction that wrote it began when T already existed (its `compactedAt` is s or more):
///   the older puts of T's key were already dead, and a compaction copies only live ones;
/// - none of its puts is dead: an older put of T's key has been dead since T was written.
///
/// Later writes do not change this. A put that dies later is not older than T, because all older
/// puts are already dead. A segment that begins later has only higher numbers.
///
/// So each segment that stays sets a barrier, and tombstones below all barriers may be dropped. Of
/// tombstones above the barriers of damaged segments only, some may be dropped too; see
/// `SegmentDamage`.
package enum TombstoneRule {
  package static func barrier(
    lowestSequence: SequenceNumber, compactedAt: SequenceNumber, deadPutCount: Int
  ) -> SequenceNumber {
    if deadPutCount == 0 { return .max }
    return max(lowestSequence, compactedAt + 1)
  }
}

extension Segment {
  /// Tombstones with this number or a higher one must be kept for as long as this segment stays.
  var tombstoneBarrier: SequenceNumber {
    TombstoneRule.barrier(
      lowestSequence: usage.lowestSequence, compactedAt: compactedAt,
      deadPutCount: usage.deadPutCount)
  }
}
