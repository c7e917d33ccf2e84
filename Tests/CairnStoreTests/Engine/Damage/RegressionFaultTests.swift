import CairnStore
import Foundation
import FuzzSupport
import Glibc
import Synchronization
import Testing

@Suite("Regression: faults and damage")
struct RegressionFaultTests {
  @Test("The bytes of a record that could not be read count as live until its segment is compacted")
  func unreadableRecord() throws {
    // Its size is in its header. Nothing else is wrong meanwhile, and nothing is counted twice.
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    func open(_ path: String, _ system: FaultyFileSystem = FaultyFileSystem()) throws -> Store {
      try Store(
        path,
        .small {
          $0.access = .systemCalls
          $0.checkpointRecordThreshold = 0
        }, fileSystem: system, background: queue)
    }
    let system = FaultyFileSystem()
    var store = try open(directory.store, system)
    for key in ["a", "b", "c"] { try store.setValue([UInt8].filled(500), forKey: key) }
    try store.setValue([UInt8].filled(500), forKey: "b", lifetime: .seconds(10))
    try store.extendLifetime(forKey: "b", to: .seconds(1000))
    let before = try store.statistics().liveByteCount
    system.arm(
      .init(call: .read, index: 0, errorNumber: SystemError.interrupted, isLasting: true))
    #expect(throws: StoreError.self) { try store.extendLifetime(forKey: "b", to: .seconds(2000)) }
    for key in ["a", "b"] { try store.setValue([UInt8].filled(500), forKey: key) }
    #expect(system.hasFired)
    system.arm(nil)
    func check(_ store: Store, isExact: Bool) throws {
      #expect(try store.auditUsage().isEmpty == isExact)
      #expect(try store.auditUsage(mayCountMore: true) == [])
      #expect(try store.count() == 3)
    }
    try check(store, isExact: false)
    // The extension's own size was known.
    #expect(try store.statistics().liveByteCount < before + 2 * 600)
    try Image(of: directory.store).write(to: directory("killed"))
    try check(open(directory("killed")), isExact: true)
    try store.close()
    store = try open(directory.store)
    #expect(try store.statistics().recovery.source == .checkpoint)
    try check(store, isExact: false)
    try store.compact()
    try check(store, isExact: true)
    #expect(try store.statistics().liveByteCount < 3 * 600)
  }

  @Test("Opening a damaged store that is refused moves and removes nothing")
  func refusedOpenChangesNothing() throws {
    // An open removed files with ids beyond the manifest's and set unlisted ones aside as soon as
    // it had the manifest. Then it read the log, found damage and refused the store, which was
    // documented to leave it unchanged. Random damage found it: a segment was copied to another
    // name, a bit flipped in a record, and after the refusal the copy was gone, which somebody
    // might have wanted to recover from. Now all of that waits until the store has been accepted.
    let scene = try RegressionScene()
    let store = try scene.open()
    for index in 0..<20 { try store.setValue("value\(index)", forKey: "key\(index)") }
    try store.close()
    let again = try scene.open()
    try again.removeAll()
    for index in 0..<20 { try again.setValue("value\(index)", forKey: "key\(index)") }
    let killed = try scene.killed()
    let segment = try #require(killed.names().first { FileName.isSegment($0) })
    // One id was handed out before, the other never was.
    for name in [RegressionScene.segment, "seg-0000000000000099"] {
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

  @Test("A store that cannot be made for want of random bytes names its path")
  func creationNamesPath() throws {
    // The sweep over all calls asks that every error name a path. Where the first call for random
    // bytes failed, the error named "MANIFEST", relative to nothing.
    let directory = try TemporaryDirectory()
    let fileSystem = FaultyFileSystem(
      fault: FaultyFileSystem.Fault(call: .randomBytes, index: 0, errorNumber: EIO))
    let environment = Environment(fileSystem: fileSystem, background: ManualBackgroundQueue())
    let error = storeError {
      _ = try Store(
        path: directory.store, configuration: StoreConfiguration(), environment: environment,
        readOnly: false)
    }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.path.hasPrefix(directory.store))
  }

  @Test(
    "A write that fails and cannot be undone poisons at once, and says why",
    arguments: [EIO, EDQUOT, ENOSPC])
  func undoFails(errorNumber: Int32) throws {
    // A write into the log found no room, and cutting off what it had left failed too. The store
    // took no more writes from then on, but the caller was told `noSpace`, which promises that it
    // stays usable. And a quota that was used up was given as ENOSPC in the cause.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "key", durability: .durable)
    scene.fileSystem.setHook { event in
      switch event.call {
      case .write where FileName.isSegment(event.file): ENOSPC
      case .truncate where FileName.isSegment(event.file): errorNumber
      default: nil
      }
    }
    let error = storeError {
      try store.setValue("more", forKey: "more", durability: .durable)
    }
    guard case .poisoned(let cause) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause.errorNumber == errorNumber)
    scene.fileSystem.setHook(nil)
    #expect(throws: StoreError.self) { try store.setValue("more", forKey: "more") }
    #expect(try store.value(forKey: "key") == Array("value".utf8))
    #expect(try store.value(forKey: "more") == nil)
    #expect(try scene.killed().open().count() == 1)
  }

  @Test(
    "Where it cannot be told whether a directory lies in another, the error names the right one")
  func insideNamesPath() throws {
    // Before a salvage it is found out whether the copy would lie in the damaged store. Where the
    // look at the store failed, the error named the directory of the copy, which was sound. The
    // sweep over all calls found it once it compared the paths of errors with those of the calls.
    let directory = try TemporaryDirectory()
    // The first look is that of opening the store's directory.
    let fileSystem = FaultyFileSystem(
      fault: FaultyFileSystem.Fault(call: .status, index: 1, errorNumber: EIO))
    try FileManager.default.createDirectory(
      atPath: directory.store, withIntermediateDirectories: true)
    let source = try Directory(path: directory.store, fileSystem: fileSystem, readOnly: true)
    let place = try Directory(readingOnly: "/", fileSystem: fileSystem)
    let error = storeError { _ = try place.isInside(source) }
    guard case .system(let failure) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.path == directory.store)
  }

  @Test("A compaction by hand tells of a failed sync, also where it got what it needed")
  func compactionAfterFailedSync() throws {
    // To seal the segment that was left, the log was synced up to its end. That worked, and then the
    // sync of the next segment failed. The store took no more writes from then on, so nothing was
    // compacted either, and the report said that there was nothing to do. Random workloads with faults
    // found it.
    let scene = try RegressionScene()
    let store = try scene.open()
    // Each value goes into the next segment; two are left and not sealed yet.
    for key in ["a", "b", "c"] { try store.setValue([UInt8].filled(40_000), forKey: key) }
    let count = Atomic(0)
    scene.fileSystem.setHook { event in
      guard event.call == .synchronizeData, FileName.isSegment(event.file) else { return nil }
      return count.wrappingAdd(1, ordering: .relaxed).newValue == 2 ? EIO : nil
    }
    let error = storeError { try store.compact() }
    scene.fileSystem.setHook(nil)
    let cause: SystemFailure
    switch error {
    case .poisoned(let failure), .durabilityUnknown(let failure): cause = failure
    default:
      Issue.record("\(String(describing: error)) after \(count.load(ordering: .relaxed)) syncs")
      return
    }
    #expect(cause.errorNumber == EIO)
    #expect(throws: StoreError.self) { try store.setValue("more", forKey: "more") }
    #expect(try store.count() == 3)
  }
}
