import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Opening and closing")
struct LifecycleTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("A store that is closed and reopened has its contents")
  func reopen() throws {
    let store = try Store(directory.store)
    #expect(try store.statistics().recovery.source == .created)
    try store.setValue("v", forKey: "key")
    try store.close()
    let again = try Store(directory.store)
    let recovery = try again.statistics().recovery
    #expect(recovery.source == .scan)
    #expect(recovery.wasClean)
    #expect(recovery.replayedRecordCount == 1)
    #expect(try again.text("key") == "v")
  }

  @Test("An empty store takes at most 256 KiB, before, after and between")
  func emptySize() throws {
    func allocated() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: directory.store).reduce(0) { sum, name in
        var status = stat()
        try check("stat", unsafe stat("\(directory.store)/\(name)", &status))
        return sum + Int(status.st_blocks) * 512
      }
    }
    // The segments have the default size.
    let store = try Store(directory.store, StoreConfiguration())
    #expect(try allocated() <= 256 << 10)
    try store.setValue("v", forKey: "key")
    #expect(try allocated() <= 256 << 10)
    try store.removeAll()
    #expect(try allocated() <= 256 << 10)
    try store.close()
    #expect(try allocated() <= 256 << 10)
  }

  @Test("A second close does nothing")
  func closeTwice() throws {
    let store = try Store(directory.store)
    try store.setValue("v", forKey: "key")
    try store.close()
    let listing = try DirectoryListing(of: directory.store)
    try store.close()
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("After a close every call throws closed")
  func useAfterClose() throws {
    let store = try Store(directory.store)
    try store.setValue("v", forKey: "key")
    try store.close()
    let closed = StoreError.closed(path: directory.store)
    #expect(throws: closed) { try store.value(forKey: "key") }
    #expect(throws: closed) { try store.entry(forKey: "key") }
    #expect(throws: closed) { try store.info(forKey: "key") }
    #expect(throws: closed) { try store.contains("key") }
    #expect(throws: closed) { try store.withValue(forKey: "key") { _ in } }
    #expect(throws: closed) { try store.values(forKeys: ["key"]) }
    #expect(throws: closed) { try store.forEachKey { _ in .next } }
    #expect(throws: closed) { try store.forEachEntry { _ in .next } }
    #expect(throws: closed) { try store.setValue("v", forKey: "key") }
    #expect(throws: closed) { try store.removeValue(forKey: "key") }
    #expect(throws: closed) { try store.compareAndSet("v", forKey: "key", expecting: nil) }
    #expect(throws: closed) { try store.compareAndRemove(forKey: "key", expecting: 1) }
    #expect(throws: closed) { try store.write { try $0.setValue("v", forKey: "key") } }
    #expect(throws: closed) { try store.removeAll() }
    #expect(throws: closed) { try store.sync() }
    #expect(throws: closed) { try store.count() }
    #expect(throws: closed) { try store.statistics() }
  }

  @Test("A store is closed when its last reference is released")
  func letGo() throws {
    do {
      let store = try Store(directory.store)
      try store.setValue("v", forKey: "key")
    }
    let again = try Store(directory.store)
    #expect(try again.statistics().recovery.wasClean)
    #expect(try again.text("key") == "v")
  }

  @Test("Opening and closing without a write changes nothing on disk")
  func nothingWritten() throws {
    do {
      let store = try Store(directory.store, background: ManualBackgroundQueue())
      try store.setValue("v", forKey: "key")
      try store.close()
    }
    let listing = try DirectoryListing(of: directory.store)
    let store = try Store(directory.store, background: ManualBackgroundQueue())
    #expect(try store.text("key") == "v")
    try store.close()
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("A background job that runs after the close makes no system call")
  func jobAfterClose() throws {
    let system = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, fileSystem: system, background: queue)
    for number in 0..<100 {
      try store.setValue(
        [UInt8](repeating: 1, count: 1000), forKey: "key\(number)",
        durability: number == 7 ? .interval(.seconds(1)) : .process)
    }
    #expect(!queue.delays.isEmpty)
    try store.close()
    system.arm(nil)
    queue.runAll()
    #expect(system.counts == [:])
  }

  @Test("A closed store releases its descriptors and mappings")
  func descriptors() throws {
    let system = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    do {
      let store = try Store(directory.store, fileSystem: system, background: queue)
      for number in 0..<200 {
        try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
      }
      queue.runAll()
      try store.removeAll()
      try store.setValue("v", forKey: "key")
      try store.close()
    }
    queue.discardAll()
    system.awaitClosing()
    #expect(system.openDescriptorCount == 0)
    #expect(system.mappingCount == 0)
    #expect(system.mistakes == [])
    #expect(system.lowestDescriptor > 2)
  }

  @Test("A long interval does not keep a closed store's descriptors open")
  func longInterval() throws {
    let system = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    do {
      let store = try Store(directory.store, fileSystem: system, background: queue)
      try store.setValue("v", forKey: "key", durability: .interval(.seconds(3600)))
      queue.runAll(dueAfter: .zero)
      try store.close()
    }
    #expect(queue.delays.contains(.seconds(3600)))
    #expect(system.openDescriptorCount == 0)
    queue.discardAll()
  }

  @Test("Nothing changes the manifest after a close has returned", arguments: 0..<10)
  func writeBesideClose(attempt: Int) throws {
    // A writer that waits for the manifest's lock gets it after the close has released the store's
    // lock. It must not begin a session then, in a store that another process may have open.
    let scene = try StoreScene()
    let store = try scene.open()
    let gate = Gate()
    scene.fileSystem.setHook { event in
      guard event.call == .open, event.file.hasPrefix("seg-"), gate.passOnce() else { return nil }
      return ENOSPC
    }
    let first = Background { _ = try? store.setValue("1", forKey: "x") }
    try gate.waitForArrival()
    let second = Background { _ = try? store.setValue("2", forKey: "y") }
    second.waitUntilBlocked()
    let left = Mutex<[UInt8]>([])
    let closing = Background {
      try? store.close()
      let bytes = try? scene.bytes(of: "MANIFEST")
      left.withLock { $0 = bytes ?? [] }
    }
    closing.waitUntilBlocked()
    gate.open()
    #expect(first.finishes() && second.finishes() && closing.finishes())
    #expect(try scene.bytes(of: "MANIFEST") == left.withLock { $0 })
    #expect(try scene.open(readOnly: true).statistics().recovery.wasClean)
  }

  @Test("A close during a failure lists every segment or throws")
  func closeBesideFailure() throws {
    // A job that makes the next segment fails during the close, which then seals nothing. If the
    // close left a segment unlisted, the next open would move that to quarantine.
    let scene = try StoreScene()
    let store = try scene.open()
    for index in 0..<300 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    let gate = Gate()
    let directory = scene.path
    scene.fileSystem.setHook { event in
      event.call == .synchronize && event.file == directory && gate.passOnce() ? EIO : nil
    }
    let job = Background { scene.queue.runAll(dueAfter: .zero) }
    try gate.waitForArrival()
    let closing = Background { try store.close() }
    closing.waitUntilBlocked()
    gate.open()
    #expect(closing.finishes())
    #expect(job.finishes())
    scene.fileSystem.setHook(nil)
    let again = try scene.open()
    #expect(try again.count() == 300)
    #expect(try again.statistics().recovery.quarantinedFiles == [])
  }

  @Test("A close of a poisoned store waits for a thread that is making the next segment")
  func poisonedClose() throws {
    // If the close released the lock, the segment would be made or removed in the next session's
    // directory.
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("begins the session", forKey: "first")
    scene.queue.runAll()
    let gate = Gate()
    scene.fileSystem.setHook { event in
      if event.call == .synchronizeData { return EIO }
      if event.call == .unlink, event.file.hasPrefix("seg-") { gate.passOnce() }
      return nil
    }
    let job = Background { [queue = scene.queue] in
      for number in 0..<40 {
        try store.setValue([UInt8].filled(1000), forKey: "key\(number)", durability: .process)
        queue.runAll()
      }
    }
    try gate.waitForArrival()
    #expect(throws: StoreError.self) { try store.sync() }
    let closing = Background { try store.close() }
    closing.waitUntilBlocked()
    #expect(throws: StoreError.self, "the lock is held") { try Store(scene.path) }
    gate.open()
    #expect(closing.finishes())
    #expect(job.finishes())
    guard case .poisoned? = closing.error as? StoreError else {
      Issue.record("\(String(describing: closing.error))")
      return
    }
  }

  @Test("A second open in the same process finds the store locked, until it is closed")
  func lockedHere() throws {
    let store = try Store(directory.store)
    let locked = StoreError.locked(path: directory.store, inThisProcess: true)
    #expect(throws: locked) { try Store(directory.store) }
    #expect(throws: locked) { try Store(directory.store, readOnly: true) }
    #expect(throws: locked) { try Store.verify(path: directory.store) }
    try store.setValue("v", forKey: "key")
    try store.close()
    #expect(try Store(directory.store).text("key") == "v")
  }

  @Test("An open that fails releases the lock even if a process being spawned holds it too")
  func lockAfterFailedOpen() throws {
    // Until it runs its program, a spawned process has a copy of every descriptor.
    let scene = try StoreScene()
    try scene.open().setValue("1", forKey: "a")
    let path = scene.path + "/LOCK"
    let copy = Mutex<Int32>(-1)
    scene.fileSystem.setHook { event in
      guard event.call == .open, event.file == StoreScene.segment else { return nil }
      let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
      let original = numbers.first { number in
        let link = "/proc/self/fd/\(number)"
        return (try? FileManager.default.destinationOfSymbolicLink(atPath: link)) == path
      }
      copy.withLock { copy in
        guard copy < 0, let original = original.flatMap({ Int32($0) }) else { return }
        copy = fcntl(original, F_DUPFD_CLOEXEC, 3)
      }
      return EIO
    }
    #expect(throws: StoreError.self) { try scene.open() }
    scene.fileSystem.setHook(nil)
    #expect(copy.withLock { $0 } >= 3)
    defer { close(copy.withLock { $0 }) }
    #expect(try scene.open().count() == 1)
  }

  @Test("Many readers can have a store open at once, and keep writers out")
  func readers() throws {
    do {
      let store = try Store(directory.store)
      try store.setValue("v", forKey: "key")
      try store.close()
    }
    var readers = try (0..<5).map { _ in try Store(directory.store, readOnly: true) }
    for reader in readers { #expect(try reader.text("key") == "v") }
    #expect(throws: StoreError.locked(path: directory.store, inThisProcess: true)) {
      try Store(directory.store)
    }
    for reader in readers { try reader.close() }
    readers = []
    try Store(directory.store).setValue("w", forKey: "key")
  }

  @Test("An open waits for another opener to close the store, for as long as it may")
  func waiting() throws {
    let first = try Store(directory.store)
    let impatient = StoreConfiguration.small { $0.lockTimeout = .milliseconds(20) }
    #expect(
      storeError { _ = try Store(directory.store, impatient) }
        == .locked(path: directory.store, inThisProcess: true))
    let path = directory.store
    let second = Background {
      try Store(path, .small { $0.lockTimeout = .seconds(100) }).setValue("2", forKey: "a")
    }
    second.waitUntilBlocked()
    try first.setValue("1", forKey: "a")
    try first.close()
    #expect(second.finishes())
    #expect(second.error == nil)
    #expect(try Store(directory.store).text("a") == "2")
  }

  @Test("If there is no store, opening for reading throws", arguments: [true, false])
  func noStore(readOnly: Bool) throws {
    let configuration = StoreConfiguration.small { $0.createsStore = false }
    #expect(throws: StoreError.noStore(path: directory.store)) {
      try Store(directory.store, configuration, readOnly: readOnly)
    }
    #expect(throws: StoreError.noStore(path: directory.path)) {
      try Store(directory.path, configuration, readOnly: readOnly)
    }
    #expect(throws: StoreError.noStore(path: directory.path)) {
      try Store.verify(path: directory.path)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
  }

  @Test("If the parent of a path is missing, the error is a system error that names it")
  func noParent() {
    let error = storeError { _ = try Store(directory("missing/store")) }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.path == directory("missing/store"))
    #expect(failure.errorNumber == ENOENT)
  }

  @Test("A file in the store's place is not a store")
  func file() throws {
    try writeFile(directory.store, [1, 2, 3])
    guard case .notAStore(directory.store, _) = storeError({ _ = try Store(directory.store) })
    else {
      Issue.record("opened")
      return
    }
    #expect(try readFile(directory.store) == [1, 2, 3])
  }

  @Test(
    "A directory in which a power cut kept other names than the manifest's becomes a store",
    arguments: ["FOLLOW", "RESERVE", "MANIFEST.next"])
  func withoutManifest(name: String) throws {
    let directory = try TemporaryDirectory()
    try check("mkdir", unsafe mkdir(directory.store, 0o700))
    try writeFile(directory.store + "/LOCK", [])
    try writeFile("\(directory.store)/\(name)", [UInt8](repeating: 7, count: 5000))
    #expect(
      storeError { _ = try Store(directory.store, readOnly: true) }
        == .noStore(path: directory.store))
    let store = try Store.announcing(directory.store)
    try store.setValue("v", forKey: "key")
    #expect(try Store.following(directory.store).text("key") == "v")
    try store.close()
    #expect(try Store(directory.store).text("key") == "v")
  }

  @Test("A directory with other contents is refused and left unchanged")
  func foreign() throws {
    try Image().write(to: directory.store)
    // No terminal may obey a file name in a message.
    try writeFile(directory.store + "/\u{1B}[2Jnotes", [1])
    let listing = try DirectoryListing(of: directory.store)
    let expected = StoreError.notAStore(
      path: directory.store, reason: "it holds \"\\x1B[2Jnotes\" and no MANIFEST")
    #expect(throws: expected) { try Store(directory.store) }
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("The root of a mount, with lost+found in it, can become a store or a copy of one")
  func lostAndFound() throws {
    for path in [directory.store, directory("copy")] {
      try Image().write(to: path)
      try check("mkdir", unsafe mkdir(path + "/lost+found", 0o700))
    }
    let store = try Store(directory.store)
    try store.setValue("v", forKey: "key")
    try store.backup(to: directory("copy"))
    try store.close()
    for path in [directory.store, directory("copy")] {
      let second = try Store(path)
      #expect(try second.text("key") == "v")
      #expect(try second.statistics().recovery.quarantinedFiles.isEmpty)
      try second.close()
      #expect(unsafe access(path + "/lost+found", F_OK) == 0)
    }
  }

  @Test("An existing empty directory can become a store, even by a path with a trailing slash")
  func existingDirectory() throws {
    try Image().write(to: directory.store)
    try Store(directory.store + "/").setValue("v", forKey: "key")
    #expect(try Store(directory.store).text("key") == "v")
  }
}
