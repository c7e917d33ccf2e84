import CairnLibC
import Testing

@testable import CairnBench

@Suite("The reference store")
struct ReferenceStoreTests {
  private func withStore(_ body: (ReferenceStore, String) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    let store = try ReferenceStore(
      at: directory.path, options: StoreOptions(expectedKeyCount: 2_000))
    try body(store, directory.path)
    try store.close()
  }

  @Test("behaves like a dictionary, with and without fences")
  func model() throws {
    try withStore { (store, _) throws in try checkModel(store) }
    let directory = try TemporaryDirectory()
    let serial = try SerialReferenceStore(
      at: directory.path, options: StoreOptions(expectedKeyCount: 2_000))
    try checkModel(serial)
    try serial.close()
  }

  private func checkModel(_ store: some KeyValueStore) throws {
    var model: [[UInt8]: [UInt8]] = [:]
    var random = RandomSource(seed: 5)
    for _ in 0..<20_000 {
      let key = Array(String(random.index(below: 1_500)).utf8)
      switch random.index(below: 4) {
      case 0: #expect(try store.remove(key) == (model.removeValue(forKey: key) != nil))
      case 1:
        let value = [UInt8](
          repeating: UInt8(truncatingIfNeeded: random.next()), count: random.index(below: 50))
        // Removed entries are not reused, so the table can fill up, which is an error.
        if model[key] != nil || model.count < 100 {
          do { try store.put(value, key) } catch { continue }
          model[key] = value
        }
      default:
        #expect(try store.got(key) == model[key])
        #expect(try store.gotInPlace(key) == model[key])
      }
    }
  }

  @Test("detects a flipped byte", arguments: [8, 12, 16, 20, 21])
  func flippedByte(offset: Int) throws {
    try withStore { (store, path) throws in
      let key = Array("k".utf8)
      try store.put(Array("value".utf8), key)
      let file = unsafe open(path + "/records", O_RDWR)
      defer { close(file) }
      var byte: UInt8 = 0
      // SAFETY: one byte is read and written. The mapping shows the change, because both use the
      // page cache.
      #expect(unsafe pread(file, &byte, 1, offset) == 1)
      byte ^= 1
      #expect(unsafe pwrite(file, &byte, 1, offset) == 1)
      // The length of the key is compared before the checksum.
      if offset == 12 {
        #expect(try store.got(key) == nil)
      } else if offset == 20 {
        #expect(try store.got(key) == nil)
      } else {
        #expect(throws: BenchFailure.self) { try store.got(key) }
      }
    }
  }

  @Test("refuses more keys than its table has room for")
  func full() throws {
    try withStore { (store, _) throws in
      #expect(throws: BenchFailure.self) {
        for index in 0..<3_000 { try store.put([], Array(String(index).utf8)) }
      }
    }
  }
}
