import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Removing everything")
struct RemoveAllTests {
  let directory: TemporaryDirectory
  let queue = ManualBackgroundQueue()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, background: queue)
    for number in 0..<150 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
    }
  }

  @Test("Nothing is left, and the store goes on")
  func all() throws {
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try store.contents() == [:])
    #expect(try store.value(forKey: "key1") == nil)
    try store.setValue("new", forKey: "key1")
    #expect(try store.contents() == ["key1": Array("new".utf8)])
  }

  @Test("Nothing comes back with the next opening, clean or not", arguments: [true, false])
  func reopened(clean: Bool) throws {
    try store.removeAll()
    try store.setValue("new", forKey: "key1")
    if clean { try store.close() }
    try Image(of: directory.store).write(to: directory("copy"))
    let again = try Store(directory("copy"))
    #expect(try again.statistics().recovery.wasClean == clean)
    #expect(try again.contents() == ["key1": Array("new".utf8)])
  }

  @Test("It is told also where nothing is left: who removed it may be about to tell")
  func toldOfNothing() throws {
    let directory = try TemporaryDirectory()
    let told = Messages()
    let store = try Store(directory.store, .small { $0.removalObserver = { told.add("\($0)") } })
    try store.setValue("v", forKey: "a")
    let version = try #require(try store.info(forKey: "a")).version
    try store.removeAll()
    try store.removeAll()
    #expect(
      told.all == [
        "\(RemovalEvent.all(throughVersion: version, count: 1))",
        "\(RemovalEvent.all(throughVersion: version, count: 0))",
      ])
  }

  @Test("The files go at once")
  func files() throws {
    #expect(try Image(of: directory.store).segmentNames.count >= 3)
    try store.removeAll()
    #expect(try Image(of: directory.store).segmentNames == [])
    let statistics = try store.statistics()
    #expect(statistics.segmentCount == 0)
    #expect(statistics.allocatedByteCount == 0)
    #expect(statistics.liveByteCount + statistics.deadByteCount == 0)
  }

  @Test("Progress is told file by file, when nothing is left to be found; the teller may write")
  func progress() throws {
    let fileCount = try Image(of: directory.store).segmentNames.count
    var told: [RemoveAllProgress] = []
    var counts: [Int] = []
    try store.removeAll { progress in
      told.append(progress)
      counts.append((try? store.count()) ?? -1)
      if progress.fileCount == 1 { _ = try? store.setValue("meanwhile", forKey: "new") }
    }
    #expect(told.map(\.fileCount) == Array(1...fileCount))
    #expect(told.allSatisfy { $0.totalFileCount == fileCount })
    #expect(counts == [0] + Array(repeating: 1, count: fileCount - 1))
    #expect(try store.text("new") == "meanwhile")
    #expect(try Image(of: directory.store).segmentNames.count == 1)
    try store.close()
    #expect(try Store(directory.store).text("new") == "meanwhile")
  }

  @Test("Versions go on growing")
  func versions() throws {
    let last = try store.statistics().lastVersion
    try store.removeAll()
    #expect(try store.setValue("v", forKey: "key") > last)
    try store.removeAll()
    try store.close()
    #expect(try Store(directory.store).setValue("v", forKey: "key") > last + 1)
  }

  @Test("In an empty store it does nothing")
  func empty() throws {
    let other = try TemporaryDirectory()
    let store = try Store(other.store)
    let listing = try DirectoryListing(of: other.store)
    try store.removeAll()
    #expect(try DirectoryListing(of: other.store) == listing)
  }

  @Test("A store that was opened and not written to is emptied too")
  func afterReopening() throws {
    try store.close()
    let again = try Store(directory.store)
    try again.removeAll()
    #expect(try again.count() == 0)
    #expect(try Image(of: directory.store).segmentNames == [])
    try again.close()
    #expect(try Store(directory.store).count() == 0)
  }

  @Test("The manifest does not grow with the number of removals")
  func manifestSize() throws {
    func size() throws -> Int {
      try #require(try Image(of: directory.store).files["MANIFEST"]).count
    }
    for _ in 0..<5 {
      try store.setValue("v", forKey: "key")
      try store.removeAll()
    }
    let before = try size()
    for _ in 0..<50 {
      try store.setValue("v", forKey: "key")
      try store.removeAll()
    }
    #expect(try size() <= before + 64)
  }

  @Test("A seal under way when everything is removed comes to an end")
  func duringSealing() throws {
    let other = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let store = try Store(other.store, fileSystem: system, background: queue)
    try store.setValue("v", forKey: "first")
    // One thread syncs the segment as it is now and is held up inside …
    let gate = Gate()
    system.setHook { if $0 == .synchronizeData { gate.passOnce() } }
    let syncer = Background { try store.sync() }
    try gate.waitForArrival()
    // … while the segment gets more records and is left; another thread goes to seal it …
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
    }
    let sealer = Background { queue.runAll() }
    try waitUntil { queue.delays.isEmpty }
    // … and everything is removed.
    try store.removeAll()
    gate.open()
    #expect(syncer.finishes())
    #expect(sealer.finishes())
    #expect(syncer.error == nil)
  }
}
