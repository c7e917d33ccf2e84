import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Reading in place")
struct WithValueTests {
  let directory: TemporaryDirectory
  let store: Store
  let value = [UInt8](repeating: 0xAB, count: 5000)

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store)
    try store.setValue(value, forKey: "key")
  }

  struct OwnError: Error, Equatable {
    var number: Int
  }

  @Test("The closure's result is returned")
  func result() throws {
    #expect(try store.withValue(forKey: "key") { $0.byteCount } == 5000)
  }

  @Test("The closure's error comes out unchanged")
  func error() {
    #expect(throws: OwnError(number: 7)) {
      try store.withValue(forKey: "key") { _ in throw OwnError(number: 7) }
    }
  }

  @Test("The bytes stay unchanged when the key is overwritten inside")
  func overwritten() throws {
    try store.withValue(forKey: "key") { bytes in
      try store.setValue([UInt8](repeating: 1, count: 5000), forKey: "key")
      #expect(bytes.copied() == value)
    }
    #expect(try store.value(forKey: "key") == [UInt8](repeating: 1, count: 5000))
  }

  @Test("The bytes stay unchanged when the key is removed inside")
  func removed() throws {
    try store.withValue(forKey: "key") { bytes in
      try store.removeValue(forKey: "key")
      #expect(bytes.copied() == value)
    }
  }

  @Test("The bytes stay unchanged when everything is removed and rewritten inside")
  func removedAll() throws {
    try store.withValue(forKey: "key") { bytes in
      try store.removeAll()
      for number in 0..<100 {
        try store.setValue([UInt8](repeating: 1, count: 1500), forKey: "other\(number)")
      }
      #expect(bytes.copied() == value)
    }
    #expect(try store.value(forKey: "key") == nil)
  }

  @Test("The bytes stay unchanged when the store is closed inside")
  func closed() throws {
    try store.withValue(forKey: "key") { bytes in
      try store.close()
      #expect(bytes.copied() == value)
    }
  }

  @Test("The bytes stay unchanged when their segment is sealed inside")
  func sealed() throws {
    let other = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    let store = try Store(other.store, background: queue)
    try store.setValue(value, forKey: "key")
    try store.withValue(forKey: "key") { bytes in
      for number in 0..<60 { try store.setValue(value, forKey: "other\(number)") }
      queue.runAll()
      #expect(bytes.copied() == value)
    }
  }

  @Test("The bytes of a large value are complete")
  func large() throws {
    var generator = FuzzRandom(seed: 1)
    let large = generator.bytes(count: 300_000)
    try store.setValue(large, forKey: "large")
    #expect(try store.withValue(forKey: "large") { $0.copied() } == large)
  }
}
