import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("Regression: segments and the manifest")
struct RegressionSegmentTests {
  @Test("A failure to end a segment leaves a store that goes on and survives a kill")
  func failedRoll() throws {
    // The roll record had no room in a resumed segment. The write failed, but the next segment
    // was counted as active all the same, and a later clean close listed a log with a gap.
    let scene = try RegressionScene()
    let first = try scene.open()
    for index in 0..<160 { try first.setValue([UInt8].filled(300), forKey: "key\(index)") }
    try first.close()
    let store = try scene.open()
    let isFull = Mutex(true)
    scene.fileSystem.setHook { event in
      guard event.call == .allocate, event.file == RegressionScene.segment else { return nil }
      return isFull.withLock { $0 } ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) { try store.setValue([UInt8].filled(30_000), forKey: "m") }
    isFull.withLock { $0 = false }
    try store.setValue([UInt8].filled(30_000), forKey: "m", durability: .durable)
    try store.setValue("z", forKey: "z", durability: .durable)

    let again = try scene.killed().open(readOnly: true)
    #expect(try again.value(forKey: "m") == [UInt8].filled(30_000))
    #expect(try again.count() == 162)
    try store.close()
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test("A large value and a removal of all at once leave a store that opens", arguments: 0..<5)
  func ownSegmentBesideRemoval(attempt: Int) throws {
    // The large value's segment was made for a session that the removal had ended meanwhile: the
    // manifest stayed without an active segment, the acknowledged value was lost, or the store
    // did not open.
    let scene = try RegressionScene()
    let store = try scene.open()
    for index in 0..<130 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    // A job that makes the next segment holds the manifest's lock.
    let gate = Gate()
    scene.fileSystem.setHook { event in
      if event.call == .open, event.file.hasPrefix("seg-") { gate.passOnce() }
      return nil
    }
    let job = Background { scene.queue.runAll(dueAfter: .zero) }
    try gate.waitForArrival()
    let removal = Background { try? store.removeAll() }
    removal.waitUntilBlocked()
    let isStored = Mutex(false)
    let writer = Background {
      let version = try? store.setValue(
        [UInt8].filled(200_000), forKey: "big", durability: .durable)
      isStored.withLock { $0 = version != nil }
    }
    writer.waitUntilBlocked()
    gate.open()
    #expect(job.finishes() && removal.finishes() && writer.finishes())
    #expect(isStored.withLock { $0 })
    let isThere = try store.contains("big")
    let again = try scene.killed().open()
    #expect(try again.contains("big") == isThere)
    #expect(try again.statistics().recovery.quarantinedFiles == [])
  }

  @Test("A segment is sealed no more once a removal of all took it away")
  func sealingBesideRemoval() throws {
    // The sealer waited for a sync to reach a segment that no sync would ever reach again: it
    // spun for ever, and took the background queue with it.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("a", forKey: "a")
    let gate = Gate()
    scene.fileSystem.setHook { event in
      if event.call == .synchronizeData { gate.passOnce() }
      return nil
    }
    let syncer = Background { try? store.sync() }
    try gate.waitForArrival()
    for index in 0..<300 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    let sealer = Background { scene.queue.runAll(dueAfter: .zero) }
    sealer.waitUntilBlocked()
    try store.removeAll()
    gate.open()
    #expect(syncer.finishes())
    #expect(sealer.finishes())
    try store.setValue("b", forKey: "b")
    #expect(try store.count() == 1)
  }

  @Test("Nothing changes the manifest after a close has returned", arguments: 0..<10)
  func writeBesideClose(attempt: Int) throws {
    // A writer that waited for the manifest's lock got it after the close had given the store's
    // lock up, and began a session in a store that another process might have open.
    let scene = try RegressionScene()
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

  @Test(
    "No write is acknowledged while a removal of all fails to become durable", arguments: 0..<10)
  func writeBesideFailedRemoval(attempt: Int) throws {
    // The directory's sync failed after the rename, and until that was noted writers went on in
    // segments that the manifest on disk no longer listed: acknowledged, and gone after a kill.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a")
    let isRenamed = Mutex(false)
    let writers = Mutex<[Background]>([])
    let stored = Mutex<[String]>([])
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isRenamed.withLock { $0 = true } }
      guard event.call == .synchronize, isRenamed.withLock({ $0 }),
        writers.withLock({ $0.isEmpty })
      else { return nil }
      for index in 0..<4 {
        let writer = Background {
          let key = "new\(index)"
          if (try? store.setValue("x", forKey: key)) != nil { stored.withLock { $0.append(key) } }
        }
        writers.withLock { $0.append(writer) }
        writer.waitUntilBlocked()
      }
      return EIO
    }
    #expect(throws: StoreError.self) { try store.removeAll() }
    for writer in writers.withLock({ $0 }) { #expect(writer.finishes()) }
    #expect(throws: StoreError.self) { try store.setValue("x", forKey: "later") }
    let again = try scene.killed().open()
    for key in stored.withLock({ $0 }) { #expect(try again.contains(key), "\(key)") }
  }

  @Test("An open makes the directory durable before it removes what the manifest allows")
  func syncBeforeSweep() throws {
    // A process died between the rename of the manifest and the sync of the directory. The next
    // one removed files by that manifest; a power loss then kept the removal and undid the rename.
    let scene = try RegressionScene()
    let store = try scene.open { $0.durability = .durable }
    try store.setValue("1", forKey: "a")
    let isRenamed = Mutex(false)
    let copy = Mutex<RegressionScene?>(nil)
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isRenamed.withLock { $0 = true } }
      if event.call == .synchronize, isRenamed.withLock({ $0 }), copy.withLock({ $0 == nil }) {
        let killed = try? scene.killed()
        copy.withLock { $0 = killed }
      }
      return nil
    }
    try store.removeAll()
    let killed = try #require(copy.withLock { $0 })
    let calls = Mutex<[String]>([])
    let path = killed.path
    killed.fileSystem.setHook { event in
      if event.call == .unlink { calls.withLock { $0.append("unlink") } }
      if event.call == .synchronize, event.file == path { calls.withLock { $0.append("sync") } }
      return nil
    }
    _ = try killed.open()
    let made = calls.withLock { $0 }
    #expect(made.contains("unlink"))
    #expect(made.first == "sync")
  }

  @Test("A large value that cannot be listed leaves no file")
  func failedOwnSegment() throws {
    // The segment's file was made and allocated, the manifest could not be, and the file stayed:
    // on a full disk each try took as much as the value again.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a")
    scene.fileSystem.setHook { event in
      event.call == .allocate && event.file == "MANIFEST.next.new" ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) { try store.setValue([UInt8].filled(1 << 20), forKey: "big") }
    // The next segment is there already.
    #expect(
      try scene.names().filter { $0.hasPrefix("seg-") }.sorted()
        == [RegressionScene.segment, "seg-0000000000000002"])
    scene.fileSystem.setHook(nil)
    try store.setValue([UInt8].filled(1 << 20), forKey: "big")
    #expect(try scene.killed().open().count() == 2)
  }

  @Test("The manifest forgets the ids of segments that are gone for good")
  func retiredIDs() throws {
    // They were kept for ever: each removal of all made every later manifest longer.
    let scene = try RegressionScene()
    for _ in 0..<3 {
      let store = try scene.open()
      for _ in 0..<30 {
        try store.setValue("1", forKey: "a")
        try store.removeAll()
      }
      try store.close()
      #expect(try scene.manifest().retiredIDs.count <= 2)
    }
  }

  @Test("A manifest that could not be prepared does not make the ids of gone segments stay")
  func retiredIDsAfterFailure() throws {
    // Which files were unlinked was forgotten before the replacement was known to work out, so
    // their ids stayed in every manifest until the store was opened anew.
    let scene = try RegressionScene()
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

  @Test("A close beside a failure lists every segment or throws")
  func closeBesideFailure() throws {
    // A job that makes the next segment failed beside the close. The close then sealed nothing, for
    // the failure, and listed the active segment alone as all there is: the next open moved the
    // others, acknowledged entries and all, into quarantine.
    let scene = try RegressionScene()
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

  @Test("A close of a poisoned store waits for who is just making the next segment")
  func poisonedClose() throws {
    // It gave up the lock, and the segment was made, or removed, in the next session's directory.
    let scene = try RegressionScene()
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
}
