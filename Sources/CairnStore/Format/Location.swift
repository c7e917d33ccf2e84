/// The start of a record, in the address space of all segments, in units of 8 bytes.
///
/// The space is divided into 64 MiB granules; a segment occupies as many adjacent granules as its
/// capacity needs. 40 bits give 131,072 granules, or 8 TiB. No record has location 0, because a
/// segment begins with its header.
package struct Location: Sendable, Hashable, BitwiseCopyable {
  package static let granuleShift = 23
  package static let granuleByteCount = 1 << (granuleShift + 3)
  package static let granuleCount = 1 << 17

  /// The number of granules that a segment with this capacity occupies.
  package static func granuleCount(forCapacity capacity: Int) -> Int {
    max(1, (capacity + granuleByteCount - 1) / granuleByteCount)
  }

  /// Stands for no location.
  package static let none = Location(rawValue: 0)

  /// The 40-bit value.
  package var rawValue: UInt64

  @inline(__always)
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  @inline(__always)
  package init(granule: Int, offset: Int) {
    rawValue = UInt64(granule) << UInt64(Self.granuleShift) &+ UInt64(offset >> 3)
  }

  @inline(__always)
  package var granule: Int { Int(rawValue >> UInt64(Self.granuleShift)) }

  /// The byte offset in the segment that begins at this granule.
  @inline(__always)
  package func offset(fromGranule first: Int) -> Int {
    Int(rawValue &- UInt64(first) << UInt64(Self.granuleShift)) << 3
  }
}
