import CairnStore
import FuzzSupport
import Testing

@Suite("Locations")
struct LocationTests {
  @Test("A location leads back to its place", arguments: [1, 2, 1000, Location.granuleCount - 1])
  func roundTrip(granule: Int) {
    for offset in [72, 80, 65_528, Location.granuleByteCount - 8] {
      let location = Location(granule: granule, offset: offset)
      #expect(location.rawValue < 1 << 40)
      #expect(location.granule == granule)
      #expect(location.offset(fromGranule: granule) == offset)
    }
  }

  @Test("An offset beyond one granule reaches into the next ones")
  func longSegment() {
    let offset = 5 * Location.granuleByteCount + 800
    let location = Location(granule: 7, offset: offset)
    #expect(location.granule == 12)
    #expect(location.offset(fromGranule: 7) == offset)
  }
}
