import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Synchronization
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
    let told = Collected<RemovalEvent>()
    let store = try Store(
      directory.store, .small { $0.removalObserver = { told.add($0) } },
      background: ManualBackgroundQueue())
    try store.setValue("v", forKey: "a")
    let version = try #require(try store.info(forKey: "a")).version
    try store.removeAll()
    try store.removeAll()
    guard case .all(version, count: 1)? = told.all.first,
      case .all(let last, count: 0)? = told.all.last
    else {
      Issue.record("\(told.all)")
      return
    }
    #expect(told.all.count == 2 && last >= version)
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
      // The places of the last removal, whose names are not durably gone yet.
      #expect(
        try Image(of: directory.store).manifest.retiredIDs.count
          <= Manifest.reservedSegmentCount + 4)
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

  /// A store with entries, on a file system that records its calls.
  private func recordedStore(
    _ durability: Durability
  ) throws -> (Store, TemporaryDirectory, ManualBackgroundQueue, Messages) {
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
    return (store, directory, queue, calls)
  }

  @Test(
    "A removal of all is on disk before a file goes, whatever the class",
    arguments: [Durability.process, .interval(.seconds(10)), .durable])
  func order(durability: Durability) throws {
    let (store, directory, queue, calls) = try recordedStore(durability)
    let last = try store.statistics().lastVersion
    try store.removeAll()
    let exchange = try #require(calls.all.firstIndex(of: "exchange"))
    #expect(calls.all.filter { $0 == "exchange" }.count == 1)
    #expect(calls.all[..<exchange].contains("sync"))
    #expect(Array(calls.all[exchange...].prefix(3)) == ["exchange", "sync", "unlink"])
    #expect(try Image(of: directory.store).segmentNames == [])
    #expect(try store.setValue("new", forKey: "key1", durability: .process) > last)
    queue.runAll()
    try store.close()
    #expect(try Store(directory.store).contents() == ["key1": Array("new".utf8)])
  }

  @Test(
    "A kill or a power cut between the exchange and its sync leaves all or nothing",
    arguments: [true, false])
  func cutShort(isUndone: Bool) throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("old", forKey: "key")
    try store.sync()
    let before = try Image(of: scene.path)
    let image = Mutex<Image?>(nil)
    let isExchanged = Mutex(false)
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isExchanged.withLock { $0 = true } }
      guard event.call == .synchronize, isExchanged.withLock({ $0 }),
        image.withLock({ $0 == nil })
      else { return nil }
      // The first write after the removal is in the log already.
      _ = try? store.setValue("new", forKey: "new")
      let now = try? Image(of: scene.path)
      image.withLock { $0 = now }
      return nil
    }
    try store.removeAll()
    scene.fileSystem.setHook(nil)
    var left = try #require(image.withLock { $0 })
    // No file that a power cut may bring back as the manifest is written to again.
    let old = try #require(before.files["MANIFEST"])
    #expect(left.files["MANIFEST.new"]?.starts(with: old) == false)
    if isUndone { left.files["MANIFEST"] = before.files["MANIFEST"] }
    let directory = try TemporaryDirectory()
    try left.write(to: directory.store)
    let again = try Store(directory.store)
    #expect(
      try again.contents() == (isUndone ? ["key": Array("old".utf8)] : ["new": Array("new".utf8)]))
    #expect(try again.statistics().recovery.quarantinedFiles == [])
  }

  @Test("A second removal of all waits for the one before it")
  func afterUnsettled() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "key")
    let gate = Gate()
    let isExchanged = Mutex(false)
    let syncCount = Mutex(0)
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isExchanged.withLock { $0 = true } }
      if event.call == .synchronize, isExchanged.withLock({ $0 }) {
        syncCount.withLock { $0 += 1 }
        gate.passOnce()
      }
      return nil
    }
    let first = Background { try store.removeAll() }
    try gate.waitForArrival()
    #expect(try store.count() == 0)
    let second = Background { try store.removeAll() }
    second.waitUntilBlocked()
    #expect(!second.finishes(within: 0))
    gate.open()
    #expect(first.finishes() && first.error == nil)
    #expect(second.finishes() && second.error == nil)
    #expect(syncCount.withLock { $0 } == 2)
    scene.fileSystem.setHook(nil)
    try store.close()
  }

  @Test("Everything that the manifest lists at the removal is removed", arguments: [0, 200])
  func afterMoreSegments(count: Int) throws {
    let (store, directory, queue, _) = try recordedStore(.process)
    for number in 0..<count {
      try store.setValue([UInt8](repeating: 2, count: 9000), forKey: "more\(number)")
    }
    if count > 0 { queue.runAll() }
    try store.removeAll()
    try Image(of: directory.store).write(to: directory("killed"))
    #expect(try Store(directory("killed")).contents() == [:])
    #expect(try Image(of: directory("killed")).segmentNames == [])
    queue.runAll()
    try store.setValue("new", forKey: "key1")
    try store.close()
    #expect(try Store(directory.store).contents() == ["key1": Array("new".utf8)])
  }

  @Test("A removal of all that finds no room for its manifest leaves everything")
  func noRoom() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "key")
    for isOfSync in [false, true] {
      scene.fileSystem.setHook { event in
        event.file == FileName.newManifest && event.call == (isOfSync ? .synchronize : .write)
          ? ENOSPC : nil
      }
      #expect(throws: StoreError.self) { try store.removeAll() }
    }
    scene.fileSystem.setHook(nil)
    #expect(try store.count() == 1)
    try store.setValue("v", forKey: "key2")
    try store.removeAll()
    #expect(try store.count() == 0)
    try store.close()
  }
}
