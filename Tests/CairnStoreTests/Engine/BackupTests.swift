import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("Backup")
struct BackupTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  var copyPath: String { directory("copy") }

  init() throws { directory = try TemporaryDirectory() }

  func fill(_ store: Store, _ count: Int) throws {
    for number in 0..<count {
      try store.setValue(
        [UInt8](repeating: UInt8(number % 251), count: 100 + number % 900),
        forKey: "key\(number)", options: EntryOptions(cost: number, metadata: [UInt8(number % 256)])
      )
    }
  }

  func entries(_ store: Store) throws -> [[UInt8]: ByteEntry] {
    var entries: [[UInt8]: ByteEntry] = [:]
    try store.forEachEntry { entry in
      entries[entry.key] = entry
      return .next
    }
    return entries
  }

  @Test("A backup is a store with the same entries, which opens at once and is independent")
  func whole() throws {
    let store = try Store(directory.store, .small(clock: clock))
    try fill(store, 400)
    for number in stride(from: 0, to: 400, by: 3) { try store.removeValue(forKey: "key\(number)") }
    try store.setValue("v", forKey: "short", lifetime: .seconds(60))
    let before = try entries(store)
    var phases: [WorkProgress] = []
    let report = try store.backup(to: copyPath) { phases.append($0) }
    #expect(report.entryCount == before.count)
    #expect(report.damage == [])
    #expect(report.version == (try store.statistics().lastVersion))
    #expect(phases.last?.phase == .verifying)
    #expect(phases.last?.completedCount == report.byteCount)
    #expect(try Store.verify(path: copyPath).errors == [])
    let copy = try Store(copyPath, .small(clock: clock))
    let recovery = try copy.statistics().recovery
    #expect(recovery.wasClean)
    #expect(recovery.source == .checkpoint)
    #expect(recovery.replayedRecordCount == 0)
    #expect(try entries(copy).mapValues(\.value) == before.mapValues(\.value))
    #expect(try entries(copy).mapValues(\.info.version) == before.mapValues(\.info.version))
    #expect(try entries(copy).mapValues(\.metadata) == before.mapValues(\.metadata))
    // The store and its copy continue independently.
    try copy.setValue("only here", forKey: "key1")
    #expect(try copy.setValue("w", forKey: "new") > report.version)
    try store.removeAll()
    #expect(try copy.text("key1") == "only here")
    try copy.compact()
    try copy.close()
    #expect(try Store(copyPath, .small(clock: clock)).count() == before.count + 1)
  }

  @Test("A backup has everything from its moment, and nothing written since")
  func moment() throws {
    let store = try Store(directory.store)
    try fill(store, 200)
    let before = try entries(store)
    let snapshot = try store.snapshot()
    try store.setValue("later", forKey: "key1")
    try store.removeValue(forKey: "key2")
    try store.setValue("later", forKey: "new")
    try store.compact()
    try snapshot.backup(to: copyPath)
    snapshot.close()
    let copy = try Store(copyPath)
    #expect(try entries(copy).mapValues(\.value) == before.mapValues(\.value))
    #expect(throws: StoreError.closed(path: directory.store)) {
      try snapshot.backup(to: directory("another"))
    }
  }

  @Test("Writers continue while a backup is made, and it contains no batch partly")
  func writers() throws {
    let store = try Store(directory.store)
    try fill(store, 100)
    let isDone = Atomic(false)
    let writer = Background {
      var round = 0
      while !isDone.load(ordering: .relaxed) {
        round += 1
        let text = "\(round)"
        try store.setValues((0..<20).map { (key: "batch\($0)", value: text) })
        if round % 50 == 0 { try store.compact() }
      }
    }
    for number in 0..<5 {
      try store.backup(to: directory("copy\(number)"))
      let copy = try Store(directory("copy\(number)"))
      let values = try Set((0..<20).map { try copy.text("batch\($0)") })
      #expect(values.count == 1)
      #expect(try copy.contents().keys.filter { $0.hasPrefix("key") }.count == 100)
    }
    isDone.store(true, ordering: .relaxed)
    #expect(writer.finishes())
    #expect(writer.error == nil)
  }

  @Test("A backup keeps the order of accesses")
  func recency() throws {
    let store = try Store(directory.store)
    try fill(store, 50)
    _ = try store.value(forKey: "key3")
    try store.backup(to: copyPath)
    let copy = try Store(copyPath)
    try copy.trim(.toCount(2))
    #expect(try Set(copy.contents().keys) == ["key3", "key49"])
  }

  @Test("A store can be backed up if it is empty, opened for reading, or was killed")
  func kinds() throws {
    do {
      let store = try Store(directory.store)
      try store.backup(to: directory("empty"))
      #expect(try Store(directory("empty")).count() == 0)
      try fill(store, 100)
      try Image(of: directory.store).write(to: directory("killed"))
      try store.close()
    }
    for name in ["store", "killed"] {
      let path = name == "store" ? directory.store : directory(name)
      let before = try Image(of: path)
      let store = try Store(path, readOnly: true)
      try store.backup(to: directory("copy of \(name)"))
      try store.close()
      #expect(try Image(of: path).files == before.files)
      #expect(try Store(directory("copy of \(name)")).count() == 100)
    }
  }

  @Test("A damaged value is reported and copied; a damaged head is refused and leaves nothing")
  func damaged() throws {
    let store = try Store(directory.store)
    // Enough for the close to make a checkpoint, with which an open does not refuse a damaged head.
    try fill(store, 20)
    try store.setValue("first value", forKey: "a")
    try store.setValue("second value", forKey: "b")
    try store.close()
    for (text, isHead) in [("first value", false), ("second value", true)] {
      var image = try Image(of: directory.store)
      let name = try #require(image.segmentNames.first)
      let bytes = try #require(image.files[name])
      let value = try #require(bytes.firstRange(of: Array(text.utf8)))
      // The key comes before the value.
      image.files[name]?[value.lowerBound - (isHead ? 1 : 0)] ^= 1
      let path = directory("damaged \(text)")
      try image.write(to: path)
      let damaged = try Store(path)
      let copy = directory("copy of \(text)")
      if isHead {
        let error = storeError { try damaged.backup(to: copy) }
        #expect(error?.corruption?.file == name)
        #expect(try Image(of: copy).files.isEmpty)
      } else {
        #expect(try damaged.backup(to: copy).damage.map(\.place.file) == [name])
        #expect(storeError { _ = try Store(copy).value(forKey: "a") }?.corruption != nil)
        #expect(try Store(copy).text("b") == "second value")
      }
    }
  }

  @Test("A segment header that is damaged while the store is open is sound in the copy")
  func damagedHeader() throws {
    let store = try Store(directory.store)
    try fill(store, 400)
    let before = try store.contents()
    let names = try Image(of: directory.store).segmentNames
    #expect(names.count > 1)
    for name in names {
      try overwriteFile(
        "\(directory.store)/\(name)", [1, 2, 3], at: SegmentHeader.identifierOffset)
    }
    try store.backup(to: copyPath)
    #expect(try Store.verify(path: copyPath).errors == [])
    #expect(try Store(copyPath).contents() == before)
  }

  @Test("A copy with a damaged segment header is refused")
  func damagedCopy() throws {
    let fileSystem = FaultyFileSystem()
    let store = try Store(directory.store, fileSystem: fileSystem)
    try fill(store, 10)
    let copy = copyPath
    fileSystem.setHook { event in
      guard event.call == .open, event.file.hasPrefix("seg-") else { return nil }
      // Fails until the copy has the file. The check opens it last.
      try? overwriteFile("\(copy)/\(event.file)", [1, 2, 3], at: SegmentHeader.identifierOffset)
      return nil
    }
    let error = storeError { try store.backup(to: copy) }
    fileSystem.setHook(nil)
    #expect(error?.corruption?.offset == 0)
    #expect(try Image(of: copy).files.isEmpty)
  }

  @Test("A destination that is in use or inside the store is refused")
  func destinations() throws {
    let store = try Store(directory.store)
    try fill(store, 3)
    try store.backup(to: copyPath)
    let opened = try Store(copyPath)
    try opened.setValue("here", forKey: "key0")
    try opened.close()
    for path in [copyPath, directory.store, directory.store + "/inside"] {
      guard case .unusable = storeError({ try store.backup(to: path) }) else {
        Issue.record("\(path) is taken")
        continue
      }
    }
    #expect(try Store(copyPath).count() == 3)
  }
  // MARK: Again

  private func check(_ store: Store, _ copyPath: String) throws {
    #expect(try Store.verify(path: copyPath).damage == [])
    // Without opening it for writing.
    let copy = try Store(readingAt: copyPath, configuration: .small(clock: clock))
    #expect(try entries(copy).mapValues(\.value) == entries(store).mapValues(\.value))
    #expect(try entries(copy).mapValues(\.version) == entries(store).mapValues(\.version))
    try copy.close()
  }

  @Test("A backup onto an earlier one copies only what is new, and drops what is gone")
  func again() throws {
    var random = FuzzRandom(seed: 1)
    let store = try Store(directory.store, .small(clock: clock))
    try fill(store, 400)
    let first = try store.backup(to: copyPath)
    try check(store, copyPath)
    let unchanged = try store.backup(to: copyPath)
    #expect(unchanged.byteCount == 0 && unchanged.entryCount == 400)
    try store.setValue("new", forKey: "key1")
    let next = try store.backup(to: copyPath)
    #expect(next.byteCount > 0 && next.byteCount < 200)
    #expect(next.version == first.version + 1)
    try check(store, copyPath)
    for _ in 0..<10 {
      for _ in 0..<(1 + random.below(300)) {
        let key = "key\(random.below(500))"
        if random.below(3) == 0 {
          try store.removeValue(forKey: key)
        } else {
          try store.setValue([UInt8](repeating: 7, count: random.below(2000)), forKey: key)
        }
      }
      if random.below(3) == 0 { try store.compact() }
      if random.below(8) == 0 { try store.removeAll() }
      try store.backup(to: copyPath)
      try check(store, copyPath)
      let names = try Image(of: copyPath).files.keys.filter { FileName.identifier(in: $0) != nil }
      #expect(Set(names) == (try Image(of: copyPath).manifest.listedFiles))
    }
    let restored = try Store(copyPath, .small(clock: clock))
    #expect(try restored.statistics().recovery.source == .checkpoint)
    try restored.setValue("here", forKey: "key1")
    try restored.close()
  }

  @Test("A backup that fails or is killed at any call leaves the earlier one whole")
  func interrupted() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    for number in 0..<60 {
      try store.setValue([UInt8](repeating: 7, count: 500), forKey: "\(number)")
    }
    let copyPath = scene.directory("copy")
    try store.backup(to: copyPath)
    let before = try store.contents()
    for number in 0..<60 where number % 2 == 0 { try store.setValue("new", forKey: "\(number)") }
    try store.compact()
    for number in 0..<5 { try store.setValue("newer", forKey: "\(number)") }
    let after = try store.contents()
    var failureCount = 0
    for failing in 0... {
      let calls = Mutex(0)
      scene.fileSystem.setHook { _ in
        calls.withLock {
          $0 += 1
          return $0 > failing ? EIO : nil
        }
      }
      let failure = storeError { try store.backup(to: copyPath) }
      scene.fileSystem.setHook(nil)
      #expect(try Store.verify(path: copyPath).damage == [])
      let copy = try Store(readingAt: copyPath, configuration: .small(clock: scene.clock))
      let found = try copy.contents()
      try copy.close()
      if failure == nil {
        #expect(found == after)
        break
      }
      failureCount += 1
      #expect(found == before || found == after, "after \(failing) calls")
    }
    #expect(failureCount > 10)
  }

  @Test("A backup is not continued with other records than it has")
  func lostWrites() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("first", forKey: "a")
    let killed = try scene.killed()
    for number in 0..<20 { try store.setValue("lost \(number)", forKey: "\(number)") }
    let copyPath = scene.directory("copy")
    try store.backup(to: copyPath)
    try store.close()
    // As after a power cut: the same store without its last writes, which goes on.
    let again = try killed.open()
    for number in 0..<200 { try again.setValue("other \(number)", forKey: "\(number)") }
    guard case .unusable(_, let reason) = storeError({ try again.backup(to: copyPath) }) else {
      Issue.record("it is taken for an earlier backup")
      return
    }
    #expect(reason.contains("has lost"))
    let copy = try Store(readingAt: copyPath)
    #expect(try copy.text("19") == "lost 19")
    try copy.close()
  }
}
