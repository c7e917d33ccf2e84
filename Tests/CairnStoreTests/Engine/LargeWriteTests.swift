import CairnStore
import Foundation
import FuzzSupport
import Glibc
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
    let main = pthread_self()
    scene.fileSystem.setHook { event in
      guard event.file.hasPrefix("seg-"), pthread_equal(pthread_self(), main) == 0 else {
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
      guard event.call == .synchronize, event.file == FileName.newNextManifest else { return nil }
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
        event.call == .allocate && event.file == "MANIFEST.next.new" ? ENOSPC : nil
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

/// A batch that is added to the index while others continue.
@Suite("A batch that is being added to the index")
struct UnpublishedBatchTests {
  static let count = 5000

  @Test("Writes meanwhile find the batch's values and win; a snapshot waits for the whole batch")
  func meanwhile() throws {
    let directory = try TemporaryDirectory()
    let held = Mutex<Store?>(nil)
    let isFirst = Mutex(true)
    let problems = Messages()
    let snapshot = Mutex<Background?>(nil)
    let queue = ManualBackgroundQueue()
    @Sendable func others(_ store: Store) throws {
      for number in stride(from: 0, to: Self.count, by: 50) {
        let version = try store.info(forKey: "key\(number)")?.version
        try store.setValue("put", forKey: "key\(number)")
        if try !store.removeValue(forKey: "key\(number + 1)") { problems.add("not there") }
        // The version from before the batch does not match if the batch's version is seen.
        if let version,
          case .stored = try store.compareAndSet(
            "never", forKey: "key\(number + 2)", expecting: version)
        {
          problems.add("stored")
        }
        if try !store.extendLifetime(forKey: "key\(number + 3)", to: .seconds(1 << 30)) {
          problems.add("not extended")
        }
      }
      snapshot.withLock {
        $0 = Background {
          let snapshot = try store.snapshot()
          for number in 0..<Self.count where number % 50 > 1 {
            if try snapshot.value(forKey: "key\(number)") != Array("new".utf8) {
              problems.add("a part is missing: \(number)")
            }
          }
        }
      }
      snapshot.withLock { $0 }?.waitUntilBlocked()
    }
    let store = try Store(
      path: directory.store,
      configuration: .small {
        $0.segmentByteLimit = 4 << 20
        $0.asideOperationCount = 4000
      },
      environment: Environment(
        fileSystem: SystemFileSystem(), background: queue,
        pause: { _ in
          guard let store = held.withLock({ $0 }),
            isFirst.withLock({ isFirst in
              defer { isFirst = false }
              return isFirst
            })
          else { return }
          do { try others(store) } catch { problems.add("\(error)") }
        }), readOnly: false)
    for number in 0..<Self.count {
      try store.setValue("old", forKey: "key\(number)", lifetime: .seconds(1 << 20))
    }
    held.withLock { $0 = store }
    try store.write { batch in
      for number in 0..<Self.count {
        try batch.setValue("first", forKey: "key\(number)")
        try batch.setValue("new", forKey: "key\(number)", options: .lifetime(.seconds(1 << 20)))
      }
    }
    #expect(!isFirst.withLock { $0 })
    let background = try #require(snapshot.withLock { $0 })
    #expect(background.finishes())
    #expect(background.error == nil)
    #expect(problems.all == [])
    let contents = try store.contents()
    for number in 0..<Self.count {
      let expected: String? = number % 50 == 0 ? "put" : number % 50 == 1 ? nil : "new"
      #expect(contents["key\(number)"] == expected.map { Array($0.utf8) }, "\(number)")
    }
    #expect(try store.auditUsage() == [])
    held.withLock { $0 = nil }
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    queue.runAll()
    try store.close()
    #expect(try Store(directory.store).contents() == contents)
  }

  /// A store whose batches of 100 operations are published in pieces, and code that runs after the
  /// first piece.
  private func withBatch(
    in directory: TemporaryDirectory, meanwhile body: @escaping @Sendable (Store) throws -> Void,
    _ write: (Store) throws -> Void
  ) throws -> Store {
    let next = Mutex<Store?>(nil)
    let problems = Messages()
    let store = try Store(
      path: directory.store, configuration: .small { $0.asideOperationCount = 100 },
      environment: Environment(
        fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
        pause: { _ in
          guard let store = next.withLock({ $0.take() }) else { return }
          do { try body(store) } catch { problems.add("\(error)") }
        }), readOnly: false)
    for number in 0..<20 { try store.setValue("old", forKey: "old\(number)") }
    try store.setValue([UInt8](repeating: 1, count: 40_000), forKey: "filler")
    // Something to compact.
    for _ in 0..<2 { try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "waste") }
    try store.removeValue(forKey: "waste")
    next.withLock { $0 = store }
    try write(store)
    #expect(next.withLock { $0 == nil })
    #expect(problems.all == [])
    return store
  }

  private func removeAndFill(_ store: Store) throws {
    try store.write { batch in
      for number in 0..<4000 { try batch.setValue("new", forKey: "new\(number)") }
      for number in 0..<20 { try batch.removeValue(forKey: "old\(number)") }
    }
  }

  @Test("No compaction begins meanwhile: what the batch removes would reappear after a kill")
  func compaction() throws {
    let directory = try TemporaryDirectory()
    let store = try withBatch(in: directory, meanwhile: { _ = try $0.compact() }, removeAndFill)
    // Afterwards, only the removals of the batch's segment are left.
    for number in 0..<4000 { try store.setValue("newer", forKey: "new\(number)") }
    try store.maintain()
    let contents = try store.contents()
    #expect(contents.count == 4001)
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    try store.close()
  }

  enum Trim: CaseIterable { case count, age, predicate, expired }

  @Test(
    "A trim meanwhile does not remove what the batch has written, not even after a kill",
    arguments: Trim.allCases)
  func trimmed(trim: Trim) throws {
    let directory = try TemporaryDirectory()
    let store = try withBatch(in: directory) { store in
      switch trim {
      case .count: try store.trim(toCount: store.count() - 15)
      case .age: try store.trim(olderThan: .zero, by: .write)
      case .predicate:
        _ = try store.remove { key, _ in key.load(UInt8.self, at: 0) == UInt8(ascii: "o") }
      case .expired: _ = try store.removeExpired()
      }
    } _: { store in
      if trim == .expired {
        for number in 0..<20 {
          try store.setValue("old", forKey: "old\(number)", lifetime: .seconds(0))
        }
      }
      try store.write { batch in
        for number in 0..<4000 { try batch.setValue("new", forKey: "new\(number)") }
        for number in 0..<20 { try batch.setValue("new", forKey: "old\(number)") }
      }
    }
    let contents = try store.contents()
    for number in 0..<20 { #expect(contents["old\(number)"] == Array("new".utf8), "\(number)") }
    #expect(try store.auditUsage() == [])
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    try store.close()
  }

  @Test("A store that is emptied because its directory is gone stays empty")
  func abandoned() throws {
    let directory = try TemporaryDirectory()
    let store = try withBatch(in: directory, meanwhile: { $0.abandon() }, removeAndFill)
    #expect(try store.count() == 0)
    #expect(try store.value(forKey: "new1") == nil)
  }

  @Test("The keys of a batch count as written in its order, whatever the order in the index")
  func order() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(
      directory.store,
      .small {
        $0.segmentByteLimit = 4 << 20
        $0.asideOperationCount = 1000
      })
    try store.write { batch in
      for number in 0..<2000 { try batch.setValue("v", forKey: "key\(number)") }
    }
    try store.trim(toCount: 500)
    #expect(try store.count() == 500)
    for number in 0..<2000 {
      #expect(try store.contains("key\(number)") == (number >= 1500), "\(number)")
    }
    try store.close()
  }
}
