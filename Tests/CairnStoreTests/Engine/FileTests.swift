import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("The files of a store")
struct FileTests {
  static func closed() throws -> Image {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store)
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: UInt8(number), count: 1000), forKey: "key\(number)")
    }
    try store.close()
    return try Image(of: directory.store).withoutReserves()
  }

  let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  @Test(
    "Segments without a MANIFEST are refused, never recreated, and left unchanged",
    arguments: [true, false])
  func missingManifest(readOnly: Bool) throws {
    var image = try Self.closed()
    image.files["MANIFEST"] = nil
    try image.write(to: directory.store)
    let listing = try DirectoryListing(of: directory.store)
    let missing = Corruption(file: "MANIFEST", offset: 0, cause: .missingFile)
    let error = storeError { _ = try Store(directory.store, readOnly: readOnly) }
    #expect(error == StoreError.corrupt(missing).located(in: directory.store))
    #expect(try Store.verify(path: directory.store).errors == [missing])
    #expect(try DirectoryListing(of: directory.store) == listing)
  }

  @Test("An empty MANIFEST is corruption")
  func emptyManifest() throws {
    try Self.closed().changing("MANIFEST") { $0 = [] }.write(to: directory.store)
    #expect(storeError { _ = try Store(directory.store) }?.corruption?.file == "MANIFEST")
  }

  @Test("A MANIFEST far too large is refused without being read")
  func hugeManifest() throws {
    try Self.closed().write(to: directory.store)
    try check("truncate", unsafe truncate(directory.store + "/MANIFEST", 1 << 40))
    let error = storeError { _ = try Store(directory.store) }
    #expect(error?.corruption == Corruption(file: "MANIFEST", offset: 0, cause: .badLength))
  }

  @Test(
    "A leftover MANIFEST.new is never read, whatever it contains",
    arguments: [0, 3, 100_000])
  func leftoverManifest(count: Int) throws {
    var image = try Self.closed()
    var newer = try image.manifest
    newer.generation += 1
    newer.floorSequence = newer.lastSequence
    let leftovers = [[UInt8](repeating: 1, count: count), newer.encoded()]
    for leftover in leftovers {
      image.files["MANIFEST.new"] = leftover
      try image.write(to: directory.store)
      let store = try Store(directory.store)
      #expect(try store.count() == 100)
      try store.setValue("v", forKey: "new")
      try store.close()
      #expect(try Store(directory.store).count() == 101)
      try FileManager.default.removeItem(atPath: directory.store)
    }
  }

  @Test("A MANIFEST.new alone does not prevent creating a store")
  func onlyNewManifest() throws {
    var image = Image()
    image.files = ["MANIFEST.new": [1, 2, 3], "LOCK": []]
    try image.write(to: directory.store)
    #expect(try Store(directory.store).count() == 0)
  }

  @Test("A segment with an id that was not assigned yet is removed, whatever it contains")
  func beyondNext() throws {
    var image = try Self.closed()
    let next = try image.manifest.nextID
    let names = [next, next + 1, UInt64.max].map { FileName.segment(SegmentID(rawValue: $0)) }
    for name in names { image.files[name] = [1, 2, 3] }
    try image.write(to: directory.store)
    let store = try Store(directory.store)
    #expect(try store.count() == 100)
    #expect(try store.statistics().recovery.quarantinedFiles == [])
    #expect(Set(try Image(of: directory.store).segmentNames).isDisjoint(with: names))
  }

  @Test("An older unlisted segment is moved to quarantine unchanged, and reported")
  func unlisted() throws {
    var image = try Self.closed().changingManifest { $0.nextID += 10 }
    let name = FileName.segment(SegmentID(rawValue: try image.manifest.nextID - 3))
    image.files[name] = [1, 2, 3]
    try image.write(to: directory.store)
    #expect(
      try Store.verify(path: directory.store).errors
        == [Corruption(file: name, offset: 0, cause: .unlistedFile)])
    let messages = Messages()
    let store = try Store(
      directory.store, .small { $0.log = DiagnosticLog { messages.add($0.text) } })
    #expect(try store.count() == 100)
    #expect(try store.statistics().recovery.quarantinedFiles == [name])
    #expect(try Image(of: directory.store).files[name] == nil)
    #expect(try readFile("\(directory.store)/quarantine/\(name)") == [1, 2, 3])
    #expect(messages.all.contains { $0.contains(name) })
    try store.close()
    // Files with the same name do not replace each other.
    for number in 2...3 as ClosedRange<UInt8> {
      try writeFile("\(directory.store)/\(name)", [number])
      try Store(directory.store).close()
      #expect(try readFile("\(directory.store)/quarantine/\(name).\(number)") == [number])
    }
    #expect(try readFile("\(directory.store)/quarantine/\(name)") == [1, 2, 3])
  }

  @Test("Retired and pending segments are removed", arguments: [true, false])
  func retired(isRetired: Bool) throws {
    var image = try Self.closed().changingManifest { manifest in
      manifest.nextID += 10
      if isRetired {
        manifest.retiredIDs = [manifest.nextID - 3]
      } else {
        manifest.pendingIDs = [manifest.nextID - 3]
      }
    }
    let name = FileName.segment(SegmentID(rawValue: try image.manifest.nextID - 3))
    image.files[name] = [1, 2, 3]
    try image.write(to: directory.store)
    let store = try Store(directory.store)
    #expect(try store.statistics().recovery.quarantinedFiles == [])
    #expect(try Image(of: directory.store).files[name] == nil)
  }

  @Test("Files with other names in a store are left alone")
  func otherFiles() throws {
    var image = try Self.closed()
    image.files["notes.txt"] = [1]
    image.files["seg-1"] = [2]
    try image.write(to: directory.store)
    try Store(directory.store).close()
    let after = try Image(of: directory.store)
    #expect(after.files["notes.txt"] == [1])
    #expect(after.files["seg-1"] == [2])
  }

  @Test(
    "A MANIFEST of another major version is not supported, and nothing changes",
    arguments: [true, false])
  func manifestVersion(readOnly: Bool) throws {
    let image = try Self.closed().changing("MANIFEST") { bytes in
      bytes[8] = 2
      let end = bytes.count - 4
      let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<end))
      bytes.withMutableSpan { $0.store(checksum, at: end) }
    }
    try image.write(to: directory.store)
    #expect(throws: StoreError.unsupportedVersion(file: "MANIFEST", major: 2)) {
      try Store(directory.store, readOnly: readOnly)
    }
    let after = try Image(of: directory.store)
    for (name, bytes) in image.files { #expect(after.files[name] == bytes) }
  }

  @Test("A segment of another major version is not supported", arguments: [true, false])
  func segmentVersion(readOnly: Bool) throws {
    var image = try Self.closed()
    let name = image.segmentNames[0]
    image = image.changing(name) { bytes in
      bytes[8] = 2
      let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<64))
      bytes.withMutableSpan { $0.store(checksum, at: 64) }
    }
    try image.write(to: directory.store)
    #expect(throws: StoreError.unsupportedVersion(file: name, major: 2)) {
      try Store(directory.store, readOnly: readOnly)
    }
  }

  @Test("After a close, the manifest lists every file and the end of its records")
  func lengths() throws {
    let store = try Store(directory.store)
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
    }
    try store.close()
    let image = try Image(of: directory.store)
    let manifest = try image.manifest
    #expect(manifest.isClean)
    for name in image.segmentNames {
      let id = try #require(FileName.identifier(in: name))
      let length = try #require(
        manifest.openSegments.first { $0.id.rawValue == id }?.byteCount
          ?? manifest.sealedSegments.first { $0.id.rawValue == id }?.byteCount)
      #expect(try image.records(in: name).last?.range.upperBound == length)
      // The room beyond the end of the last segment lets a removal work on a full disk.
      let bytes = try #require(image.files[name])
      #expect(bytes.count >= length && bytes.count <= length + (16 << 10))
      #expect(bytes[length...].allSatisfy { $0 == 0 })
    }
    #expect(manifest.openSegments.count + manifest.sealedSegments.count == image.segmentNames.count)
  }

  @Test("Appending continues in the same segment after a clean close")
  func resumed() throws {
    for number in 0..<5 {
      let store = try Store(directory.store)
      try store.setValue("v", forKey: "key\(number)")
      try store.close()
    }
    #expect(try Image(of: directory.store).segmentNames.count == 1)
    #expect(try Store(directory.store).count() == 5)
  }

  @Test("Nothing is ever appended beyond the end of a killed store")
  func notResumed() throws {
    let killed = try KilledStore { try $0.setValue("v", forKey: "key") }
    try killed.image.write(to: directory.store)
    let store = try Store(directory.store)
    try store.setValue("w", forKey: "other")
    #expect(try Image(of: directory.store).segmentNames.contains(killed.lastSegment))
    #expect(try Image(of: directory.store).records(in: killed.lastSegment).count == 1)
  }

  @Test("Records of an older segment in a new one's unused space do not count")
  func staleBlocks() throws {
    // The old store's records at the same offsets, as on a filesystem that does not zero its
    // blocks.
    let old = try KilledStore { store in
      for number in 0..<20 { try store.setValue("old", forKey: "old\(number)") }
    }
    let new = try KilledStore { try $0.setValue("new", forKey: "new1") }
    let oldBytes = try #require(old.image.files[try old.lastSegment])
    let end = try #require(try new.lastRecords.last).range.upperBound
    let image = new.image.changing(try new.lastSegment) { bytes in
      bytes.replaceSubrange(end..., with: oldBytes[end...])
    }
    #expect(try Opening(image) == .contents(new.after))
    #expect(try Opening(image, boot: otherBoot) == .contents(new.after))
  }

  @Test("A refused open of a damaged store moves and removes nothing")
  func refusedOpenChangesNothing() throws {
    // Found by `DamageFuzzer`: files with ids beyond the manifest's were removed, and unlisted ones
    // moved to quarantine, before the log was read and the store refused. Recovery might have
    // needed them.
    let scene = try StoreScene()
    let store = try scene.open()
    for index in 0..<20 { try store.setValue("value\(index)", forKey: "key\(index)") }
    try store.close()
    let again = try scene.open()
    try again.removeAll()
    for index in 0..<20 { try again.setValue("value\(index)", forKey: "key\(index)") }
    let killed = try scene.killed()
    let segment = try #require(killed.names().first { FileName.isSegment($0) })
    // One id was assigned before; the other never was.
    for name in [StoreScene.segment, "seg-0000000000000099"] {
      try Data(try killed.bytes(of: segment)).write(to: killed.url(name))
    }
    try killed.edit(segment) { bytes in
      let range = try #require(bytes.firstRange(of: Array("key3".utf8)))
      bytes[range.lowerBound] ^= 1
    }
    let names = try killed.names().sorted()
    try killed.expectCorrupt()
    #expect(try killed.names().sorted() == names)
  }

  @Test("An open makes the directory durable before it removes files according to the manifest")
  func syncBeforeSweep() throws {
    // A process may die between the exchange of the manifest and the sync of the directory. If the
    // next process removes files according to that manifest, a power cut may keep the removal and
    // undo the exchange.
    let scene = try StoreScene()
    let store = try scene.open { $0.durability = .durable }
    try store.setValue("1", forKey: "a")
    let isRenamed = Mutex(false)
    let copy = Mutex<StoreScene?>(nil)
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

  @Test("A store works on a filesystem that cannot exchange names", arguments: [EINVAL, ENOSYS])
  func withoutExchange(number: Int32) throws {
    let scene = try StoreScene()
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
}
