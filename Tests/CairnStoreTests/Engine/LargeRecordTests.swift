import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Records of a page and more")
struct LargeRecordTests {
  /// Sizes around those at which values begin to be written or checked in another way.
  static let sizes = [
    0, 1, 255, 256, 257, 1023, 1024, 1025, 4000, 4095, 4096, 4097, 8192, 16_383, 16_384, 40_000,
  ]

  @Test("are written by a call, smaller ones through the mapping, each in one piece")
  func calls() throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.segmentByteLimit = 1 << 20 }
    try store.setValue([1], forKey: "first")
    let count = Mutex(0)
    scene.fileSystem.setHook { event in
      if event.call == .write, event.file.hasPrefix("seg-") { count.withLock { $0 += 1 } }
      return nil
    }
    for size in Self.sizes {
      count.withLock { $0 = 0 }
      try store.setValue([UInt8](repeating: 7, count: size), forKey: "key")
      #expect(count.withLock { $0 } == (size <= 4000 ? 0 : 1), "\(size)")
      let batchSize = try store.write { batch in
        try batch.setValue([UInt8](repeating: 8, count: size), forKey: "in a batch")
        return size
      }
      #expect(count.withLock { $0 } == (batchSize <= 4000 ? 0 : 2), "\(size)")
    }
    scene.fileSystem.setHook(nil)
    try store.close()
  }

  @Test("are found as they were, at once, by another process after a kill, and after a close")
  func contents() throws {
    var generator = Seed.generator()
    let scene = try StoreScene()
    let store = try scene.open { $0.segmentByteLimit = 1 << 20 }
    var values: [String: [UInt8]] = [:]
    for size in Self.sizes {
      // Small records in between, which share pages with the large ones.
      for (key, size) in [("large \(size)", size), ("small \(size)", 30)] {
        values[key] = generator.bytes(count: size)
        try store.setValue(values[key]!, forKey: key)
      }
    }
    func check(_ store: Store) throws {
      for (key, value) in values {
        #expect(try store.value(forKey: key) == value, "\(key); \(Seed.comment)")
        #expect(try store.entry(forKey: key)?.value == value, "\(key); \(Seed.comment)")
      }
      try store.close()
    }
    let killed = try scene.killed()
    try check(store)
    try check(try killed.open { $0.segmentByteLimit = 1 << 20 })
    try check(try scene.open { $0.segmentByteLimit = 1 << 20 })
  }

  @Test(
    "A damaged byte of a large value is found by a read that copies", arguments: [1500, 20_000])
  func damage(size: Int) throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.segmentByteLimit = 1 << 20 }
    try store.setValue([UInt8](repeating: 7, count: size), forKey: "key")
    try scene.edit { bytes in
      let last = try #require(bytes.lastIndex(of: 7))
      bytes[last - size / 2] = 6
    }
    #expect(throws: StoreError.self) { try store.value(forKey: "key") }
    #expect(throws: StoreError.self) { try store.entry(forKey: "key") }
    try store.close()
  }
}
