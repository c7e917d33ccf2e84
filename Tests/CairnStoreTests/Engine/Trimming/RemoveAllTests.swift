import CairnStore
import Foundation
import FuzzSupport
import Glibc
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

  @Test("Nothing is left, and the store continues")
  func all() throws {
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try store.contents() == [:])
    #expect(try store.value(forKey: "key1") == nil)
    try store.setValue("new", forKey: "key1")
    #expect(try store.contents() == ["key1": Array("new".utf8)])
  }

  @Test("Nothing reappears with the next open, clean or not", arguments: [true, false])
  func reopened(clean: Bool) throws {
    try store.removeAll()
    try store.setValue("new", forKey: "key1")
    if clean { try store.close() }
    try Image(of: directory.store).write(to: directory("copy"))
    let again = try Store(directory("copy"))
    #expect(try again.statistics().recovery.wasClean == clean)
    #expect(try again.contents() == ["key1": Array("new".utf8)])
  }

  @Test(
    "A removal of all is reported even if nothing is left: an earlier one may be still unreported"
  )
  func toldOfNothing() throws {
    let directory = try TemporaryDirectory()
    let told = Messages()
    let store = try Store(
      directory.store, .small { $0.removalObserver = { told.add("\($0)") } },
      background: ManualBackgroundQueue())
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

  @Test(
    "Progress is reported file by file, once nothing can be found; the callee may write")
  func progress() throws {
    let fileCount = try Image(of: directory.store).segmentNames.count
    var told: [WorkProgress] = []
    var counts: [Int] = []
    try store.removeAll { progress in
      told.append(progress)
      counts.append((try? store.count()) ?? -1)
      if progress.completedCount == 1 { _ = try? store.setValue("meanwhile", forKey: "new") }
    }
    #expect(told.map(\.completedCount) == Array(1...fileCount))
    #expect(told.allSatisfy { $0.totalCount == fileCount })
    #expect(counts == [0] + Array(repeating: 1, count: fileCount - 1))
    #expect(try store.text("new") == "meanwhile")
    #expect(try Image(of: directory.store).segmentNames.count == 1)
    try store.close()
    #expect(try Store(directory.store).text("new") == "meanwhile")
  }

  @Test("Versions keep growing")
  func versions() throws {
    let last = try store.statistics().lastVersion
    try store.removeAll()
    #expect(try store.setValue("v", forKey: "key") > last)
    try store.removeAll()
    try store.close()
    #expect(try Store(directory.store).setValue("v", forKey: "key") > last + 1)
  }

  @Test("In an empty store, a removal of all does nothing")
  func empty() throws {
    let other = try TemporaryDirectory()
    let store = try Store(other.store)
    let listing = try DirectoryListing(of: other.store)
    try store.removeAll()
    #expect(try DirectoryListing(of: other.store) == listing)
  }

  @Test("A store that was opened and not written to can be emptied too")
  func afterReopening() throws {
    try store.close()
    let again = try Store(directory.store, background: queue)
    try again.removeAll()
    #expect(try again.count() == 0)
    queue.runAll()
    #expect(try Image(of: directory.store).segmentNames == [])
    try again.close()
    #expect(try Store(directory.store).count() == 0)
  }

  @Test("The manifest does not grow with the number of removals, within or across sessions")
  func manifestSize() throws {
    func size() throws -> Int {
      try #require(try Image(of: directory.store).files["MANIFEST"]).count
    }
    func remove(_ count: Int, in store: Store) throws {
      for _ in 0..<count {
        try store.setValue("v", forKey: "key")
        try store.removeAll()
      }
    }
    try remove(5, in: store)
    let before = try size()
    try remove(50, in: store)
    #expect(try size() <= before + 64)
    for session in 0..<3 {
      let store = session == 0 ? store : try Store(directory.store, background: queue)
      try remove(30, in: store)
      try store.close()
      #expect(try Image(of: directory.store).manifest.retiredIDs.count <= 2)
    }
  }

  @Test("A manifest that could not be prepared does not keep the ids of removed segments in use")
  func retiredIDsAfterFailure() throws {
    // The store must remember the unlinked files until the replacement is known to have succeeded.
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a")
    try store.removeAll()
    scene.fileSystem.setHook { event in
      event.call == .allocate && event.file == "MANIFEST.new" ? ENOSPC : nil
    }
    try store.setValue("2", forKey: "b")
    #expect(throws: StoreError.self) { try store.checkpoint() }
    scene.fileSystem.setHook(nil)
    try store.checkpoint()
    #expect(try scene.manifest().retiredIDs == [])
  }

  /// A store that has a prepared manifest for its next removal of all, on a file system that
  /// records its calls.
  private func readyStore(
    _ durability: Durability = .process
  ) throws -> (Store, TemporaryDirectory, FaultyFileSystem, ManualBackgroundQueue, Messages) {
    let directory = try TemporaryDirectory()
    let files = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let store = try Store(
      directory.store, .small(durability: durability), fileSystem: files, background: queue)
    for number in 0..<150 {
      try store.setValue(
        [UInt8](repeating: 1, count: 1000), forKey: "key\(number)", durability: .process)
    }
    queue.runAll()
    let calls = Messages()
    let listed = Set(try Image(of: directory.store).segmentNames)
    files.setHook { event in
      switch event.call {
      case .synchronize, .synchronizeData: calls.add("sync")
      case .exchange: calls.add("exchange")
      case .unlink where listed.contains(event.file): calls.add("unlink")
      default: break
      }
      return nil
    }
    return (store, directory, files, queue, calls)
  }

  @Test("With .process, a removal of all waits for no sync; the files go once it is on disk")
  func withoutSync() throws {
    let (store, directory, _, queue, calls) = try readyStore()
    let last = try store.statistics().lastVersion
    var told = 0
    try store.removeAll { told = $0.totalCount ?? 0 }
    #expect(calls.all == ["exchange"])
    #expect(told >= 3)
    #expect(try store.contents() == [:])
    #expect(try Image(of: directory.store).segmentNames.count == told)
    // After a kill at this moment, everything is gone too.
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == [:])
    #expect(try Image(of: directory("killed")).segmentNames == [])
    #expect(try killed.setValue("new", forKey: "key1", durability: .process) > last)
    #expect(try killed.statistics().recovery.quarantinedFiles == [])
    try killed.close()
    queue.runAll()
    #expect(calls.all.prefix(3) == ["exchange", "sync", "unlink"])
    #expect(try Image(of: directory.store).segmentNames == [])
    #expect(try store.setValue("new", forKey: "key1") > last)
    try store.close()
    #expect(try Store(directory.store).contents() == ["key1": Array("new".utf8)])
  }

  @Test("A durable call first brings the removal to disk", arguments: 0..<4)
  func settled(by choice: Int) throws {
    let (store, directory, _, queue, calls) = try readyStore()
    try store.removeAll()
    switch choice {
    case 0: try store.sync()
    case 1: #expect(try !store.removeValue(forKey: "key1", durability: .durable))
    case 2: try store.setValue("new", forKey: "new", durability: .durable)
    default: try store.close()
    }
    // This happens before a file is removed.
    #expect(calls.all.prefix(2) == ["exchange", "sync"])
    if choice == 3 { #expect(try Image(of: directory.store).segmentNames == []) }
    queue.runAll()
  }

  @Test("The first write after the removal waits for no sync either; a power cut undoes both")
  func writeAfter() throws {
    let (store, directory, _, queue, calls) = try readyStore()
    try store.removeAll()
    try store.setValue("new", forKey: "new")
    #expect(calls.all == ["exchange"])
    var undone = try Image(of: directory.store)
    undone.files["MANIFEST"] = undone.files["MANIFEST.empty"]
    try undone.write(to: directory("undone"))
    let again = try Store(directory("undone"))
    #expect(try again.count() == 150)
    #expect(try again.statistics().recovery.quarantinedFiles == [])
    try again.close()
    queue.runAll()
    #expect(try store.contents() == ["new": Array("new".utf8)])
  }

  @Test(
    "A removal waits for no sync in a session without writes, nor does the next one")
  func beforeTheFirstWrite() throws {
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    do {
      let store = try Store(directory.store, .small(durability: .process), background: queue)
      try store.setValue("old", forKey: "key")
      try store.close()
    }
    let files = FaultyFileSystem()
    let store = try Store(
      directory.store, .small(durability: .process), fileSystem: files, background: queue)
    for round in 0..<3 {
      queue.runAll(dueAfter: .zero)
      let calls = Messages()
      files.setHook { event in
        if [.synchronize, .synchronizeData].contains(event.call) { calls.add("sync") }
        return nil
      }
      try store.removeAll()
      #expect(try store.count() == 0)
      try store.setValue("new", forKey: "key\(round)")
      #expect(calls.all == [])
    }
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == ["key2": Array("new".utf8)])
    #expect(try killed.statistics().recovery.quarantinedFiles == [])
    try store.close()
    #expect(try Store(directory.store).contents() == ["key2": Array("new".utf8)])
  }

  @Test("In a durable store, a removal of all is on disk when it returns")
  func durable() throws {
    let (store, directory, _, _, calls) = try readyStore(.durable)
    try store.removeAll()
    #expect(calls.all.firstIndex(of: "sync") != nil)
    #expect(calls.all.lastIndex(of: "sync")! < calls.all.firstIndex(of: "unlink")!)
    #expect(try Image(of: directory.store).segmentNames == [])
  }

  @Test("Everything that the manifest lists at the removal is removed", arguments: [0, 200])
  func afterMoreSegments(count: Int) throws {
    let (store, directory, _, queue, calls) = try readyStore()
    for number in 0..<count {
      try store.setValue([UInt8](repeating: 2, count: 9000), forKey: "more\(number)")
    }
    if count > 0 { queue.runAll() }
    let exchanges = calls.all.filter { $0 == "exchange" }.count
    try store.removeAll()
    #expect(calls.all.filter { $0 == "exchange" }.count == exchanges + 1)
    #expect(calls.all.last == "exchange")
    try Image(of: directory.store).write(to: directory("killed"))
    #expect(try Store(directory("killed")).contents() == [:])
    #expect(try Image(of: directory("killed")).segmentNames == [])
    queue.runAll()
    try store.setValue("new", forKey: "key1")
    try store.close()
    #expect(try Store(directory.store).contents() == ["key1": Array("new".utf8)])
  }

  @Test("A failed preparation does not use up places for good")
  func notReady() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    scene.fileSystem.setHook { event in
      event.file == FileName.emptiedManifest && event.call == .allocate ? ENOSPC : nil
    }
    for number in 0..<20 {
      try store.setValue("v", forKey: "\(number)")
      try store.maintain()
    }
    try store.checkpoint()
    #expect(try scene.manifest().pendingIDs == [])
    scene.fileSystem.setHook(nil)
    try store.maintain()
    try store.removeAll()
    #expect(try store.count() == 0)
    try store.close()
  }

  @Test("A close that fails waits for the preparation in progress")
  func closedMeanwhile() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "key")
    let gate = Gate()
    scene.fileSystem.setHook { event in
      if event.file == FileName.emptiedManifest, event.call == .write { gate.passOnce() }
      return event.call == .synchronizeData ? EIO : nil
    }
    let housekeeping = Background { try? store.maintain() }
    try gate.waitForArrival()
    let closing = Background { try store.close() }
    #expect(!closing.finishes(within: 1))
    guard case .locked = storeError({ _ = try scene.open() }) else {
      Issue.record("the lock was released")
      return
    }
    gate.open()
    #expect(closing.finishes())
    #expect(closing.error != nil)
    #expect(housekeeping.finishes())
  }

}
