import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// Syncs, writes and exchanges that fail.
extension DurabilityTests {
  /// It once poisoned the store, though the old manifest was in place and intact.
  @Test(
    "A failed write of a manifest that is not in place yet changes nothing",
    arguments: [FaultyFileSystem.Call.write, .truncate])
  func failedWriteOfSpareManifest(call: FaultyFileSystem.Call) throws {
    let store = try open()
    system.setHook { $0.call == call && $0.file == "MANIFEST.new" ? EIO : nil }
    guard case .system(let failure) = storeError({ try store.checkpoint() }) else {
      Issue.record("no error")
      return
    }
    #expect(failure.errorNumber == EIO)
    try store.setValue("v", forKey: "second")
    system.setHook(nil)
    try store.checkpoint()
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
    let again = try Store(directory.store)
    #expect(try again.statistics().recovery.source == .checkpoint)
    #expect(try again.count() == 2)
    try again.close()
  }

  @Test(
    "After a failed sync, the write is unknown, later writes are refused, and reads continue",
    arguments: [EIO, ENOSPC, EDQUOT])
  func failedSync(number: Int32) throws {
    let store = try open()
    try store.setValue("before", forKey: "key", durability: .durable)
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: number))
    guard
      case .durabilityUnknown(let cause) = storeError({
        try store.setValue("v", forKey: "other", durability: .durable)
      })
    else {
      Issue.record("not durabilityUnknown")
      return
    }
    #expect(cause.path.hasPrefix(directory.store + "/seg-"))
    let writes: [() throws -> Void] = [
      { try store.setValue("v", forKey: "key") },
      { try store.setValue("v", forKey: "key", durability: .durable) },
      { try store.removeValue(forKey: "key") },
      { try store.write { try $0.setValue("v", forKey: "key") } },
      { try store.removeAll() },
      { _ = try store.compareAndSet("v", forKey: "new", expecting: nil) },
    ]
    for (index, write) in writes.enumerated() {
      guard case .poisoned(let again) = storeError(write) else {
        Issue.record("write \(index) was not refused")
        continue
      }
      #expect(again == cause)
    }
    #expect(try store.text("key") == "before")
    #expect(try store.count() == 3)
    // Nothing is synced again, neither by sync nor in the background nor by close.
    #expect(storeError { try store.sync() } != nil)
    queue.runAll()
    guard case .poisoned = storeError({ try store.close() }) else {
      Issue.record("close does not tell")
      return
    }
    #expect(system.count(of: .synchronizeData) == 1)
    #expect(system.count(of: .synchronize) == 0)
    // A reopen recovers the store.
    let again = try Store(directory.store)
    #expect(try again.statistics().recovery.wasClean == false)
    #expect(try again.text("key") == "before")
    try again.setValue("after", forKey: "key")
  }

  @Test("All writers that wait for a sync throw if it fails")
  func failedGroup() throws {
    let store = try open(.durable)
    let before = try store.statistics().lastVersion
    let gate = Gate()
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO))
    system.setWatch { if $0 == .synchronizeData { gate.passOnce() } }
    let first = Background { try store.setValue("v", forKey: "key0") }
    try gate.waitForArrival()
    let others = (1..<8).map { index in
      Background { try store.setValue("v", forKey: "key\(index)") }
    }
    try waitUntil { try store.statistics().lastVersion == before + 8 }
    gate.open()
    for writer in [first] + others {
      #expect(writer.finishes())
      guard case .durabilityUnknown = writer.error as? StoreError else {
        Issue.record("\(String(describing: writer.error))")
        continue
      }
    }
    #expect(system.count(of: .synchronizeData) == 1)
  }

  @Test("A sync that fails in the background also poisons the store")
  func failedInterval() throws {
    let store = try open(.interval(.seconds(1)))
    try store.setValue("v", forKey: "key")
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO))
    queue.runAll()
    guard case .poisoned = storeError({ try store.setValue("v", forKey: "key") }) else {
      Issue.record("not poisoned")
      return
    }
    #expect(try store.text("key") == "v")
  }

  @Test("A write that a poisoned store refuses schedules no work")
  func refusedWrites() throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.durability = .process }
    // Leaves a segment to seal, and an active one without a next one.
    for number in 0..<40 { try store.setValue([UInt8].filled(3000), forKey: "\(number)") }
    scene.fileSystem.setHook { $0.call == .synchronizeData ? EIO : nil }
    guard case .durabilityUnknown = storeError({ try store.sync() }) else {
      Issue.record("the sync does not fail")
      return
    }
    scene.queue.runAll(dueAfter: .zero)
    let count = scene.queue.delays.count
    for _ in 0..<3 {
      guard case .poisoned = storeError({ try store.setValue("v", forKey: "key") }) else {
        Issue.record("not poisoned")
        return
      }
    }
    #expect(scene.queue.delays.count == count)
  }

  @Test("A sync that fails at close is reported, and the next open recovers")
  func failedClose() throws {
    let store = try open()
    try store.setValue("v", forKey: "key")
    system.arm(.init(call: .synchronizeData, index: 0, errorNumber: EIO))
    guard case .durabilityUnknown = storeError({ try store.close() }) else {
      Issue.record("close does not tell")
      return
    }
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.statistics().recovery.wasClean == false)
    #expect(try again.text("key") == "v")
  }

  @Test(
    "A manifest that may or may not be in place poisons the store",
    arguments: [FaultyFileSystem.Call.exchange, .synchronize])
  func failedManifest(call: FaultyFileSystem.Call) throws {
    let store = try open()
    try store.setValue("v", forKey: "key")
    // The last sync of a replacement is that of the directory.
    let index = call == .exchange ? 0 : 1
    system.arm(.init(call: call, index: index, errorNumber: EIO, takesEffect: true))
    guard case .poisoned = storeError({ try store.removeAll() }) else {
      Issue.record("removeAll did not fail")
      return
    }
    guard case .poisoned = storeError({ try store.setValue("w", forKey: "key") }) else {
      Issue.record("not poisoned")
      return
    }
    #expect(storeError { try store.close() } != nil)
    // Either everything or nothing was removed.
    let count = try Store(directory.store).count()
    #expect(count == 0 || count == 2)
  }

  @Test(
    "A write that fails and cannot be undone leaves a usable store: the next one cuts it off first",
    arguments: [EIO, EDQUOT, ENOSPC])
  func undoFails(errorNumber: Int32) throws {
    // btrfs has no room for a truncation either once it is full.
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "key", durability: .durable)
    scene.fileSystem.setHook { event in
      switch event.call {
      case .write where FileName.isSegment(event.file): ENOSPC
      case .truncate where FileName.isSegment(event.file): errorNumber
      default: nil
      }
    }
    // The write takes effect, but reports an error: all its bytes remain.
    scene.fileSystem.arm(.init(call: .write, index: 0, errorNumber: ENOSPC, takesEffect: true))
    for _ in 0..<3 {
      let error = storeError {
        try store.write(durability: .durable) { batch in
          for number in 0..<20 { try batch.setValue("long value", forKey: "batch \(number)") }
        }
      }
      switch error {
      case .noSpace: break
      case .system(let failure) where failure.errorNumber == errorNumber: break
      default: Issue.record("\(String(describing: error))")
      }
    }
    scene.fileSystem.arm(nil)
    #expect(try scene.killed().open().count() == 1)
    scene.fileSystem.setHook(nil)
    try store.setValue("1", forKey: "a", durability: .durable)
    let again = try scene.killed().open()
    #expect(try again.statistics().recovery.tornByteCount == 0)
    #expect(try Set(again.keys()) == [Array("key".utf8), Array("a".utf8)])
  }

  @Test(
    "An exchange of manifests that finds no room changes nothing, and the store stays usable",
    arguments: [ENOSPC, EDQUOT],
    ["removeAll", "session", "large value", "large batch", "large compare-and-set"])
  func exchangeWithoutRoom(errorNumber: Int32, act: String) throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.durability = .process }
    func perform() throws {
      switch act {
      case "removeAll": try store.removeAll()
      case "large value": try store.setValue([UInt8].filled(200_000), forKey: "large")
      case "large compare-and-set":
        _ = try store.compareAndSet([UInt8].filled(80_000), forKey: "large", expecting: nil)
      case "large batch":
        try store.write { batch in
          for number in 0..<10_000 { try batch.setValue("v", forKey: "large \(number)") }
        }
      default: try store.setValue("other", forKey: "large")
      }
    }
    if act != "session" { try store.setValue("value", forKey: "key") }
    scene.queue.runAll()
    let before = try store.contents()
    scene.fileSystem.setHook { $0.call == .exchange ? errorNumber : nil }
    let error = storeError { try perform() }
    guard case .noSpace = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try store.contents() == before)
    #expect(try scene.killed().open().contents() == before)
    if act != "session" { try store.setValue("still", forKey: "usable") }
    scene.fileSystem.setHook(nil)
    try perform()
    try store.setValue("more", forKey: "more", durability: .durable)
    let after = try store.contents()
    #expect(try scene.killed().open().contents() == after)
    try store.close()
    #expect(try scene.open().contents() == after)
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test("The remains of a failed write are cut off, so that none of them follow a shorter record")
  func leftByFailedWrite() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "key", durability: .durable)
    scene.fileSystem.arm(.init(call: .write, index: 0, errorNumber: EIO, takesEffect: true))
    let error = storeError {
      try store.write(durability: .durable) { batch in
        for number in 0..<20 { try batch.setValue("long value", forKey: "batch \(number)") }
      }
    }
    guard case .system = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    scene.fileSystem.arm(nil)
    try store.setValue("1", forKey: "a", durability: .durable)
    let again = try scene.killed().open()
    #expect(try again.statistics().recovery.tornByteCount == 0)
    #expect(try Set(again.keys()) == [Array("key".utf8), Array("a".utf8)])
  }

  @Test(
    "After a failed sync, the manifest that may be on disk is not overwritten",
    arguments: [false, true])
  func spareAfterFailedSync(isRemoval: Bool) throws {
    // The kernel forgets a failed sync: the next one succeeds and proves nothing. On disk, the file
    // that is now the spare may then still be the manifest.
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("1", forKey: "a")
    let isExchanged = Mutex(false)
    scene.fileSystem.setHook { event in
      if event.call == .exchange { isExchanged.withLock { $0 = true } }
      return event.call == .synchronize && isExchanged.withLock { $0 } ? EIO : nil
    }
    func number(_ name: String) throws -> UInt64 {
      let attributes = try FileManager.default.attributesOfItem(atPath: scene.url(name).path)
      return try #require(attributes[.systemFileNumber] as? UInt64)
    }
    let old = try number("MANIFEST")
    // While it is open, no new file gets its number.
    let file = try FileHandle(forReadingFrom: scene.url("MANIFEST"))
    #expect(throws: StoreError.self) {
      if isRemoval { try store.removeAll() } else { try store.checkpoint() }
    }
    #expect(isExchanged.withLock { $0 })
    if try scene.names().contains("MANIFEST.new") { #expect(try number("MANIFEST.new") != old) }
    try file.close()
  }
}
