internal import Synchronization

/// All segments of a store, found by location without a lock.
package final class SegmentTable: Sendable {
  /// Segments beyond this many are read by system calls: the kernel allows a process 65,530
  /// mappings by default.
  package static let mappedSegmentLimit = 32_768

  private let segments = ReferenceTable<Segment>(slotCount: Location.granuleCount)
  private let granules = GranuleSpace()
  private let count = Atomic(0)
  /// What all segments hold.
  package let total = UsageTotal()

  package init() {}

  package var segmentCount: Int { count.load(ordering: .relaxed) }

  /// What stands for a call in the error of a full table.
  package static let callName = GranuleSpace.callName

  /// Takes a run of granules.
  package func reserve(capacity: Int) throws(StoreError) -> Int {
    try granules.reserve(Location.granuleCount(forCapacity: capacity))
  }

  /// Keeps the granules below `end` for segments that get theirs back. What is reserved meanwhile
  /// lies beyond.
  package func beginPlacing(below end: Int) { granules.beginPlacing(below: end) }

  /// Every run that was to be given back has been; what lies between is free.
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

  /// Forgets a segment that no index entry names any more; readers that hold it go on.
  package func remove(_ segment: Segment) {
    for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
      segments.set(segment.granule + slot, to: nil)
    }
    count.wrappingSubtract(1, ordering: .relaxed)
    retire(segment, granules: segment.granules)
  }

  /// Keeps a segment that lost its place, and the numbers of granules that are free now, until no reader reaches them.
  private func retire(_ segment: Segment, granules: Range<Int>) {
    Reclamation.retire(Unlinked(segment, granules, of: self.granules), keeping: segment)
  }

  /// Does not keep the table, which has every other segment: a reader may hold this one up for long.
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

  /// Puts a segment into the place of the longer one that it was made of.
  ///
  /// The caller holds on to the old one until every reader has let go of the index's locks that found
  /// it here.
  package func replace(_ old: Segment, with new: Segment) {
    let count = Location.granuleCount(forCapacity: new.capacity)
    for slot in 0..<count { segments.set(new.granule + slot, to: new) }
    let oldCount = Location.granuleCount(forCapacity: old.capacity)
    for slot in count..<max(count, oldCount) { segments.set(new.granule + slot, to: nil) }
    retire(old, granules: (new.granule + count)..<(new.granule + max(count, oldCount)))
  }

  /// The segment that holds a location, as an entry of the index says that is looked at under a pin: it may have been
  /// removed meanwhile, but it is kept.
  @inline(__always)
  func pinnedSegment(at location: Location) -> Pinned<Segment>? {
    segments.pinned(location.granule)
  }

  /// The segment that holds a location. To be called under the lock of the index shard that holds
  /// an entry with this location: then the segment cannot have been removed.
  @inline(__always)
  package func segment(at location: Location) -> Segment? { segments[location.granule] }

  /// What the records of the segment at a location amount to. To be called where `segment(at:)` is.
  @inline(__always)
  func usage(at location: Location) -> SegmentUsage? {
    var usage: SegmentUsage?
    segments.withObject(in: location.granule) { usage = $0.usage }
    return usage
  }

  /// Asks the processor for the first bytes of a record, at most `count`. To be called where `segment(at:)` is.
  @inline(__always)
  package func prefetch(_ location: Location, count: Int) {
    segments.withObject(in: location.granule) { segment in
      let offset = segment.offset(of: location)
      let count = min(count, segment.allocatedByteCount - offset)
      if count > 0 { segment.mapping?.prefetch(at: offset, count: count) }
    }
  }
}
