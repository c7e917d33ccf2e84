import CairnEssentials
import CairnLibC
import FuzzSupport
import Synchronization
import Testing

@testable import CairnStore

@Suite("Disk space kept for removals")
struct DiskReserveTests {
  private let scene: StoreScene
  private let directory: Directory

  init() throws {
    scene = try StoreScene()
    try Store(scene.path).close()
    directory = try Directory(
      path: scene.path, fileSystem: SystemFileSystem(), readOnly: false)
  }

  private var byteCount: Int {
    get throws { try Int(scene.bytes(of: FileName.reserve).count) }
  }

  /// The reserve for copies of 512 KiB, and 256 KiB of tombstones.
  private let size = DiskReserve.Size(copyByteCount: 512 << 10, forLogOf: 16 << 20)

  @Test("The part for tombstones is released for removals, once, even for later processes")
  func released() throws {
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(size, atLeast: size)
    #expect(try byteCount == 768 << 10)
    #expect(reserve.giveToRemovals(size))
    #expect(!reserve.giveToRemovals(size))
    #expect(try byteCount == 512 << 10)
    #expect(!DiskReserve(directory: directory, isUsed: true).giveToRemovals(size))
    #expect(try byteCount == 512 << 10)
    try reserve.ensure(size, atLeast: size)
    #expect(try byteCount == 768 << 10)
  }

  @Test("The part for tombstones grows with the square root of the log")
  func sizes() {
    for (log, expected) in [(0, 16), (1 << 20, 64), (256 << 20, 1 << 10), (4 << 30, 4 << 10)] {
      let size = DiskReserve.Size(copyByteCount: 0, forLogOf: log)
      #expect(size.removalByteCount == expected << 10, "\(log)")
    }
  }

  @Test("If there is no room for the reserve of a larger log, it is restored for the current one")
  func refusal() throws {
    // `FaultFuzzer --full-disk --seed 74704885`: a compaction had left one half, a put was refused,
    // others took the rest of the disk, and nothing could be removed.
    let directory = try Directory(
      path: scene.path, fileSystem: scene.fileSystem, readOnly: false)
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(size, atLeast: size)
    reserve.lend()
    reserve.takeBack(size, isForRemoval: true)
    #expect(try byteCount == 512 << 10)
    let refusal = Gate()
    refusal.open()
    scene.fileSystem.setHook { event in
      event.call == .allocate && refusal.passOnce() ? ENOSPC : nil
    }
    let larger = DiskReserve.Size(copyByteCount: 1 << 20, forLogOf: 64 << 20)
    #expect(throws: StoreError.self) { try reserve.ensure(larger, atLeast: size) }
    #expect(try byteCount == 768 << 10)
    #expect(reserve.isShort)
  }

  @Test("The end of a segment is left to removals until the next segment exists")
  func slack() throws {
    let store = try scene.open()
    for number in 0..<300 {
      try store.setValue([UInt8].filled(1000), forKey: "key\(number)")
      let isLeft = store.engine.log.withLock {
        $0.prepared != nil || $0.offset + Segment.slack <= $0.segmentByteCount
      }
      #expect(isLeft, "after \(number)")
    }
  }

  @Test("A compaction that no removal waits for leaves the reserve whole")
  func takenBack() throws {
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(size, atLeast: size)
    reserve.lend()
    reserve.takeBack(size, isForRemoval: false)
    #expect(try byteCount == 768 << 10)
    // `FaultFuzzer --full-disk --seed 74710820`: other programs filled the disk after the refusal,
    // and a trim found no room.
  }

  /// It was halved until it fitted, so that no segment could be copied.
  @Test(
    "A compaction gives back as much of the reserve as the disk has room for",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func inLittleRoom() throws {
    let disk = try TinyDisk(byteCount: 2 << 20)
    let directory = try Directory(
      path: disk.path, fileSystem: SystemFileSystem(), readOnly: false)
    let reserve = DiskReserve(directory: directory, isUsed: true)
    try reserve.ensure(size, atLeast: size)
    reserve.lend()
    try disk.leave(700 << 10)
    reserve.takeBack(size, isForRemoval: false)
    #expect(disk.freeByteCount < 8 << 10)
    let byteCount = try directory.openFile(FileName.reserve, mode: .readOnly)?.status().byteCount
    #expect((690 << 10...700 << 10).contains(byteCount ?? 0))
  }

  @Test("A large value that is refused does not leave the reserve larger")
  func refusedValue() throws {
    let store = try scene.open()
    for number in 0..<300 { try store.setValue([UInt8].filled(1000), forKey: "key\(number)") }
    let before = try byteCount
    scene.fileSystem.setHook { event in
      event.call == .allocate && event.byteCount > 20 << 20 ? ENOSPC : nil
    }
    #expect(throws: StoreError.self) {
      try store.setValue([UInt8].filled(30 << 20), forKey: "large")
    }
    #expect(try byteCount == before)
    try store.close()
  }

  @Test(
    "When a write returns, the reserve has the size that the log needs, however large the write")
  func growth() throws {
    let store = try Store(scene.path, .small { $0.segmentByteLimit = 256 << 10 })
    for byteCount in [1000, 30_000, 200_000, 30 << 20, 1000] {
      try store.setValue([UInt8].filled(byteCount), forKey: "key \(byteCount)")
      let log = store.engine.log.withLock { appender in
        appender.segments.reduce(0) { $0 + $1.allocatedByteCount }
      }
      // A store that never grew has no reserve.
      if log > Appender.firstAllocation {
        #expect(
          try self.byteCount >= store.engine.log.reserveSize.byteCount, "\(byteCount)")
      }
    }
  }

  // MARK: Stores on full disks

  /// A store that was left with some entries, on a disk that has filled up since.
  private func fullDisk(closed: Bool) throws -> StoreScene {
    let scene = try StoreScene()
    let store = try scene.open()
    for index in 0..<300 { try store.setValue([UInt8].filled(100), forKey: "key\(index)") }
    if closed { try store.close() }
    let left = try scene.killed()
    left.fileSystem.fillDisk()
    return left
  }

  @Test("On a full disk a value can be removed after a close, and after a write that found no room")
  func removals() throws {
    // The close cuts the segment at its last record. A failed allocation is undone by cutting the
    // file, which must not free the blocks that the close has left for removals.
    let scene = try fullDisk(closed: true)
    let store = try scene.open()
    #expect(try store.removeValue(forKey: "key200"))
    #expect(throws: StoreError.self) { try store.setValue([UInt8].filled(20_000), forKey: "new") }
    // Another program took the released space. The next removals need more than the last block had
    // left.
    scene.fileSystem.fillDisk()
    for index in 0..<200 { #expect(try store.removeValue(forKey: "key\(index)")) }
    #expect(try scene.killed().open().count() == 99)
  }

  @Test(
    "On a full disk everything can be removed, even if others take every released block",
    arguments: [true, false], [true, false])
  func removalOfAll(closed: Bool, atOnce: Bool) throws {
    // The switch needs a new manifest. A recovery may have used up the space kept for it. An
    // exchange of names keeps the blocks of the previous manifest, which a rename would free.
    let scene = try fullDisk(closed: closed)
    let fileSystem = scene.fileSystem
    if atOnce {
      fileSystem.setHook { [weak fileSystem] _ in
        fileSystem?.fillDisk()
        return nil
      }
    }
    let store = try scene.open()
    // Another program took what the open released.
    fileSystem.fillDisk()
    #expect(try store.count() == 300)
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test(
    "After a kill that left no reserve, a few blocks are enough to remove everything by name")
  func removalsInLastBlocks() throws {
    // The first segment of the session takes 16 KiB if there is room.
    let scene = try fullDisk(closed: false)
    try Data().write(to: scene.url(FileName.reserve))
    let store = try scene.open()
    scene.fileSystem.fillDisk(leaving: 8 << 10)
    for index in 0..<300 { #expect(try store.removeValue(forKey: "key\(index)")) }
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }

  @Test("Everything can be removed on a full disk once the manifest has outgrown a block")
  func removalOfAllAfterGrowth() throws {
    // As before, but the previous manifest leaves one block less than the current one needs.
    let scene = try StoreScene()
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
    // Another program took what removing the segment's rest released.
    fileSystem.fillDisk()
    try store.removeAll()
    #expect(try store.count() == 0)
    #expect(try scene.killed().open().count() == 0)
  }
}
