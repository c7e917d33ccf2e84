import CairnLibC
import FuzzSupport
import Synchronization
import Testing

@testable import CairnStore

@Suite("Removing everything during other work")
struct RemoveAllBesideTests {
  @Test("If other writes use all the numbers left to them, a removal of all begins again")
  func manyNumbers() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "first")
    let syncCount = Mutex(0)
    scene.fileSystem.setHook { event in
      guard event.call == .synchronize, event.file == FileName.newManifest else { return nil }
      if syncCount.withLock({ count in
        count += 1
        return count == 1
      }) {
        store.engine.log.withLock { $0.nextSequence += 1 << 30 }
      }
      return nil
    }
    try store.removeAll()
    scene.fileSystem.setHook(nil)
    #expect(syncCount.withLock { $0 } == 2)
    let version = try store.setValue("new", forKey: "key")
    #expect(version > 1 << 31)
    #expect(try store.contents() == ["key": Array("new".utf8)])
    try store.close()
    #expect(try scene.open().count() == 1)
  }

  @Test("A seal in progress during a removal of all finishes")
  func duringSealing() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "first")
    // One thread syncs the segment as it is now, and is held up inside …
    let gate = Gate()
    scene.fileSystem.setWatch { if $0 == .synchronizeData { gate.passOnce() } }
    let syncer = Background { try store.sync() }
    try gate.waitForArrival()
    // … while the segment gets more records and is rolled; another thread begins to seal it …
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
    }
    let sealer = Background { scene.queue.runAll(dueAfter: .zero) }
    try waitUntil { scene.queue.delays.allSatisfy { $0 > .zero } }
    sealer.waitUntilBlocked()
    // … and everything is removed.
    try store.removeAll()
    gate.open()
    #expect(syncer.finishes())
    #expect(sealer.finishes())
    #expect(syncer.error == nil)
    try store.setValue("b", forKey: "b")
    #expect(try store.count() == 1)
  }

  @Test("A large value and a concurrent removal of all leave a store that opens", arguments: 0..<5)
  func ownSegmentBesideRemoval(attempt: Int) throws {
    // The large value's segment is made for a session that the removal ends meanwhile.
    let scene = try StoreScene()
    let store = try scene.open()
    for index in 0..<130 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    // A job makes the next segment at a place that the removal takes away.
    let gate = Gate()
    scene.fileSystem.setHook { event in
      if event.call == .open, event.file.hasPrefix("seg-") { gate.passOnce() }
      return nil
    }
    let job = Background { scene.queue.runAll(dueAfter: .zero) }
    try gate.waitForArrival()
    let removal = Background { try store.removeAll() }
    // It waits only for the job, after the exchange.
    try waitUntil { try store.count() == 0 }
    let isStored = Mutex(false)
    let writer = Background {
      let version = try? store.setValue(
        [UInt8].filled(200_000), forKey: "big", durability: .durable)
      isStored.withLock { $0 = version != nil }
    }
    writer.waitUntilBlocked()
    gate.open()
    #expect(job.finishes() && writer.finishes() && removal.finishes() && removal.error == nil)
    #expect(isStored.withLock { $0 })
    for index in 0..<300 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    let killed = try scene.killed()
    #expect(try killed.open().count() == 301)
    let again = try killed.killed().open()
    #expect(try again.contains("big"))
    #expect(try again.statistics().recovery.quarantinedFiles == [])
  }

  @Test(
    "No write is acknowledged while a removal of all fails to become durable", arguments: 0..<10)
  func writeBesideFailedRemoval(attempt: Int) throws {
    // The directory's sync fails after the exchange. Until the failure is recorded, writers must
    // not continue in segments that the manifest on disk no longer lists.
    let scene = try StoreScene()
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

  /// Found by CrashFuzzer: the sync left out what the removal had taken, but reported it as
  /// durable.
  @Test("A removal of all during a sync is durable, and so is the sync")
  func inSync() throws {
    for seed in 0..<30 as Range<UInt64> {
      let disk = SimulatedDisk()
      let process = SimulatedProcess.start(on: disk, seed: seed)
      let store = try process.open(.simulated(ManualClock()))
      try store.setValue([0], forKey: "key 0", durability: .process)
      // Some segments wait for their sync.
      for number in 0..<100 {
        try store.setValue(
          [UInt8](repeating: 1, count: 2000), forKey: "key \(number)", durability: .process)
      }
      var isFirst = true
      process.fileSystem.intervene = { call in
        guard call == .synchronizeData, isFirst else { return nil }
        isFirst = false
        do { try store.removeAll() } catch { Issue.record("\(error)") }
        return nil
      }
      try store.sync()
      #expect(!isFirst)
      process.kill()
      var cut = RandomCut(FuzzRandom(seed: seed))
      let after = SimulatedProcess.start(on: disk.afterPowerCut(&cut), seed: seed)
      let count = try after.open(.simulated(ManualClock())).count()
      #expect(count == 0, "seed \(seed)")
      after.kill()
    }
  }

  @Test("Writes do not wait for the names of a removal of all; a durable one syncs them itself")
  func unsettledNames() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("v", forKey: "key")
    // No name but that of the manifest is left to sync.
    try store.sync()
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
    let removal = Background { try store.removeAll() }
    try gate.waitForArrival()
    let durable = Background {
      let isRemoved = try store.removeValue(forKey: "key", durability: .durable)
      #expect(!isRemoved)
    }
    durable.waitUntilBlocked()
    #expect(!durable.finishes(within: 0))
    for number in 0..<50 { try store.setValue([UInt8].filled(5000), forKey: "key \(number)") }
    #expect(syncCount.withLock { $0 } == 1)
    gate.open()
    #expect(removal.finishes() && removal.error == nil)
    #expect(durable.finishes() && durable.error == nil)
    #expect(syncCount.withLock { $0 } == 2)
    scene.fileSystem.setHook(nil)
    try store.close()
  }
}
