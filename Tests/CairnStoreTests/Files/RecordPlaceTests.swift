import Testing

@testable import CairnStore

@Suite("Places of records")
struct RecordPlaceTests {
  private func place(_ id: UInt64, _ offset: Int) -> RecordPlace {
    RecordPlace(SegmentID(rawValue: id), offset: offset)
  }

  @Test("Two records have the same place only if segment and offset are the same")
  func identity() {
    #expect(place(3, 64) == place(3, 64))
    #expect(place(3, 64) != place(4, 64))
    #expect(place(3, 64) != place(3, 72))
    // No offset reaches into the bits of the segment.
    #expect(place(3, (1 << 31) - 8) != place(4, 0) && place(3, (1 << 31) - 8) != .unknown)
    let last = place((1 << 32) - 1, (1 << 31) - 8)
    #expect(last != .unknown && last.rawValue >> UInt64(RecordPlace.bitCount) == 0)
  }

  @Test("A place that does not fit is unknown")
  func limits() {
    #expect(place(1 << 32, 64) == .unknown)
    #expect(place(3, 1 << 31) == .unknown)
  }
}
