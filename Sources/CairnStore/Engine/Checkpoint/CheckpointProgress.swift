internal import Synchronization

/// What is known of the newest checkpoint. Atomics, so that writers need no lock.
final class CheckpointProgress: Sendable {
  /// Every record with this number or a lower one is in it.
  let lastSequence: Atomic<UInt64>
  /// The size of its file.
  let byteCount: Atomic<Int>
  /// Bytes of records since, as far as they lie in segments that were left.
  let appendedByteCount: Atomic<Int>
  /// Whether segments that it speaks of have been compacted since.
  let isOvertaken = Atomic(false)
  /// Whether a compaction has taken it away.
  let isGone = Atomic(false)
  /// Whether the open replayed so much that the next one should not have to.
  let isDueSinceOpen: Atomic<Bool>
  /// Accesses up to this tick are in it, the last of them at this time, in milliseconds.
  private let usedTick: Atomic<UInt64>
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
    // Of use in the future, when the clock was wrong, nothing is known: the next close makes a checkpoint.
    usedTime = Atomic(time <= now ? time.millisecondsSinceEpoch : .min)
  }

  /// Up to when accesses are in it.
  func noteUse(tick: UInt64, time: Timestamp) {
    usedTick.store(tick, ordering: .relaxed)
    usedTime.store(time.millisecondsSinceEpoch, ordering: .relaxed)
  }

  /// Whether there were accesses that are not in it, and those in it are older than so many milliseconds.
  func lacksUse(in recency: RecencyClock, for interval: Int64, now: Timestamp) -> Bool {
    let known = Timestamp(millisecondsSinceEpoch: usedTime.load(ordering: .relaxed))
    return recency.isNewer(than: usedTick.load(ordering: .relaxed))
      && known.advanced(byMilliseconds: interval) <= now
  }

  /// There is none any more: one that follows is worth it at once.
  func noteGone() {
    isGone.store(true, ordering: .relaxed)
    isOvertaken.store(true, ordering: .relaxed)
    lastSequence.store(0, ordering: .relaxed)
    byteCount.store(0, ordering: .relaxed)
  }

  /// A segment was left and sealed.
  func noteSealed(_ segment: Segment) {
    appendedByteCount.wrappingAdd(segment.usage.end, ordering: .relaxed)
  }

  /// Segments were replaced by others, which an open has to read until there is a new checkpoint.
  func noteCompacted(byteCount: Int) {
    isOvertaken.store(true, ordering: .relaxed)
    appendedByteCount.wrappingAdd(byteCount, ordering: .relaxed)
  }
}
