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
