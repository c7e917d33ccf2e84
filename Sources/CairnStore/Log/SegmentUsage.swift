internal import Synchronization

/// The total usage of all segments.
package final class UsageTotal: Sendable {
  let liveBytes = Atomic(0)
  let pinnedBytes = Atomic(0)
  /// How many segments have been retired so far.
  let retirements = Atomic(0)

  package init() {}

  package var liveByteCount: Int { liveBytes.load(ordering: .relaxed) }
  /// Bytes of segments that have left the log and are still being read.
  package var pinnedByteCount: Int { pinnedBytes.load(ordering: .relaxed) }
}

/// The usage counts of a segment's records. They are atomics, so statistics need no lock. Only the
/// holder of the log's lock changes them, so no change needs a locked instruction.
package final class SegmentUsage: Sendable {
  let total: UsageTotal
  private let liveBytes = Atomic(0)
  private let puts = Atomic(0)
  private let livePuts = Atomic(0)
  private let tombstones = Atomic(0)
  private let tombstoneBytes = Atomic(0)
  private let highestTombstone = Atomic(UInt64(0))
  private let endOffset = Atomic(SegmentHeader.byteCount)
  private let lowest = Atomic(UInt64.max)
  private let highest = Atomic(UInt64(0))
  /// Bounds for live records, in milliseconds: no lifetime ends earlier, no idle limit is shorter.
  private let earliestEnd = Atomic(Int64.max)
  private let shortestIdleLimit = Atomic(UInt64.max)

  package init(total: UsageTotal) { self.total = total }

  /// Bytes of records that hold a key's newest value.
  package var liveByteCount: Int { liveBytes.load(ordering: .relaxed) }
  /// The exact number of puts that are not their key's newest record. Tombstones of their keys must
  /// be kept.
  package var deadPutCount: Int { putCount - livePutCount }
  package var livePutCount: Int { livePuts.load(ordering: .relaxed) }
  package var putCount: Int { puts.load(ordering: .relaxed) }
  package var tombstoneCount: Int { tombstones.load(ordering: .relaxed) }
  package var tombstoneByteCount: Int { tombstoneBytes.load(ordering: .relaxed) }
  /// The sequence number of the newest tombstone, or 0.
  package var highestTombstoneSequence: SequenceNumber { highestTombstone.load(ordering: .relaxed) }
  /// Whether nothing is lost without the segment, if tombstones below a number are not needed.
  package func canBeDropped(below barrier: SequenceNumber) -> Bool {
    livePutCount == 0 && highestTombstoneSequence < barrier
  }
  /// The end of the records.
  package var end: Int { endOffset.load(ordering: .relaxed) }
  /// 0 if there are no records.
  package var lowestSequence: SequenceNumber {
    let value = lowest.load(ordering: .relaxed)
    return value == .max ? 0 : value
  }
  package var highestSequence: SequenceNumber { highest.load(ordering: .relaxed) }
  package var deadByteCount: Int { end - SegmentHeader.byteCount - liveByteCount }

  /// Counts a record added at the end.
  @inline(__always)
  package func add(_ header: RecordHeader, sequence: SequenceNumber, end: Int, isLive: Bool) {
    endOffset.store(end, ordering: .relaxed)
    if header.kind == .roll { return }
    if header.kind == .put { puts.add(1) }
    if isLive { revive(byteCount: header.byteCount) }
    if header.kind == .tombstone { noteTombstone(header, sequence: sequence) }
    note(sequence)
    if header.canExpire, header.kind == .put { noteExpiry(header) }
  }

  /// The counts that several records add.
  package struct Sum {
    private(set) var putCount = 0
    private(set) var putByteCount = 0
    private(set) var tombstoneCount = 0
    private(set) var tombstoneByteCount = 0
    private(set) var lastTombstone = 0
    private(set) var earliestEnd = Int64.max
    private(set) var shortestIdleLimit = UInt64.max

    /// Adds a put or a tombstone. `number` is its position among the records.
    @inline(__always)
    mutating func add(_ header: RecordHeader, byteCount: Int, number: Int) {
      if header.kind == .tombstone {
        tombstoneCount += 1
        tombstoneByteCount += byteCount
        lastTombstone = number
        return
      }
      putCount += 1
      putByteCount += byteCount
      if header.flags.contains(.expiry) { earliestEnd = min(earliestEnd, header.expires) }
      if header.flags.contains(.idleLimit) {
        shortestIdleLimit = min(shortestIdleLimit, header.idleLimit)
      }
    }
  }

  /// Counts records added at the end, with consecutive sequence numbers.
  ///
  /// - Parameter isLive: whether the puts are live.
  package func add(
    _ sum: Sum, firstSequence: SequenceNumber, count: Int, end: Int, isLive: Bool
  ) {
    endOffset.store(end, ordering: .relaxed)
    puts.add(sum.putCount)
    if isLive { revive(count: sum.putCount, byteCount: sum.putByteCount) }
    if sum.tombstoneCount > 0 {
      tombstones.add(sum.tombstoneCount)
      tombstoneBytes.add(sum.tombstoneByteCount)
      noteTombstone(firstSequence + UInt64(sum.lastTombstone))
    }
    note(firstSequence)
    note(firstSequence + UInt64(count - 1))
    noteExpiry(earliestEnd: sum.earliestEnd, shortestIdleLimit: sum.shortestIdleLimit)
  }

  // `Atomic.min` and `max` of Swift 6.3 compare unsigned numbers as if they were signed.

  @inline(__always)
  private func note(_ sequence: SequenceNumber) {
    if sequence < lowest.load(ordering: .relaxed) { lowest.store(sequence, ordering: .relaxed) }
    if sequence > highest.load(ordering: .relaxed) { highest.store(sequence, ordering: .relaxed) }
  }

  private func noteTombstone(_ header: RecordHeader, sequence: SequenceNumber) {
    tombstones.add(1)
    tombstoneBytes.add(header.byteCount)
    noteTombstone(sequence)
  }

  private func noteTombstone(_ sequence: SequenceNumber) {
    if sequence > highestTombstone.load(ordering: .relaxed) {
      highestTombstone.store(sequence, ordering: .relaxed)
    }
  }

  @inline(never)
  private func noteExpiry(_ header: RecordHeader) {
    noteExpiry(
      earliestEnd: header.flags.contains(.expiry) ? header.expires : .max,
      shortestIdleLimit: header.flags.contains(.idleLimit) ? header.idleLimit : .max)
  }

  private func noteExpiry(earliestEnd end: Int64, shortestIdleLimit limit: UInt64) {
    if end < earliestEnd.load(ordering: .relaxed) { earliestEnd.store(end, ordering: .relaxed) }
    if limit < shortestIdleLimit.load(ordering: .relaxed) {
      shortestIdleLimit.store(limit, ordering: .relaxed)
    }
  }

  /// Continues from the counts in a checkpoint. Call before anything is added.
  package func restore(_ covered: Checkpoint.CoveredSegment) {
    endOffset.store(covered.end, ordering: .relaxed)
    puts.store(covered.putCount, ordering: .relaxed)
    livePuts.store(covered.livePutCount, ordering: .relaxed)
    tombstones.store(covered.tombstoneCount, ordering: .relaxed)
    tombstoneBytes.store(covered.tombstoneByteCount, ordering: .relaxed)
    highestTombstone.store(covered.highestTombstone, ordering: .relaxed)
    liveBytes.store(covered.liveByteCount, ordering: .relaxed)
    total.liveBytes.add(covered.liveByteCount)
    highest.store(covered.highestSequence, ordering: .relaxed)
    lowest.store(
      covered.lowestSequence == 0 ? .max : covered.lowestSequence, ordering: .relaxed)
    earliestEnd.store(covered.earliestExpiry, ordering: .relaxed)
    shortestIdleLimit.store(covered.shortestIdleLimit, ordering: .relaxed)
  }

  /// Saves the counts to a checkpoint's entry for the segment.
  package func save(to covered: inout Checkpoint.CoveredSegment) {
    covered.putCount = puts.load(ordering: .relaxed)
    // A checkpoint whose counts contradict its entries can have left a negative number.
    covered.livePutCount = max(0, livePutCount)
    covered.tombstoneCount = tombstoneCount
    covered.tombstoneByteCount = tombstoneByteCount
    covered.highestTombstone = highestTombstoneSequence
    covered.liveByteCount = max(0, liveByteCount)
    covered.lowestSequence = lowestSequence
    covered.highestSequence = highestSequence
    covered.earliestExpiry = earliestEnd.load(ordering: .relaxed)
    covered.shortestIdleLimit = shortestIdleLimit.load(ordering: .relaxed)
  }

  /// A lower bound for the expiry of a live record in this segment that was last accessed at
  /// `accessed()`, in milliseconds since the Unix epoch.
  package func earliestExpiry(accessed: () -> Timestamp) -> Int64 {
    let end = earliestEnd.load(ordering: .relaxed)
    let limit = shortestIdleLimit.load(ordering: .relaxed)
    if limit == .max { return end }
    return min(
      end, accessed().advanced(byMilliseconds: Int64(clamping: limit)).millisecondsSinceEpoch)
  }

  /// The time before which no lifetime of a live record ends, in milliseconds since the Unix epoch.
  package var earliestExpiry: Int64 { earliestEnd.load(ordering: .relaxed) }

  /// A lower bound for the idle limits of live records, in milliseconds.
  package var lowestIdleLimit: UInt64 { shortestIdleLimit.load(ordering: .relaxed) }

  package func setEarliestExpiry(_ expires: Int64) {
    earliestEnd.store(expires, ordering: .relaxed)
  }

  /// Counts puts as their keys' newest records.
  @inline(__always)
  package func revive(count: Int = 1, byteCount: Int) {
    livePuts.add(count)
    liveBytes.add(byteCount)
    total.liveBytes.add(byteCount)
  }

  /// Counts a live put as dead.
  ///
  /// - Parameter byteCount: the record's size, or 0 if it cannot be read. Its bytes then count as
  ///   live until its segment is compacted or reread. All counts of records are exact nevertheless.
  package func kill(byteCount: Int) {
    livePuts.add(-1)
    liveBytes.add(-byteCount)
    total.liveBytes.add(-byteCount)
  }

  /// Counts nothing as live any more. Changes nothing, even without the log's lock, if that is so.
  func killAll() {
    livePuts.store(0, ordering: .relaxed)
    let byteCount = liveBytes.exchange(0, ordering: .relaxed)
    if byteCount != 0 { total.liveBytes.add(-byteCount) }
  }
}

extension Atomic<Int> {
  /// Adds to a count that one thread at a time changes.
  @inline(__always)
  fileprivate func add(_ number: Int) {
    store(load(ordering: .relaxed) &+ number, ordering: .relaxed)
  }
}
