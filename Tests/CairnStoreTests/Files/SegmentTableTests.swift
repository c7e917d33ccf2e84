import CairnStore
import FuzzSupport
import Testing

@Suite("The table of segments")
struct SegmentTableTests {
  @Test("Granules are free once no pin can reach a location that has them")
  func granules() throws {
    let directory = try TemporaryDirectory()
    let table = SegmentTable()
    let files = SegmentFiles(
      directory: try Directory(readingOnly: directory.path, fileSystem: SystemFileSystem()),
      storeIdentifier: [UInt8](repeating: 1, count: 16), usesMappings: true, reservesBlocks: true,
      table: table)
    let segment = try files.create(
      id: SegmentID(rawValue: 1), salt: 2, baseSequence: 1, baseTime: 0, capacity: 1 << 20,
      allocating: 4096,
      durably: false)
    table.publish(segment)
    let location = segment.location(at: 64)
    let pin = try #require(Pin())
    table.remove(segment)
    #expect(table.segment(at: location) == nil)
    let other = try table.reserve(capacity: 1 << 20)
    #expect(other != segment.granule)
    pin.end()
    Reclamation.reclaim()
    // Another test's pin may briefly delay this.
    var taken = try table.reserve(capacity: 1 << 20)
    while taken != segment.granule {
      Reclamation.reclaim()
      taken = try table.reserve(capacity: 1 << 20)
    }
    #expect(taken == segment.granule)
  }

  @Test("Freed granules join with their neighbours, in whatever order they are freed")
  func joined() throws {
    let space = GranuleSpace()
    let starts = try (0..<6).map { _ in try space.reserve(2) }
    for number in [5, 3, 4, 0, 1] { space.release(starts[number]..<(starts[number] + 2)) }
    #expect(try space.reserve(5) == starts[3])
    #expect(try space.reserve(1) == starts[3] + 5)
    #expect(try space.reserve(4) == starts[0])
    #expect(try space.reserve(1) == starts[5] + 2)
  }
}
