import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Writes so large that others must not wait for them are made outside the log.
@Suite("Large values and batches")
struct LargeWriteTests {
  let scene: StoreScene
  let store: Store

  init() throws {
    scene = try StoreScene()
    store = try scene.open { configuration in
      configuration.asideOperationCount = 100
    }
    try store.setValue("old", forKey: "large")
  }

  /// Holds up the write that follows the header of a file written outside the log.
  func holdUp() -> Gate {
    let gate = Gate()
    let begun = Mutex<Set<String>>([])
    let main = threadNumber()
    scene.fileSystem.setHook { event in
      guard event.file.hasPrefix("seg-"), threadNumber() != main else {
        return nil
      }
      if event.call == .write, !begun.withLock({ $0.insert(event.file).inserted }) {
        gate.passOnce()
      }
      return nil
    }
    return gate
  }

  enum Kind: CaseIterable { case value, batch }

  func write(_ kind: Kind, _ durability: Durability? = nil) throws {
    switch kind {
    case .value:
      try store.setValue(
        [UInt8](repeating: 7, count: 100_000), forKey: "large", durability: durability)
    case .batch:
      try store.write(durability: durability) { batch in
        for number in 0..<200 { try batch.setValue("new", forKey: "member \(number)") }
        try batch.setValue([UInt8](repeating: 7, count: 100_000), forKey: "large")
      }
    }
  }

  func isWritten(_ store: Store, _ kind: Kind) throws -> Bool {
    let isThere = try store.value(forKey: "large") == [UInt8](repeating: 7, count: 100_000)
    let count = try (0..<200).count { try store.text("member \($0)") == "new" }
    #expect(count == (isThere && kind == .batch ? 200 : 0))
    if !isThere { #expect(try store.text("large") == "old") }
    return isThere
  }

  @Test(
    "Others write, read, roll and compact during a large write; a kill then loses only that write",
    arguments: Kind.allCases, [Durability.process, .durable])
  func others(kind: Kind, durability: Durability) throws {
    let gate = holdUp()
    let writer = Background { [self] in try write(kind, durability) }
    try gate.waitForArrival()
    // Enough to fill some segments.
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "small \(number)")
    }
    try store.removeValue(forKey: "small 7")
    try store.setValue("durable", forKey: "small 8", durability: .durable)
    #expect(try store.snapshot().value(forKey: "large") == Array("old".utf8))
    _ = try store.compact()
    #expect(try !isWritten(store, kind))
    let killed = try scene.killed()
    defer { withExtendedLifetime(killed) {} }
    let found = try killed.open()
    #expect(try !isWritten(found, kind))
    #expect(try found.count() == 200)
    #expect(try found.statistics().recovery.quarantinedFiles == [])
    #expect(try found.statistics().recovery.tornByteCount == 0)
    try found.close()
    gate.open()
    #expect(writer.finishes())
    #expect(writer.error == nil)
    #expect(try isWritten(store, kind))
    #expect(try store.text("small 8") == "durable")
    #expect(try store.auditUsage() == [])
    // This process is killed after the large write.
    let killedAfter = try scene.killed()
    defer { withExtendedLifetime(killedAfter) {} }
    let again = try killedAfter.open()
    #expect(try isWritten(again, kind))
    try again.close()
    try store.setValue("after", forKey: "small 9")
    scene.queue.runAll()
    try store.close()
    #expect(try Store.verify(path: scene.path).errors == [])
    let last = try scene.open()
    #expect(try isWritten(last, kind))
    #expect(try last.text("small 9") == "after")
    #expect(try last.value(forKey: "small 7") == nil)
    #expect(try last.statistics().recovery.wasClean)
    try last.close()
  }

  @Test(
    "A removal of all before the end of a large write removes none of it", arguments: Kind.allCases)
  func removalOfAll(kind: Kind) throws {
    let gate = holdUp()
    let writer = Background { [self] in try write(kind) }
    try gate.waitForArrival()
    try store.removeAll()
    gate.open()
    #expect(writer.finishes())
    #expect(writer.error == nil)
    #expect(try isWritten(store, kind))
    #expect(try store.count() == (kind == .batch ? 201 : 1))
    try store.close()
    let again = try scene.open()
    #expect(try isWritten(again, kind))
    try again.close()
  }

  @Test("A close before the end of a large write leaves nothing of it", arguments: Kind.allCases)
  func closed(kind: Kind) throws {
    let gate = holdUp()
    let writer = Background { [self] in try write(kind) }
    try gate.waitForArrival()
    try store.close()
    gate.open()
    #expect(writer.finishes())
    guard case .closed? = writer.error as? StoreError else {
      Issue.record("\(String(describing: writer.error))")
      return
    }
    #expect(try scene.names().filter { $0.hasPrefix("seg-") }.count == 1)
    let again = try scene.open()
    #expect(try !isWritten(again, kind))
    #expect(try again.statistics().recovery.wasClean)
    try again.close()
  }

  @Test("If its condition no longer holds when it is written, a large value leaves nothing")
  func condition() throws {
    let version = try #require(try store.info(forKey: "large")).version
    let gate = holdUp()
    let writer = Background { [store] in
      let result = try store.compareAndSet(
        [UInt8](repeating: 7, count: 100_000), forKey: "large", expecting: version)
      guard case .mismatch = result else { throw SupportError(call: "it was stored", number: 0) }
    }
    try gate.waitForArrival()
    try store.setValue("newer", forKey: "large")
    gate.open()
    #expect(writer.finishes())
    #expect(writer.error == nil)
    #expect(try store.text("large") == "newer")
    // The space claimed for the large value can be used again.
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "small \(number)")
    }
    scene.queue.runAll()
    let killed = try scene.killed()
    defer { withExtendedLifetime(killed) {} }
    let found = try killed.open()
    #expect(try found.count() == 201)
    try found.close()
    try store.close()
    #expect(try Store.verify(path: scene.path).errors == [])
  }

  @Test("A large write finishes, however fast others fill segments", arguments: Kind.allCases)
  func busy(kind: Kind) throws {
    let syncCount = Atomic(0)
    let others = Mutex<[Background]>([])
    scene.fileSystem.setHook { [store] event in
      guard event.call == .synchronize, event.file == FileName.newManifest else { return nil }
      if syncCount.add(1, ordering: .relaxed).newValue > 20 { return EIO }
      let other = Background {
        for number in 0..<80 {
          try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "small \(number)")
        }
      }
      // In the end, another write has to wait.
      _ = other.finishes(within: 1)
      others.withLock { $0.append(other) }
      return nil
    }
    try write(kind)
    scene.fileSystem.setHook(nil)
    #expect(others.withLock { $0 }.allSatisfy { $0.finishes() && $0.error == nil })
    #expect((2...10).contains(syncCount.load(ordering: .relaxed)))
    #expect(try isWritten(store, kind))
    try store.close()
    let again = try scene.open()
    #expect(try isWritten(again, kind))
    try again.close()
  }

  @Test(
    "If it is unknown whether a large write is in the log, a backup has what reads find",
    arguments: Kind.allCases)
  func failedExchange(kind: Kind) throws {
    scene.queue.runAll()
    scene.fileSystem.setHook { $0.call == .exchange ? EIO : nil }
    guard case .poisoned? = storeError({ try write(kind) }) else {
      Issue.record("the names were exchanged")
      return
    }
    scene.fileSystem.setHook(nil)
    let backup = scene.directory("backup")
    try store.backup(to: backup)
    let copy = try Store(backup)
    #expect(try !isWritten(store, kind))
    #expect(try copy.contents() == store.contents())
    try copy.close()
  }

  @Test(
    "Without room, for itself or its manifest, a large write throws noSpace and leaves no file",
    arguments: Kind.allCases, [false, true])
  func noSpace(kind: Kind, isForManifest: Bool) throws {
    scene.queue.runAll()
    if isForManifest {
      scene.fileSystem.setHook { event in
        event.call == .allocate && event.file == "MANIFEST.new" ? ENOSPC : nil
      }
    } else {
      scene.fileSystem.fillDisk()
    }
    guard case .noSpace? = storeError({ try write(kind) }) else {
      Issue.record("there is room")
      return
    }
    #expect(try !isWritten(store, kind))
    let listed = try scene.manifest()
    let ids = listed.openSegments.map(\.id) + listed.sealedSegments.map(\.id)
    let names = Set(ids.map { FileName.segment($0) })
    #expect(names.isSuperset(of: try scene.names().filter { $0.hasPrefix("seg-") }))
    guard isForManifest else { return }
    scene.fileSystem.setHook(nil)
    try write(kind)
    #expect(try isWritten(scene.killed().open(), kind))
  }
}
