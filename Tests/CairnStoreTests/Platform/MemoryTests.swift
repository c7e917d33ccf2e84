import CairnLibC
import CairnStore
import Testing

@Suite("Bytes in memory")
struct MemoryTests {
  @Test("An integer is loaded little-endian from any offset", arguments: 0..<9)
  func load(offset: Int) {
    let bytes = [UInt8](0..<32)
    let expected = (0..<8).reduce(UInt64(0)) { $0 | UInt64(offset + $1) << UInt64(8 * $1) }
    #expect(bytes.withBytes { $0.load(UInt64.self, at: offset) } == expected)
  }

  @Test("A stored integer is loaded again", arguments: 0..<9)
  func store(offset: Int) {
    var bytes = [UInt8](repeating: 0xEE, count: 32)
    bytes.withMutableSpan { $0.store(UInt32(0xDEAD_BEEF), at: offset) }
    #expect(bytes.withBytes { $0.load(UInt32.self, at: offset) } == 0xDEAD_BEEF)
    #expect(bytes.count { $0 == 0xEE } == 28)
    #expect(bytes[offset] == 0xEF)
  }

  @Test("A span knows whether it is all zero, wherever the non-zero byte is", arguments: 0..<17)
  func zero(offset: Int) {
    var bytes = [UInt8](repeating: 0, count: 17)
    #expect(bytes.withBytes { $0.isZero })
    bytes[offset] = 1
    #expect(!bytes.withBytes { $0.isZero })
  }

  @Test("A prefix is recognised, and so is the empty one")
  func prefix() {
    let bytes = Array("prefix".utf8)
    for (prefix, holds) in [
      ("", true), ("pre", true), ("prefix", true), ("prefixes", false), ("x", false),
    ] {
      #expect(
        bytes.rawSpan.starts(with: Array(prefix.utf8).rawSpan) == holds)
    }
  }

  /// How many pages of memory this thread has touched for the first time.
  private func pageFaults(of body: () throws -> Void) rethrows -> Int {
    func count() -> Int {
      #if canImport(Darwin)
        // Darwin does not count them for each thread.
        return 0
      #else
        var usage = rusage()
        // RUSAGE_THREAD, which the module does not have.
        #expect(unsafe getrusage(__rusage_who_t(1), &usage) == 0)
        return usage.ru_minflt
      #endif
    }
    let before = count()
    try body()
    return count() - before
  }

  @Test("Releasing a table of references touches only its contents")
  func referenceTable() {
    // Found by the rates of FormatFuzzer and CrashFuzzer: closing a store walked the whole table of
    // its segments, 1 MiB of zeros that had never been touched.
    var table: ReferenceTable<Fixture>? = ReferenceTable(slotCount: 1 << 20)
    table?.set(3, to: Fixture())
    #expect(table?[3] != nil)
    // Only the release is measured: an allocation may have to clear memory that was in use before.
    let faults = pageFaults { table = nil }
    #expect(faults < 500)
  }

  private final class Fixture {}

  @Test("A scan of a small segment takes no more memory than the segment")
  func scanner() throws {
    // Found by FormatFuzzer's memory limit: each open segment of a few bytes was read through a
    // window of 1 MiB, so a manifest of many of them took the time of as many megabytes.
    let scene = try StoreScene()
    try scene.open().setValue("1", forKey: "a")
    let directory = try Directory(
      path: scene.path, fileSystem: SystemFileSystem(), readOnly: true)
    let file = try #require(try directory.openFile(StoreScene.segment, mode: .readOnly))
    let header = try scene.segmentHeader()
    let faults = pageFaults {
      for _ in 0..<10 {
        _ = SegmentScanner(file: file, header: header, end: SegmentHeader.byteCount + 64)
      }
    }
    #expect(faults < 100)
  }
}
