import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Stores opened for reading")
struct ReadOnlyTests {
  /// The state of the store that is opened.
  enum Origin: CaseIterable, Sendable { case closed, killed, killedWithTornTail, neverWritten }

  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  func makeStore(_ origin: Origin) throws {
    let store = try Store(directory("live"), background: ManualBackgroundQueue())
    if origin != .neverWritten {
      for number in 0..<100 {
        try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
      }
      try store.removeValue(forKey: "key5")
    }
    if origin == .closed { try store.close() }
    var image = try Image(of: directory("live"))
    if origin == .killedWithTornTail {
      let name = try #require(image.segmentNames.last { !(try image.records(in: $0).isEmpty) })
      let last = try #require(try image.records(in: name).last)
      image = image.flipping(name, at: last.offset)
    }
    try image.write(to: directory.store)
  }

  @Test(
    "Reads work, writes throw readOnly, and nothing on disk changes", arguments: Origin.allCases)
  func nothingChanges(origin: Origin) throws {
    try makeStore(origin)
    let listing = try DirectoryListing(of: directory.store)
    do {
      let store = try Store(directory.store, readOnly: true)
      if origin != .neverWritten {
        #expect(try store.value(forKey: "key1")?.count == 1000)
        #expect(try store.contains("key5") == (origin == .killedWithTornTail))
        #expect(try store.count() == (origin == .killedWithTornTail ? 100 : 99))
        #expect(try store.contents().count == store.count())
      }
      let readOnly = StoreError.readOnly(path: directory.store)
      #expect(throws: readOnly) { try store.setValue("v", forKey: "key") }
      #expect(throws: readOnly) { try store.removeValue(forKey: "key1") }
      #expect(throws: readOnly) { try store.compareAndSet("v", forKey: "k", expecting: nil) }
      #expect(throws: readOnly) { try store.compareAndRemove(forKey: "key1", expecting: 1) }
      #expect(throws: readOnly) { try store.write { try $0.setValue("v", forKey: "k") } }
      #expect(throws: readOnly) { try store.removeAll() }
      #expect(throws: readOnly) { try store.sync() }
      _ = try store.statistics()
      try store.close()
    }
    #expect(try DirectoryListing(of: directory.store) == listing)
    _ = try Store.verify(path: directory.store)
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("A reader does not remove leftovers")
  func leftovers() throws {
    try makeStore(.closed)
    try writeFile(directory.store + "/MANIFEST.new", [1])
    try writeFile(directory.store + "/seg-00000000000000ff", [1])
    let listing = try DirectoryListing(of: directory.store)
    try Store(directory.store, readOnly: true).close()
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("A store without its LOCK is not opened for reading")
  func noLock() throws {
    try makeStore(.closed)
    try FileManager.default.removeItem(atPath: directory.store + "/LOCK")
    guard case .notAStore = storeError({ _ = try Store(directory.store, readOnly: true) }) else {
      Issue.record("opened")
      return
    }
  }
}
