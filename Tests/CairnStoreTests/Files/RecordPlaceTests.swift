import Testing

@testable import CairnStore

@Suite("Places of records")
struct RecordPlaceTests {
  private func place(_ id: UInt64, _ offset: Int, _ hash: UInt64 = 7) -> RecordPlace {
    RecordPlace(SegmentID(rawValue: id), offset: offset, hash: hash)
  }

  @Test("Two records have the same place only if segment, offset and hash are the same")
  func identity() {
    #expect(place(3, 64) == place(3, 64))
    #expect(place(3, 64) != place(4, 64))
    #expect(place(3, 64) != place(3, 72))
    #expect(place(3, 64) != place(3, 64, 8))
    // No offset reaches into the bits of the segment.
    #expect(place(3, (1 << 31) - 8) != place(4, 0) && place(3, (1 << 31) - 8) != .unknown)
    #expect(place((1 << 33) - 1, 64).rawValue >> UInt64(RecordPlace.bitCount) == 0)
    #expect(place((1 << 33) - 1, 64).rawValue != 0)
  }

  @Test("A place that does not fit is unknown")
  func limits() {
    #expect(place(1 << 33, 64).rawValue == 0)
    #expect(place(3, 1 << 31).rawValue == 0)
    #expect(RecordPlace.unknown.rawValue == 0)
  }
}
