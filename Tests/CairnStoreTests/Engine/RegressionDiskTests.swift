import CairnStore
import Foundation
import FuzzSupport
import Glibc
import Synchronization
import Testing

@Suite("Regression: full disks, intervals and who owns what")
struct RegressionDiskTests {
  /// A store that was left with some entries, and a disk that is full since.
  private func fullDisk(closed: Bool) throws -> RegressionScene {
    let scene = try RegressionScene()
    let store = try scene.open()
    for index in 0..<300 { try store.setValue([UInt8].filled(100), forKey: "key\(index)") }
    if closed { try store.close() }
    let left = try scene.killed()
    left.fileSystem.fillDisk()
    return left
  }

  @Test("After a close, a value can be removed on a full disk")
  func removeOnFullDisk() throws {
    // The close cut the segment at its last record, so the tombstone that would have made room
    // needed room itself.
    let scene = try fullDisk(closed: true)
    let store = try scene.open()
    #expect(try store.removeValue(forKey: "key1"))
    #expect(try scene.killed().open().count() == 299)
  }

  @Test("A write that found no room does not take a removal's room away")
  func removeAfterFailedWrite() throws {
    // A failed allocation was undone by cutting the file at what this session had allocated, which
    // gave up the blocks that the close had left for removals.
    let scene = try fullDisk(closed: true)
    let store = try scene.open()
    #expect(throws: StoreError.self) { try store.setValue([UInt8].filled(20_000), forKey: "new") }
    // What was given back, someone else took. This is more than what the last block had left.
    scene.fileSystem.fillDisk()
    for index in 0..<200 { #expect(try store.removeValue(forKey: "key\(index)")) }
  }

  @Test(
    "Everything can be removed on a full disk, after a close and after a kill",
    arguments: [true, false])
  func removeAllOnFullDisk(closed: Bool) throws {
    // The switch needs a new manifest, and there was no room for it: the reserve had not been made,
    // or a recovery had used it up.
    let scene = try fullDisk(closed: closed)
    let store = try scene.open()
    // What the open gave back, someone else took.
    scene.fileSystem.fillDisk()
    #expect(try store.count() == 300)
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test(
    "After a kill that left no reserve, some blocks are room enough to remove everything by name")
  func removeInLastBlocks() throws {
    // The first segment of the session took 16 KiB or was not made.
    let scene = try fullDisk(closed: false)
    try Data().write(to: scene.url(FileName.reserve))
    let store = try scene.open()
    scene.fileSystem.fillDisk(leaving: 8 << 10)
    for index in 0..<300 { #expect(try store.removeValue(forKey: "key\(index)")) }
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test("A compaction by hand gives back what is dead though no segment can be sealed at first")
  func compactionBeforeSealing() throws {
    // A manifest that got longer than a block found no second one. It was to seal segments, which comes first;
    // the compaction gave up, though half of the log was dead and would have made the manifest shorter.
    let fileSystem = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small(), fileSystem: fileSystem, background: queue)
    let value = [UInt8].filled(1000)
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    queue.runAll()
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    let before = try store.statistics()
    #expect(before.deadByteCount > 300_000)
    let refusals = Mutex(0)
    fileSystem.setHook { event in
      guard event.call == .allocate, event.file == FileName.newManifest else { return nil }
      return refusals.withLock { count in
        count += 1
        // One for the segment that is to follow the one that is written to, and one to seal the first.
        return count <= 2 ? SystemError.noSpace : nil
      }
    }
    let report = try store.compact()
    #expect(refusals.withLock { $0 } > 2)
    #expect(report.removedSegmentCount > 3)
    let after = try store.statistics()
    #expect(after.deadByteCount < before.deadByteCount / 20)
    // The segments of the second pass were sealed after all.
    #expect(after.segments.count { !$0.isSealed } <= 2)
    #expect(try store.contents().count == 300)
    // Where there never is room, who asks is told.
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    fileSystem.setHook { event in
      event.call == .allocate && event.file == FileName.newManifest ? SystemError.noSpace : nil
    }
    guard case .noSpace? = storeError({ try store.compact() }) else {
      Issue.record("no error")
      return
    }
    fileSystem.setHook(nil)
    #expect(try store.compact().removedSegmentCount > 3)
    #expect(try store.contents().count == 300)
  }

  @Test("Everything can be removed though others take every block that is given back")
  func removeAllBesideOthers() throws {
    // A manifest was put in place by a rename, which freed the blocks of the one before, and the
    // space for the next was taken after that. Where the disk became full just then it was gone,
    // and nothing could be removed that would have made room.
    let scene = try fullDisk(closed: false)
    let fileSystem = scene.fileSystem
    fileSystem.setHook { [weak fileSystem] _ in
      fileSystem?.fillDisk()
      return nil
    }
    let store = try scene.open()
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test("Everything can be removed where the disk is full once the manifest has outgrown a block")
  func removeAllAfterGrowth() throws {
    // As before, but what the manifest before has left is a block less than what this one takes.
    let scene = try RegressionScene()
    let store = try scene.open()
    let fileSystem = scene.fileSystem
    let spare = scene.path + "/MANIFEST.new"
    let isFull = Mutex(false)
    fileSystem.setHook { [weak fileSystem] event in
      guard event.call == .exchange, let bytes = FileManager.default.contents(atPath: spare),
        bytes.count > 4096
      else { return nil }
      isFull.withLock { $0 = true }
      fileSystem?.fillDisk()
      return nil
    }
    for index in 0..<200 where !isFull.withLock({ $0 }) {
      try store.setValue([UInt8].filled(50_000), forKey: "key\(index)")
      scene.queue.runAll(dueAfter: .zero)
    }
    try #require(isFull.withLock { $0 })
    #expect(try scene.bytes(of: "MANIFEST").count > 4096)
    // What the removal of a segment's rest gave back, someone else took.
    fileSystem.fillDisk()
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test("A store works where two names cannot be exchanged", arguments: [EINVAL, ENOSYS])
  func withoutExchange(number: Int32) throws {
    let scene = try RegressionScene()
    scene.fileSystem.setHook { $0.call == .exchange ? number : nil }
    let store = try scene.open()
    for index in 0..<300 { try store.setValue([UInt8].filled(1000), forKey: "key\(index)") }
    scene.queue.runAll(dueAfter: .zero)
    #expect(try scene.killed().open().count() == 300)
    try store.removeAll()
    try store.setValue("1", forKey: "a")
    try store.close()
    #expect(try scene.open().count() == 1)
  }

  @Test("After a failed sync the manifest that may be the one on disk is not written over")
  func spareAfterFailedSync() throws {
    // The kernel forgets a sync that failed, and the next one succeeds and means nothing. On disk
    // the manifest may then still be the file that is called the spare.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a")
    let isExchanged = Mutex(false)
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isExchanged.withLock { $0 = true } }
      return event.call == .synchronize && isExchanged.withLock { $0 } ? EIO : nil
    }
    #expect(throws: StoreError.self) { try store.removeAll() }
    #expect(try !scene.names().contains("MANIFEST.new"))
  }

  @Test("Signals that come faster than space is allocated do not keep it from being allocated")
  func interruptedAllocation() throws {
    // An allocation that a signal interrupted was begun again as a whole, for ever under a timer:
    // Linux before 6.10 undoes it then in tmpfs.
    let scene = try RegressionScene()
    let store = try scene.open()
    let interruptions = Mutex(0)
    scene.fileSystem.setHook { event in
      guard event.call == .allocate, event.byteCount > 32_768 else { return nil }
      return interruptions.withLock { count in
        count += 1
        return count < 1000 ? EINTR : ENOSPC
      }
    }
    try store.setValue([UInt8].filled(1_000_000), forKey: "a")
    #expect(interruptions.withLock { $0 } > 0)
    #expect(try scene.killed().open().count() == 1)
  }

  @Test("An open that fails gives the lock up though a process just being spawned holds it too")
  func lockAfterFailedOpen() throws {
    // Until it runs its program, a process that any thread spawns has a copy of every descriptor.
    // A failed open only closed its own, and the next one found the store open elsewhere.
    let scene = try RegressionScene()
    try scene.open().setValue("1", forKey: "a")
    let path = scene.path + "/LOCK"
    let copy = Mutex<Int32>(-1)
    scene.fileSystem.setHook { event in
      guard event.call == .open, event.file == RegressionScene.segment else { return nil }
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

  @Test("A write with a shorter interval does not wait for a longer one")
  func intervals() throws {
    // A sync that was due in an hour stood for all: a write that asked for 10 ms got the hour.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a", durability: .interval(.seconds(3600)))
    try store.setValue("1", forKey: "b", durability: .interval(.milliseconds(10)))
    #expect(scene.queue.delays.contains(.milliseconds(10)))
  }

  @Test("A closed store is freed though a sync of an hour's interval waits")
  func closedStoreIsFreed() throws {
    // The job held the engine, and with it index, mappings and descriptors, until its time came.
    let scene = try RegressionScene()
    do {
      let store = try scene.open()
      try store.setValue("1", forKey: "a", durability: .interval(.seconds(3600)))
      scene.queue.runAll(dueAfter: .zero)
      try store.close()
    }
    scene.fileSystem.awaitClosing()
    #expect(scene.fileSystem.openDescriptorCount == 0)
  }

  @Test("A new store's directory is made durable also where it existed before")
  func parentOfExistingDirectory() throws {
    // Only a directory that the open had made itself was synced into its parent. One that a run
    // before had made and not synced could go in a power loss with all that was acknowledged.
    let scene = try RegressionScene()
    try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: false)
    let calls = Mutex<[String]>([])
    scene.fileSystem.setHook { event in
      if event.call == .synchronize && event.file.hasSuffix("/..") {
        calls.withLock { $0.append("parent") }
      }
      if event.call == .rename { calls.withLock { $0.append("manifest") } }
      return nil
    }
    _ = try scene.open()
    #expect(calls.withLock { $0.prefix(2) } == ["parent", "manifest"])
  }

  @Test(
    "A store is made in a directory whose parent cannot be synced", arguments: [EACCES, EINVAL])
  func parentThatCannotBeSynced(number: Int32) throws {
    // A mount point under a read-only image (fsync: EINVAL) or a directory that was provided in a
    // parent one may only pass through (open: EACCES): its name is not the store's to make durable.
    let scene = try RegressionScene()
    try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: false)
    scene.fileSystem.setHook { event in
      guard event.file.hasSuffix("/..") else { return nil }
      return event.call == (number == EACCES ? .openDirectoryAtPath : .synchronize) ? number : nil
    }
    try scene.open().setValue("1", forKey: "a")
  }

  @Test(
    "Root does not write into another user's store",
    .enabled(if: geteuid() == 0, "only root can give files away"))
  func otherUsersStore() throws {
    // Root could open it, and left files of its own there: the owner was locked out for good.
    let scene = try RegressionScene()
    let first = try scene.open()
    try first.setValue("1", forKey: "a")
    try first.close()
    for name in try scene.names() + ["."] {
      try FileManager.default.setAttributes(
        [.ownerAccountID: 1234], ofItemAtPath: "\(scene.path)/\(name)")
    }
    let before = try scene.names().sorted()
    #expect {
      try scene.open()
    } throws: {
      if case StoreError.unsafeFile = $0 { true } else { false }
    }
    #expect(try scene.names().sorted() == before)
    #expect(try scene.open(readOnly: true).count() == 1)
  }

  @Test("Every file has mode 0600 whatever the umask")
  func modes() async {
    // LOCK was made without the change of mode that the other files got: under a umask of 0777 its
    // own maker could not open it again.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      umask(0o777)
      let store = try scene.open()
      try store.setValue("1", forKey: "a")
      for name in try scene.names() {
        let attributes = try FileManager.default.attributesOfItem(atPath: scene.url(name).path)
        #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
      }
      let attributes = try FileManager.default.attributesOfItem(atPath: scene.path)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
  }
}
