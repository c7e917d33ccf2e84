internal import Synchronization

/// The state of the newest checkpoint. It is atomic, so that writers need no lock.
final class CheckpointProgress: Sendable {
  /// The checkpoint covers every record up to this number.
  let lastSequence: Atomic<UInt64>
  /// The size of the checkpoint's file.
  let byteCount: Atomic<Int>
  /// Bytes of later records in rolled segments.
  let appendedByteCount: Atomic<Int>
  /// Whether segments that the checkpoint covers have been compacted since.
  let isOvertaken = Atomic(false)
  /// Whether the open replayed so much that the next open should not repeat it.
  let isDueSinceOpen: Atomic<Bool>
  /// The checkpoint contains all accesses up to this tick.
  private let usedTick: Atomic<UInt64>
  /// The time of the last of these accesses, in milliseconds.
  private let usedTime: Atomic<Int64>

  init(_ parts: borrowing OpenedStore, _ configuration: StoreConfiguration) {
    let checkpoint = parts.checkpoint
    lastSequence = Atomic(checkpoint?.lastSequence ?? 0)
    byteCount = Atomic(checkpoint?.byteCount ?? 0)
    appendedByteCount = Atomic(parts.replayedByteCount)
    isDueSinceOpen = Atomic(
      parts.replayedByteCount
        >= max(configuration.checkpointByteThreshold / 4, checkpoint?.byteCount ?? 0))
    usedTick = Atomic(parts.index.recency.now)
    let now = parts.clock.now()
    let time = checkpoint?.samples.last?.time ?? now
    // If that time is in the future, the clock was wrong. Assume the oldest time, so that the next
    // close makes a checkpoint.
    usedTime = Atomic(time <= now ? time.millisecondsSinceEpoch : .min)
  }

  /// Sets the last access that the checkpoint contains.
  func noteUse(tick: UInt64, time: Timestamp) {
    usedTick.store(tick, ordering: .relaxed)
    usedTime.store(time.millisecondsSinceEpoch, ordering: .relaxed)
  }

  /// Whether the checkpoint lacks accesses and its newest access is at least this many milliseconds
  /// old.
  func lacksUse(in recency: RecencyClock, for interval: Int64, now: Timestamp) -> Bool {
    let known = Timestamp(millisecondsSinceEpoch: usedTime.load(ordering: .relaxed))
    return recency.isNewer(than: usedTick.load(ordering: .relaxed))
      && known.advanced(byMilliseconds: interval) <= now
  }

  /// Counts a removal of everything up to a number: a checkpoint would be empty.
  func noteEmptied(through sequence: SequenceNumber) {
    lastSequence.store(sequence, ordering: .relaxed)
    byteCount.store(0, ordering: .relaxed)
    appendedByteCount.store(0, ordering: .relaxed)
  }

  /// Counts a segment that was rolled and sealed.
  func noteSealed(_ segment: Segment) {
    appendedByteCount.wrappingAdd(segment.usage.end, ordering: .relaxed)
  }

  /// Counts new segments that replaced others. Until the next checkpoint, an open must read them.
  func noteCompacted(byteCount: Int) {
    isOvertaken.store(true, ordering: .relaxed)
    appendedByteCount.wrappingAdd(byteCount, ordering: .relaxed)
  }
}
