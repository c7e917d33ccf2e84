internal import Synchronization

/// All segments of a store, found by location without a lock.
package final class SegmentTable: Sendable {
  /// Segments beyond this many are read by system calls: the kernel allows a process 65,530
  /// mappings by default.
  package static let mappedSegmentLimit = 32_768

  private let segments = ReferenceTable<Segment>(slotCount: Location.granuleCount)
  private let granules = GranuleSpace()
  private let count = Atomic(0)
  /// The usage of all segments.
  package let total = UsageTotal()

  package init() {}

  package var segmentCount: Int { count.load(ordering: .relaxed) }

  /// Stands for the system call in the error of a full table.
  package static let callName = GranuleSpace.callName

  /// Takes a run of granules.
  package func reserve(capacity: Int) throws(StoreError) -> Int {
    try granules.reserve(Location.granuleCount(forCapacity: capacity))
  }

  /// Keeps the granules below `end` for segments that return to theirs. Reservations meanwhile are
  /// beyond them.
  package func beginPlacing(below end: Int) { granules.beginPlacing(below: end) }

  /// Ends the placing: every such run has been placed, and the granules between them are free.
  package func endPlacing(_ runs: [Range<Int>], below end: Int) {
    granules.endPlacing(runs, below: end)
  }

  package func release(granule: Int, capacity: Int) {
    granules.release(granule..<(granule + Location.granuleCount(forCapacity: capacity)))
  }

  /// Lets readers find the segment.
  package func publish(_ segment: Segment) {
    for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
      segments.set(segment.granule + slot, to: segment)
    }
    count.wrappingAdd(1, ordering: .relaxed)
  }

  /// Forgets a segment that no index entry names any more. Readers that hold it continue.
  package func remove(_ segment: Segment) {
    for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
      segments.set(segment.granule + slot, to: nil)
    }
    count.wrappingSubtract(1, ordering: .relaxed)
    retire(segment, granules: segment.granules)
  }

  /// Keeps a segment that lost its place, and its freed granules, until no reader can reach them.
  private func retire(_ segment: Segment, granules: Range<Int>) {
    Reclamation.retire(Unlinked(segment, granules, of: self.granules), keeping: segment)
  }

  /// Does not hold the table, which has every other segment, because a reader may keep this object
  /// for a long time.
  private final class Unlinked {
    let segment: Segment
    let granules: Range<Int>
    let space: GranuleSpace

    init(_ segment: Segment, _ granules: Range<Int>, of space: GranuleSpace) {
      self.segment = segment
      self.granules = granules
      self.space = space
    }

    deinit { if !granules.isEmpty { space.release(granules) } }
  }

  /// Replaces a longer segment with the shortened one made from it.
  ///
  /// The caller must hold the old one until every reader that found it here has released the
  /// index's locks.
  package func replace(_ old: Segment, with new: Segment) {
    let count = Location.granuleCount(forCapacity: new.capacity)
    for slot in 0..<count { segments.set(new.granule + slot, to: new) }
    let oldCount = Location.granuleCount(forCapacity: old.capacity)
    for slot in count..<max(count, oldCount) { segments.set(new.granule + slot, to: nil) }
    retire(old, granules: (new.granule + count)..<(new.granule + max(count, oldCount)))
  }

  /// The segment of a location in an index entry that was read under a pin. It may have been
  /// removed meanwhile, but it is kept.
  @inline(__always)
  func pinnedSegment(at location: Location) -> Unretained<Segment>? {
    segments.pinned(location.granule)
  }

  /// The segment of a location. Call under the lock of the index shard that holds an entry with
  /// this location, so that the segment cannot have been removed.
  @inline(__always)
  package func segment(at location: Location) -> Segment? { segments[location.granule] }

  /// Counts the put at a location as dead. Call where `segment(at:)` may be called.
  @inline(__always)
  func kill(_ location: Location, byteCount: Int) {
    segments.withObject(in: location.granule) { $0.usage.kill(byteCount: byteCount) }
  }

  /// Prefetches the first bytes of a record, at most `count`. Call where `segment(at:)` may be
  /// called.
  @inline(__always)
  package func prefetch(_ location: Location, count: Int) {
    segments.withObject(in: location.granule) { $0.prefetch(location, count: count) }
  }
}
