import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("A full disk")
struct FullDiskTests {
  let value = [UInt8](repeating: 1, count: 3000)

  /// Writes until there is no room, and returns how many writes succeeded.
  func fill(_ store: Store, _ durability: Durability) throws -> Int {
    for number in 0..<10_000 {
      let error = storeError {
        try store.setValue(value, forKey: "key\(number)", durability: durability)
      }
      guard let error else { continue }
      guard case .noSpace(let path, _, .disk) = error else {
        Issue.record("\(error)")
        throw error
      }
      #expect(path.contains("/store"))
      return number
    }
    Issue.record("never full")
    return 0
  }

  @Test(
    "Without room, a write throws noSpace, and reads and removals work; with room, all works again",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [1, 2, 4], [Durability.process, .durable])
  func full(megabytes: Int, durability: Durability) throws {
    let disk = try TinyDisk(byteCount: megabytes << 20)
    let path = disk.path + "/store"
    // The space freed later, enough for some segments.
    try writeFile(disk.path + "/ballast", [UInt8](repeating: 1, count: 300_000))
    let store = try Store(path)
    let count = try fill(store, durability)
    #expect(count > 50)
    try disk.fill()
    #expect(try store.count() == count)
    for number in 0..<count {
      #expect(try store.value(forKey: "key\(number)") == value)
    }
    // Still full, still an error, but nothing is lost.
    for number in 0..<3 {
      guard case .noSpace = storeError({ try store.setValue(value, forKey: "more\(number)") })
      else {
        Issue.record("not full any more")
        return
      }
    }
    // Removals use space that was kept for them.
    for number in 0..<20 {
      do {
        #expect(try store.removeValue(forKey: "key\(number)", durability: durability))
      } catch {
        Issue.record("the removal after \(number): \(error)")
        return
      }
    }
    #expect(try store.count() == count - 20)
    disk.free()
    try check("unlink", unsafe unlink(disk.path + "/ballast"))
    for number in 0..<20 {
      try store.setValue(value, forKey: "after\(number)", durability: durability)
    }
    let contents = try store.contents()
    try store.close()
    let again = try Store(path)
    #expect(try again.contents() == contents)
    try again.close()
    #expect(try Store.verify(path: path).errors == [])
  }

  @Test(
    "A value that does not fit leaves the space to others",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func largeValue() throws {
    let disk = try TinyDisk(byteCount: 2 << 20)
    let store = try Store(disk.path + "/store")
    try store.setValue("v", forKey: "key")
    for _ in 0..<3 {
      guard
        case .noSpace(_, let needed, _) = storeError({
          try store.setValue([UInt8](repeating: 1, count: 3 << 20), forKey: "large")
        })
      else {
        Issue.record("no error")
        return
      }
      #expect(needed >= 3 << 20)
    }
    for number in 0..<100 { try store.setValue(value, forKey: "key\(number)") }
    try store.close()
    #expect(try Store(disk.path + "/store").count() == 101)
  }

  @Test(
    "A disk of 128 KiB holds a small store, which takes writes again once it is emptied",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func smallestDisk() throws {
    let disk = try TinyDisk(byteCount: 128 << 10)
    var store = try Store(disk.path + "/store")
    for _ in 0..<3 {
      var number = 0
      while storeError({ try store.setValue("value", forKey: "key\(number)") }) == nil {
        number += 1
      }
      #expect(number > 100)
      try store.removeValue(forKey: "key0")
      try store.removeAll()
      // An operation of another test may briefly keep a segment.
      try waitUntil { try store.statistics().pinnedByteCount == 0 }
      try store.close()
      store = try Store(disk.path + "/store")
      #expect(try store.count() == 0)
    }
  }

  @Test(
    "A store on a full disk can be opened, read and closed",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func opening() throws {
    let disk = try TinyDisk(byteCount: 1 << 20)
    let path = disk.path + "/store"
    do {
      let store = try Store(path)
      for number in 0..<50 { try store.setValue(value, forKey: "key\(number)") }
      try store.close()
    }
    try disk.fill()
    do {
      let store = try Store(path)
      #expect(try store.count() == 50)
      guard case .noSpace = storeError({ try store.setValue(value, forKey: "new") }) else {
        Issue.record("not full")
        return
      }
      #expect(try store.value(forKey: "key7") == value)
      try store.close()
    }
    disk.free()
    let store = try Store(path)
    try store.setValue(value, forKey: "new")
    #expect(try store.count() == 51)
  }

  @Test(
    "On a full disk, everything can be removed, which makes room",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: 0..<17)
  func removeAll(pages: Int) throws {
    // The space left after the last segment was made varies.
    let disk = try TinyDisk(byteCount: (1 << 20) + pages * 4096)
    // Nothing runs in the background: on a busy machine, a job may hold a segment for longer than a
    // write waits.
    let store = try Store(disk.path + "/store", background: ManualBackgroundQueue())
    _ = try fill(store, .process)
    try disk.fill()
    try store.removeAll()
    #expect(try store.count() == 0)
    // An operation of another test may briefly keep a segment.
    try waitUntil { try store.statistics().pinnedByteCount == 0 }
    for number in 0..<20 { try store.setValue(value, forKey: "after\(number)") }
  }

  @Test(
    "A batch that only removes finds the same room as single removals, however many it makes",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [1, 50, 800], [Durability.process, .durable])
  func batchOfRemovals(size: Int, durability: Durability) throws {
    let disk = try TinyDisk(byteCount: 4 << 20)
    let store = try Store(disk.path + "/store", background: ManualBackgroundQueue())
    let count = try fill(store, .process)
    try disk.fill()
    let removed = min(count, 800)
    for start in stride(from: 0, to: removed, by: size) {
      try store.write(durability: durability) { batch in
        for number in start..<min(start + size, removed) {
          try batch.removeValue(forKey: "key\(number)")
        }
      }
    }
    #expect(try store.count() == count - removed)
    // A batch that also adds a value is refused like any write that adds one.
    guard
      case .noSpace = storeError({
        try store.write { batch in
          try batch.removeValue(forKey: "key\(count - 1)")
          try batch.setValue([UInt8](repeating: 1, count: 4 << 20), forKey: "new")
        }
      })
    else {
      Issue.record("there is room")
      return
    }
    #expect(try store.value(forKey: "key\(count - 1)") == value)
    try store.close()
    #expect(try Store(disk.path + "/store").count() == count - removed)
  }

  @Test(
    "On a full disk, a write briefly waits for removed space that is still being read",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [true, false])
  func stillRead(ends: Bool) throws {
    let disk = try TinyDisk(byteCount: 1 << 20)
    let pauses = Mutex(0)
    let reader = Mutex<Snapshot?>(nil)
    let store = try Store(
      path: disk.path + "/store", configuration: .small(),
      environment: Environment(
        fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
        pause: { _ in
          let count = pauses.withLock { count in
            count += 1
            return count
          }
          if ends && count == 3 { reader.withLock { $0 = nil } }
        }), readOnly: false)
    _ = try fill(store, .process)
    reader.withLock { $0 = try? store.snapshot() }
    try disk.fill()
    try store.removeAll()
    #expect(pauses.withLock { $0 } == 0)
    let error = storeError { try store.setValue(value, forKey: "after") }
    if ends {
      #expect(error == nil)
      #expect(pauses.withLock { $0 } == 3)
    } else {
      // A reader that continues keeps the space.
      guard case .noSpace? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(pauses.withLock { $0 } == 1000)
      // No write waits twice for the same reader.
      #expect(storeError { try store.setValue(value, forKey: "after") } != nil)
      #expect(pauses.withLock { $0 } == 1000)
    }
  }

  @Test(
    "A store that was closed on a full disk is freed, although it had something to retry")
  func freedOnceClosed() throws {
    let directory = try TemporaryDirectory()
    let files = FaultyFileSystem()
    // The queue holds the waiting jobs, and runs none by itself.
    let queue = ManualBackgroundQueue()
    do {
      let store = try Store(directory.store, fileSystem: files, background: queue)
      try store.setValue(value, forKey: "key")
      files.fillDisk()
      while storeError({ try store.setValue(value, forKey: "more") }) == nil {}
      queue.runAll()
      #expect(!queue.delays.isEmpty)
      try store.close()
    }
    files.awaitClosing()
    #expect(files.openDescriptorCount == 0)
    withExtendedLifetime(queue) {}
  }

  @Test(
    "A write waits for a compaction that holds the last room for its output",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [2, 10])
  func beingCompacted(distance: Int) throws {
    let disk = try TinyDisk(byteCount: 4 << 20)
    let files = FaultyFileSystem()
    let store = try Store(
      path: disk.path + "/store", configuration: .small { $0.segmentByteLimit = 512 << 10 },
      environment: Environment(fileSystem: files, background: ManualBackgroundQueue()),
      readOnly: false)
    for number in 0..<400 { try store.setValue(value, forKey: "key\(number)") }
    // A tenth is not worth a compaction by a writer.
    for number in stride(from: 0, to: 400, by: distance) {
      try store.removeValue(forKey: "key\(number)")
    }
    let gate = Gate()
    let writer = threadNumber()
    let isCopying = Atomic(false)
    files.setHook { event in
      if threadNumber() == writer {
        // This allocation finds no room.
        if event.call == .allocate { gate.open() }
      } else if event.call == .read, event.file.hasPrefix("seg-") {
        isCopying.store(true, ordering: .relaxed)
      } else if event.call == .synchronize, event.file.hasPrefix("seg-"),
        isCopying.load(ordering: .relaxed)
      {
        gate.passOnce()
      }
      return nil
    }
    let compaction = Background {
      do { _ = try store.compact() } catch StoreError.noSpace {
        // An operation of another test may briefly keep a segment.
        try waitUntil { try store.statistics().pinnedByteCount == 0 }
        _ = try store.compact()
      }
    }
    try gate.waitForArrival()
    try disk.fill()
    for number in 0..<20 { try store.setValue(value, forKey: "new\(number)") }
    gate.open()
    #expect(compaction.finishes())
    #expect(compaction.error == nil)
    try store.close()
    #expect(try Store.verify(path: disk.path + "/store").errors == [])
  }

  @Test("A manual compaction reclaims dead space although no segment can be sealed at first")
  func compactionBeforeSealing() throws {
    // Sealing segments comes first, but a manifest that needs a second block finds no room. But
    // half of the log is dead, and reclaiming that makes the manifest shorter.
    let fileSystem = FaultyFileSystem()
    let queue = ManualBackgroundQueue()
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small(), fileSystem: fileSystem, background: queue)
    let value = [UInt8].filled(1000)
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    queue.runAll()
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    let before = try store.statistics()
    #expect(before.deadByteCount > 300_000)
    let refusals = Mutex(0)
    fileSystem.setHook { event in
      guard event.call == .allocate, event.file == FileName.newManifest else { return nil }
      return refusals.withLock { count in
        count += 1
        // One allocation for the segment after the active one, and one to seal the first.
        return count <= 2 ? SystemError.noSpace : nil
      }
    }
    let report = try store.compact()
    #expect(refusals.withLock { $0 } > 2)
    #expect(report.removedSegmentCount > 3)
    let after = try store.statistics()
    #expect(after.deadByteCount < before.deadByteCount / 20)
    // The segments of the second pass were sealed after all.
    #expect(after.segments.count { !$0.isSealed } <= 2)
    #expect(try store.contents().count == 300)
    // If there is never any room, the caller gets the error.
    for number in 0..<300 { try store.setValue(value, forKey: "key\(number)") }
    fileSystem.setHook { event in
      event.call == .allocate && event.file == FileName.newManifest ? SystemError.noSpace : nil
    }
    guard case .noSpace? = storeError({ try store.compact() }) else {
      Issue.record("no error")
      return
    }
    fileSystem.setHook(nil)
    #expect(try store.compact().removedSegmentCount > 3)
    #expect(try store.contents().count == 300)
  }

  @Test(
    "On a full disk, a value can be removed in a store that was just opened",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func removeAfterOpening() throws {
    let disk = try TinyDisk(byteCount: 1 << 20)
    do {
      let store = try Store(disk.path + "/store")
      for number in 0..<50 { try store.setValue(value, forKey: "key\(number)") }
      try store.close()
    }
    try disk.fill()
    let store = try Store(disk.path + "/store")
    #expect(try store.removeValue(forKey: "key1"))
    #expect(try store.count() == 49)
  }

  @Test(
    "If not even the smallest value fits, removals still work",
    arguments: [Durability.process, .durable])
  func smallestValue(durability: Durability) throws {
    let directory = try TemporaryDirectory()
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store, fileSystem: system, background: ManualBackgroundQueue())
    try store.setValue("v", forKey: "first")
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    var count = 0
    for byteCount in [3000, 300, 30, 1] {
      let value = [UInt8](repeating: 1, count: byteCount)
      while storeError({ try store.setValue(value, forKey: "\(count)", durability: durability) })
        == nil
      {
        count += 1
      }
    }
    #expect(count > 12)
    let refused = (0..<12).filter { number in
      storeError { try store.removeValue(forKey: "\(number)", durability: durability) } != nil
    }
    #expect(refused == [])
    #expect(try store.count() == count + 1 - 12)
    system.arm(nil)
    try store.setValue("v", forKey: "after")
    try store.close()
    #expect(try Store(directory.store).count() == count + 2 - 12)
  }

  @Test(
    "A file-size limit causes noSpace and no signal, ignored or not",
    arguments: [true, false])
  func fileSizeLimit(ignoring: Bool) throws {
    let directory = try TemporaryDirectory()
    let result = try KillWriterProcess.run(
      "file-size-limit", directory.store, 400_000, ignoring ? 1 : 0)
    #expect(result.status == 0, "\(result.output)")
  }
}
