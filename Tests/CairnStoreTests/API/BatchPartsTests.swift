import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// The bytes of a batch are gathered and written in parts.
@Suite("Batches of several parts")
struct BatchPartsTests {
  /// Parts begin and end at large values, at every padding, and at 1 MiB of small ones.
  private static let sizes =
    (0..<8).map { 65_536 + $0 } + [0, 1, 65_535, 200_000] + [Int](repeating: 300, count: 4000)

  private static func value(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: sizes[number])
  }

  private func check(_ store: Store) throws {
    for number in Self.sizes.indices {
      #expect(try store.value(forKey: "\(number)") == Self.value(number), "\(number)")
    }
    #expect(try store.value(forKey: "gone") == nil)
    #expect(try store.entry(forKey: "3")?.metadata == [1, 2, 3])
    #expect(try store.auditUsage() == [])
  }

  @Test(
    "The whole batch is read back at once, after a kill and after a close", arguments: [8192, 100])
  func parts(asideOperationCount: Int) throws {
    let scene = try StoreScene()
    let store = try scene.open { configuration in
      configuration.segmentByteLimit = 16 << 20
      configuration.asideOperationCount = asideOperationCount
    }
    try store.setValue("old", forKey: "gone")
    try store.write { batch in
      for number in Self.sizes.indices {
        let value = Self.value(number)
        let options = EntryOptions.metadata(number == 3 ? [1, 2, 3] : nil)
        if number % 2 == 0 {
          try batch.setValue(value, forKey: "\(number)", options: options)
        } else {
          // Bytes that the batch cannot keep.
          try value.withBytes { (bytes) throws(StoreError) in
            try batch.setValue(bytes, forKey: "\(number)", options: options)
          }
        }
      }
      try batch.removeValue(forKey: "gone")
    }
    try check(store)
    let copy = try scene.killed()
    let killed = try copy.open()
    try check(killed)
    try killed.close()
    try store.close()
    let again = try scene.open()
    try check(again)
    try again.close()
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test("A value changed after it was added is written as it was")
  func changed() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.write { batch in
      var value = [UInt8](repeating: 1, count: 100_000)
      try batch.setValue(value, forKey: "a")
      value[50_000] = 2
      try batch.setValue(value, forKey: "b")
      value = []
    }
    #expect(try store.value(forKey: "a") == [UInt8](repeating: 1, count: 100_000))
    #expect(try store.value(forKey: "b")?[50_000] == 2)
  }

  /// Bytes that may change. Their owner must not be called under a lock.
  private final class Changing: ByteSource, Sendable {
    let bytes = Mutex([UInt8](repeating: 1, count: 100_000))

    func withBytes<Result: ~Copyable, Failure: Error>(
      _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
      let bytes = bytes.withLock { $0 }
      return try bytes.withBytes(body)
    }
  }

  @Test("Bytes of other types are copied when they are added")
  func copied() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    let value = Changing()
    try store.write { batch in
      try batch.setValue(value, forKey: "a", options: .lifetime(.seconds(5)))
      value.bytes.withLock { $0 = [] }
    }
    #expect(try store.value(forKey: "a") == [UInt8](repeating: 1, count: 100_000))
    scene.clock.advance(by: .seconds(5))
    #expect(try store.value(forKey: "a") == nil)
    #expect(try store.trim(.expired).count == 1)
  }

  @Test("If any part cannot be written, no part of the batch is", arguments: 1...5)
  func failing(part: Int) throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.segmentByteLimit = 4 << 20 }
    try store.setValue("old", forKey: "a")
    scene.fileSystem.arm(.init(call: .write, index: part - 1, errorNumber: EIO))
    #expect(throws: StoreError.self) {
      try store.write { batch in
        for key in ["a", "b"] {
          try batch.setValue([UInt8](repeating: 7, count: 70_001), forKey: key)
        }
        try batch.setValue([UInt8](repeating: 7, count: 1000), forKey: "c")
      }
    }
    #expect(scene.fileSystem.hasFired)
    scene.fileSystem.arm(nil)
    #expect(try store.contents() == ["a": Array("old".utf8)])
    try store.setValue("new", forKey: "d")
    let expected = ["a": Array("old".utf8), "d": Array("new".utf8)]
    #expect(try store.contents() == expected)
    let copy = try scene.killed()
    let killed = try copy.open()
    #expect(try killed.contents() == expected)
  }
}
