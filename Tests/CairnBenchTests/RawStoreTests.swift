import Cairn
import Testing

@testable import CairnBench

@Suite("The raw copies and writes")
struct RawStoreTests {
  private static let options: [StoreOptions] = [.process, .durable].map {
    StoreOptions(durability: $0, expectedKeyCount: 3, expectedByteCount: 100)
  }

  private func expectFound(_ store: some KeyValueStore) throws {
    let values: [[UInt8]] = [Array("one".utf8), [], [UInt8](repeating: 7, count: 70_000)]
    for (index, value) in values.enumerated() { try store.put(value, [UInt8(index), 0, 255]) }
    for (index, value) in values.enumerated() {
      #expect(try store.got([UInt8(index), 0, 255]) == value)
    }
    #expect(try store.got([3]) == nil)
    // A write after a read replaces the old value.
    try store.put([1], [0, 0, 255])
    #expect(try store.got([0, 0, 255]) == [1])
    #expect(throws: BenchFailure.self) { try store.remove([0, 0, 255]) }
    try store.close()
  }

  @Test("a copy is found in the file again", arguments: options)
  func copies(options: StoreOptions) throws {
    let directory = try TemporaryDirectory()
    try expectFound(try RawCopyStore(at: directory.path, options: options))
  }

  @Test("a write is found in the file again", arguments: options)
  func writes(options: StoreOptions) throws {
    let directory = try TemporaryDirectory()
    try expectFound(try RawWriteStore(at: directory.path, options: options))
  }

  @Test("a mapping that is full is an error")
  func full() throws {
    let directory = try TemporaryDirectory()
    let store = try RawCopyStore(at: directory.path, options: StoreOptions())
    try store.put([UInt8](repeating: 1, count: 1 << 19), [1])
    #expect(throws: BenchFailure.self) {
      try store.put([UInt8](repeating: 2, count: 1 << 19), [2])
    }
    #expect(try store.got([2]) == nil)
    try store.close()
  }

  @Test("they appear in the rows that write new keys, and in no others")
  func rows() {
    #expect(Workload.allCases.filter(StoreKind.rawCopy.supports) == [.fill])
    #expect(Workload.allCases.filter(StoreKind.rawWrite.supports) == [.fill, .durablePut])
  }
}
