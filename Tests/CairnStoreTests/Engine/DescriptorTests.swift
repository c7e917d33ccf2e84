import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Descriptors: a few, whatever the number of segments")
struct DescriptorTests {
  let directory: TemporaryDirectory
  let system = FaultyFileSystem()
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  private func open(mapsFiles: Bool = true) throws -> Store {
    try Store(
      directory.store, .small { $0.mapsFiles = mapsFiles }, fileSystem: system, background: queue)
  }

  private static func value(_ number: Int, _ byteCount: Int = 5600) -> [UInt8] {
    [UInt8](repeating: UInt8(number & 255), count: byteCount)
  }

  /// Fills about twenty segments.
  private func fill(_ store: Store, _ range: Range<Int> = 0..<250) throws {
    for number in range {
      try store.setValue(Self.value(number), forKey: "key \(number)")
      queue.runAll()
    }
  }

  @Test("A small store has three descriptors at rest, and at most six at work")
  func small() throws {
    var store = try open()
    #expect(system.openDescriptorCount == 2)
    try fill(store)
    #expect(system.openDescriptorCount == 3)
    for number in 0..<200 { try store.removeValue(forKey: "key \(number)") }
    queue.runAll()
    try store.compact()
    try store.maintain()
    _ = try store.statistics()
    #expect(system.openDescriptorCount == 3)
    try store.close()
    // The waiting jobs hold the closed store.
    queue.discardAll()
    store = try open()
    #expect(system.openDescriptorCount <= 4)
    queue.discardAll()
    #expect(try store.value(forKey: "key 240") == Self.value(240))
    try fill(store, 300..<310)
    // The next segment is open while the last 16 KiB of one are written.
    #expect((3...4).contains(system.openDescriptorCount))
    #expect(system.mostOpenDescriptorCount <= 6)
    try store.close()
  }

  @Test("A recovery opens one segment after another")
  func recovery() throws {
    let store = try open()
    try fill(store)
    try Image(of: directory.store).write(to: directory("killed"))
    try store.close()
    let system = FaultyFileSystem()
    let recovered = try Store(directory("killed"), fileSystem: system)
    #expect(system.mostOpenDescriptorCount <= 5)
    #expect(try recovered.value(forKey: "key 0") == Self.value(0))
    #expect(try recovered.value(forKey: "key 249") == Self.value(249))
    try recovered.close()
  }

  @Test("Files that are read by calls share a few descriptors")
  func systemCalls() throws {
    let store = try open(mapsFiles: false)
    try fill(store, 0..<600)
    for number in 0..<600 {
      #expect(try store.value(forKey: "key \(number)") == Self.value(number))
    }
    #expect(try store.statistics().segments.count > 40)
    #expect(system.openDescriptorCount == 3 + 16)
    #expect(system.mostOpenDescriptorCount <= 6 + 16)
    try store.close()
  }

  @Test(
    "A snapshot shows files that were unlinked, and can be backed up",
    arguments: [true, false])
  func retired(mapsFiles: Bool) throws {
    let store = try open(mapsFiles: mapsFiles)
    try fill(store)
    let snapshot = try store.snapshot()
    for number in 0..<250 { try store.removeValue(forKey: "key \(number)") }
    queue.runAll()
    try store.compact()
    #expect(try store.statistics().segments.count < 5)
    for number in 0..<250 {
      #expect(try snapshot.value(forKey: "key \(number)") == Self.value(number))
    }
    try snapshot.backup(to: directory("backup"))
    let copy = try Store(directory("backup"), readOnly: true)
    #expect(try copy.count() == 250)
    #expect(try copy.value(forKey: "key 0") == Self.value(0))
    try copy.close()
    if mapsFiles { #expect(system.mostOpenDescriptorCount <= 6) }
    snapshot.close()
    queue.runAll()
    system.awaitClosing(downTo: mapsFiles ? 3 : 3 + 16)
    #expect(system.openDescriptorCount <= (mapsFiles ? 3 : 3 + 16))
    try store.close()
  }

  /// The file is removed between the check whether it is open and its opening by name.
  @Test("A read by calls finds a value whose segment is removed while its file is opened")
  func compactedWhileOpened() throws {
    let store = try open(mapsFiles: false)
    try fill(store, 0..<600)
    for number in 0..<600 where number % 10 != 0 {
      try store.removeValue(forKey: "key \(number)")
    }
    let segmentCount = try store.statistics().segments.count
    let isFirst = Atomic(true)
    system.setWatch { call in
      guard call == .open, isFirst.exchange(false, ordering: .relaxed) else { return }
      _ = try? store.compact()
    }
    #expect(try store.value(forKey: "key 100") == Self.value(100))
    system.setHook(nil)
    let hasCompacted = !isFirst.load(ordering: .relaxed)
    #expect(hasCompacted)
    #expect(try store.statistics().segments.count < segmentCount)
    try store.close()
  }

  @Test("A removal of all opens one file after another if all are read by calls")
  func removeAllByCalls() throws {
    // On a busy machine, a thread of another test may keep files open for a while.
    var most = Int.max
    for _ in 0..<20 where most > 7 + 16 { most = try DescriptorTests().mostOpenInRemovalByCalls() }
    #expect(most <= 7 + 16)
  }

  private func mostOpenInRemovalByCalls() throws -> Int {
    let store = try open(mapsFiles: false)
    try fill(store, 0..<600)
    try store.removeAll()
    // The files are removed once the removal is on disk.
    queue.runAll(dueAfter: .zero)
    system.awaitClosing(downTo: 2)
    #expect(system.openDescriptorCount == 2)
    try store.close()
    return system.mostOpenDescriptorCount
  }

  @Test(
    "A snapshot can be read after its store was closed, reopened and compacted",
    arguments: [true, false])
  func afterClose(mapsFiles: Bool) throws {
    let store = try open(mapsFiles: mapsFiles)
    try fill(store)
    let snapshot = try store.snapshot()
    try store.close()
    // The directory and LOCK, so that no reader's file is truncated. Also files that are read by
    // calls.
    if mapsFiles { #expect(system.openDescriptorCount == 2) }
    let next = try Store(directory.store, .small { $0.mapsFiles = mapsFiles })
    try next.removeAll()
    for number in 0..<250 {
      #expect(try snapshot.value(forKey: "key \(number)") == Self.value(number))
    }
    snapshot.close()
    try next.close()
  }

  @Test("If no descriptor is left, a write throws the error, and a removal succeeds")
  func noneLeft() throws {
    let store = try open()
    for number in 0..<12 { try store.setValue(Self.value(number), forKey: "key \(number)") }
    queue.runAll()
    system.arm(
      FaultyFileSystem.Fault(call: .open, index: 0, errorNumber: EMFILE, isLasting: true))
    let error = storeError {
      // Small ones, so that the last part of the segment would be full if they could use it.
      for number in 100..<10_000 { try store.setValue([1], forKey: "key \(number)") }
    }
    guard case .system(let failure) = error, failure.errorNumber == EMFILE else {
      Issue.record("\(String(describing: error))")
      return
    }
    let count = try store.count()
    for number in 0..<12 { #expect(try store.removeValue(forKey: "key \(number)")) }
    #expect(try store.count() == count - 12)
    system.arm(nil)
    queue.runAll()
    try store.setValue("value", forKey: "after")
    #expect(try store.count() == count - 11)
    #expect(store.writeFailure == nil)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  /// Statistics open files by name while compactions remove them.
  @Test("A file that is removed while it is opened counts as missing, not as unsafe")
  func removedWhileOpened() throws {
    let files = try Directory(readingOnly: directory.path, fileSystem: system)
    _ = try files.createFile("file")
    let path = directory("file")
    system.setWatch { call in if call == .status { _ = unsafe unlink(path) } }
    #expect(try files.openFile("file", mode: .readOnly) == nil)
    system.setHook(nil)
  }

  @Test(
    "A store of more segments than a process may have descriptors works",
    arguments: [(1210, false), (200, true)])
  func manySegments(count: Int, byCalls: Bool) throws {
    let result = try KillWriterProcess.run(
      "many-segments", directory.store, count, byCalls ? 1 : 0)
    #expect(result.status == 0, "\(result.output)")
  }
}
