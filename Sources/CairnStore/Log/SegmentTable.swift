internal import Synchronization

/// All segments of a store, found by location without a lock.
package final class SegmentTable: Sendable {
  /// Segments beyond this many are read by system calls: by default, the kernel allows a process
  /// 65,530 mappings.
  package static let mappedSegmentLimit = 32_768

  private let segments = ReferenceTable<Segment>(slotCount: Location.granuleCount)
  private let granules = GranuleSpace()
  private let count = Atomic(0)
  /// The total usage of all segments.
  package let total = UsageTotal()

  package init() {}

  package var segmentCount: Int { count.load(ordering: .relaxed) }

  /// Replaces the name of a system call in the error for a full table.
  package static let callName = GranuleSpace.callName

  /// Takes a run of granules and returns its start.
  package func reserve(capacity: Int) throws(StoreError) -> Int {
    try granules.reserve(Location.granuleCount(forCapacity: capacity))
  }

  /// Keeps the granules below `end` for segments that return to their old places. Meanwhile,
  /// `reserve` takes granules beyond `end`.
  package func beginPlacing(below end: Int) { granules.beginPlacing(below: end) }

  /// Ends the placing: all segments are back in their old places, and the granules between them are
  /// free.
  package func endPlacing(_ runs: [Range<Int>], below end: Int) {
    granules.endPlacing(runs, below: end)
  }

  package func release(granule: Int, capacity: Int) {
    granules.release(granule..<(granule + Location.granuleCount(forCapacity: capacity)))
  }

  /// Makes the segment visible to readers.
  package func publish(_ segment: Segment) {
    for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
      segments.set(segment.granule + slot, to: segment)
    }
    count.wrappingAdd(1, ordering: .relaxed)
  }

  /// Removes a segment that no index entry names. Readers that hold it can continue.
  package func remove(_ segment: Segment) {
    for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
      segments.set(segment.granule + slot, to: nil)
    }
    count.wrappingSubtract(1, ordering: .relaxed)
    // Keep the segment and its granules until no reader can reach them.
    Reclamation.retire(Unlinked(segment, of: granules), keeping: segment)
  }

  /// Has no reference to the table, which refers to every other segment: a reader may keep this
  /// object for a long time.
  private final class Unlinked {
    let segment: Segment
    let space: GranuleSpace

    init(_ segment: Segment, of space: GranuleSpace) {
      self.segment = segment
      self.space = space
    }

    deinit { space.release(segment.granules) }
  }

  /// The segment of a location in an index entry that was read under a pin. The segment may have
  /// been removed since, but the pin keeps it.
  @inline(__always)
  func pinnedSegment(at location: Location) -> Unretained<Segment>? {
    segments.pinned(location.granule)
  }

  /// The segment of a location. Call under the lock of the index shard that has an entry with this
  /// location: the segment cannot have been removed then.
  @inline(__always)
  package func segment(at location: Location) -> Segment? { segments[location.granule] }

  /// Counts the put at a location as dead. Call where `segment(at:)` may be called.
  @inline(__always)
  func kill(_ location: Location, byteCount: Int) {
    segments.withObject(in: location.granule) { $0.usage.kill(byteCount: byteCount) }
  }
}
