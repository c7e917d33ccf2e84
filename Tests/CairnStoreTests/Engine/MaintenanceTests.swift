import CairnLibC
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Maintenance")
struct MaintenanceTests {
  let clock = ManualClock()
  let disk = SimulatedDisk()

  func open(
    capacity: Int? = nil, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws -> (process: SimulatedProcess, store: Store) {
    disk.capacity = capacity
    let process = SimulatedProcess.start(on: disk, seed: 1)
    return (process, try process.open(.small(clock: clock, change)))
  }

  func fill(_ store: Store, _ count: Int, byteCount: Int = 1000) throws {
    for number in 0..<count {
      try store.setValue([UInt8](repeating: 5, count: byteCount), forKey: "\(number)")
    }
  }

  func numbers(_ store: Store) throws -> [Int] {
    try store.contents().keys.compactMap { Int($0) }.sorted()
  }

  // MARK: Free space

  @Test("Free space comes from the least recently used, and no more are removed than needed")
  func freeSpace() throws {
    let (process, store) = try open(capacity: 4 << 20)
    defer { process.kill() }
    try fill(store, 2500)
    let free = 2 << 20
    #expect(disk.capacity.map { $0 - disk.allocatedByteCount } ?? 0 < free)
    let removed = try store.trim(.toFreeDiskSpace(free))
    #expect((4 << 20) - disk.allocatedByteCount >= free)
    let left = try numbers(store)
    #expect(left == Array((2500 - left.count)..<2500), "the newest are left")
    #expect(removed.count == 2500 - left.count)
    // The log takes somewhat more than the live bytes: a segment that is being filled, and the
    // next.
    #expect(left.count > 1500, "\(left.count)")
    #expect(try store.trim(.toFreeDiskSpace(free)).count == 0)
  }

  @Test("Dead space is reclaimed before anything live is removed")
  func deadSpace() throws {
    let (process, store) = try open(capacity: 4 << 20) { $0.spaceBound = 100 }
    defer { process.kill() }
    for _ in 0..<5 { try fill(store, 500) }
    #expect((4 << 20) - disk.allocatedByteCount < 3 << 20)
    #expect(try store.trim(.toFreeDiskSpace(3 << 20)).count == 0)
    #expect((4 << 20) - disk.allocatedByteCount >= 3 << 20)
    #expect(try numbers(store) == Array(0..<500))
  }

  @Test("If other programs have filled the disk, everything is removed, and the call ends")
  func filledByOthers() throws {
    let (process, store) = try open(capacity: 4 << 20)
    defer { process.kill() }
    try fill(store, 100)
    #expect(try store.trim(.toFreeDiskSpace(5 << 20)).count == 100)
    #expect(try store.count() == 0)
    try store.setValue("v", forKey: "goes on")
  }

  @Test("On a disk without a free block, a trim reclaims space", arguments: [200, 4000])
  func fullDisk(byteCount: Int) throws {
    let (process, store) = try open(capacity: 2 << 20)
    defer { process.kill() }
    var count = 0
    while storeError({
      try store.setValue([UInt8](repeating: 5, count: byteCount), forKey: "\(count)")
    }) == nil { count += 1 }
    // A waiting job holds a segment, whose space is free only afterwards.
    process.queue.runAll(dueAfter: .zero)
    try store.trim(.toFreeDiskSpace(1 << 20))
    process.queue.runAll(dueAfter: .zero)
    // The log allocates the next segment ahead.
    #expect((2 << 20) - disk.allocatedByteCount >= (1 << 20) - (128 << 10))
    let left = try numbers(store)
    #expect(left == Array((count - left.count)..<count))
    #expect(left.count > count / 4, "\(left.count) of \(count)")
    try fill(store, 10)
  }

  // MARK: Rounds

  @Test("Rounds remove expired entries while the store is open")
  func expired() throws {
    let (process, store) = try open { $0.maintenanceInterval = .seconds(30) }
    defer { process.kill() }
    try fill(store, 10)
    process.queue.runAll(dueAfter: .zero)
    try store.setValue("v", forKey: "short", lifetime: .seconds(20))
    #expect(process.queue.delays == [.seconds(30)])
    clock.advance(by: .seconds(30))
    #expect(try store.statistics().count == 11)
    process.queue.runAll(dueAfter: .seconds(30))
    #expect(try store.statistics().count == 10)
    // The same again, for an entry of a batch.
    try store.write { try $0.setValue("v", forKey: "short", options: .lifetime(.seconds(20))) }
    clock.advance(by: .seconds(30))
    process.queue.runAll(dueAfter: .seconds(30))
    #expect(try store.statistics().count == 10)
    try store.close()
    process.queue.runAll(dueAfter: .seconds(30))
    #expect(process.queue.delays == [], "nothing holds a store that was closed")
  }

  @Test("Rounds also remove entries made by large writes alone")
  func largeWritesAlone() throws {
    let (process, store) = try open {
      $0.maintenanceInterval = .seconds(30)
      $0.asideOperationCount = 10
    }
    defer { process.kill() }
    try store.write { batch in
      for number in 0..<20 {
        try batch.setValue("v", forKey: "\(number)", options: .lifetime(.seconds(20)))
      }
    }
    process.queue.runAll(dueAfter: .zero)
    clock.advance(by: .seconds(30))
    process.queue.runAll(dueAfter: .seconds(30))
    #expect(try store.statistics().count == 0)
    try store.close()
  }

  @Test("Rounds begin with the open if entries can expire or space must stay free")
  func opening() throws {
    do {
      let (process, store) = try open()
      try store.setValue("v", forKey: "short", lifetime: .seconds(20))
      try store.close()
      process.kill()
    }
    let (process, store) = try open()
    defer { process.kill() }
    #expect(process.queue.delays.contains(.seconds(60)))
    clock.advance(by: .seconds(60))
    process.queue.runAll(dueAfter: .seconds(60))
    #expect(try store.statistics().count == 0)
  }

  @Test("Rounds keep the floor of free space")
  func floor() throws {
    let (process, store) = try open(capacity: 4 << 20) {
      $0.freeDiskSpaceFloor = 2 << 20
      $0.maintenanceInterval = .seconds(1)
    }
    defer { process.kill() }
    try fill(store, 2500)
    process.queue.runAll(dueAfter: .seconds(1))
    #expect((4 << 20) - disk.allocatedByteCount >= 2 << 20)
    #expect(try store.count() > 1000)
    #expect(try numbers(store).last == 2499)
  }

  @Test(
    "Later processes reclaim what processes killed before a round leave",
    arguments: [(expires: true, hasRounds: true), (false, true), (false, false)])
  func killedEarly(expires: Bool, hasRounds: Bool) throws {
    var most = 0
    for session in 0..<100 {
      let (process, store) = try open {
        if !hasRounds { $0.maintenanceInterval = nil }
      }
      for number in 0..<20 {
        try store.setValue(
          [UInt8](repeating: 5, count: 1000), forKey: "\(expires ? session : 0) \(number)",
          lifetime: expires ? .seconds(60) : .standard)
        // The queue runs only after a write, which requests maintenance.
        process.queue.runAll(dueAfter: .zero)
      }
      clock.advance(by: .seconds(17))
      process.kill()
      most = max(most, disk.allocatedByteCount)
    }
    // At most 80 KB are live, 2 MB were written.
    #expect(most < 700 << 10, "\(most)")
  }

  @Test(
    "Processes that begin with a removal also reclaim what killed ones leave",
    arguments: [true, false])
  func killedEarly(removesMany: Bool) throws {
    var most = 0
    for _ in 0..<100 {
      let (process, store) = try open { $0.maintenanceInterval = nil }
      if removesMany {
        try store.removeValues(forKeys: ["0", "1", "2"])
      } else {
        try store.removeValue(forKey: "0")
      }
      try fill(store, 20)
      process.queue.runAll(dueAfter: .zero)
      process.kill()
      most = max(most, disk.allocatedByteCount)
    }
    #expect(most < 700 << 10, "\(most)")
  }

  @Test("Processes that end early also keep the floor of free space")
  func floorKeptEarly() throws {
    for session in 0..<60 {
      let (process, store) = try open(capacity: 4 << 20) {
        $0.segmentByteLimit = 8 << 20
        $0.freeDiskSpaceFloor = 3 << 20
      }
      try fill(store, 30, byteCount: 1000 + session)
      try store.setValue([UInt8](repeating: 5, count: 30_000), forKey: "\(1000 + session)")
      process.queue.runAll(dueAfter: .zero)
      try store.close()
      process.queue.runAll(dueAfter: .zero)
      // Allows for one session's writes in addition.
      #expect(disk.allocatedByteCount < (1 << 20) + (256 << 10), "\(session)")
    }
  }

  @Test(
    "Processes that are killed early leave no more to replay than one process may",
    arguments: [true, false])
  func replayedEarly(hasRounds: Bool) throws {
    for session in 0..<60 {
      let (process, store) = try open {
        $0.checkpointByteThreshold = 64 << 10
        if !hasRounds { $0.maintenanceInterval = nil }
      }
      #expect(try store.statistics().recovery.replayedRecordCount < 200)
      for number in 0..<20 {
        try store.setValue([UInt8](repeating: 5, count: 1000), forKey: "\(session) \(number)")
        process.queue.runAll(dueAfter: .zero)
      }
      process.kill()
    }
  }

  @Test("A store that is open for reading changes nothing")
  func readsOnly() throws {
    let (first, store) = try open()
    for _ in 0..<100 { try fill(store, 20) }
    first.kill()
    let before = disk.allocatedByteCount
    #expect(before > 2 << 20)
    let process = SimulatedProcess.start(on: disk, seed: 1)
    defer { process.kill() }
    let reader = try process.open(.small(clock: clock), readOnly: true)
    #expect(try reader.value(forKey: "3") == [UInt8](repeating: 5, count: 1000))
    process.queue.runAll()
    #expect(disk.allocatedByteCount == before)
  }

  @Test("A session that does not write reclaims the dead space that earlier sessions left")
  func deadSpaceOfOthers() throws {
    let (first, store) = try open()
    for _ in 0..<100 { try fill(store, 20) }
    try store.trim(.toCount(5))
    first.kill()
    let before = disk.allocatedByteCount
    let (process, reopened) = try open()
    defer { process.kill() }
    process.queue.runAll(dueAfter: .zero)
    #expect(disk.allocatedByteCount < before / 4)
    #expect(try reopened.count() == 5)
  }

  @Test("Without an interval, nothing runs by itself; maintain does all of it")
  func byHand() throws {
    let (process, store) = try open { $0.maintenanceInterval = nil }
    defer { process.kill() }
    try store.setValue("v", forKey: "short", lifetime: .seconds(20))
    #expect(process.queue.delays.allSatisfy { $0 == .zero })
    clock.advance(by: .seconds(20))
    try store.maintain()
    #expect(try store.statistics().count == 0)
    try store.close()
    let reader = try process.open(.small(clock: clock), readOnly: true)
    #expect(throws: StoreError.readOnly(path: SimulatedProcess.path)) { try reader.maintain() }
  }

  @Test("Compaction uses all of what spaceBound allows before it copies, and counts what it writes")
  func wholeAllowance() throws {
    let scene = try StoreScene()
    let store = try scene.open {
      $0.spaceBound = 2; $0.deadByteFloor = 0
    }
    let value = [UInt8](repeating: 1, count: 1000)
    // A sixth of each segment stays live, so that none is removed without a copy.
    for number in 0..<900 { try store.setValue(value, forKey: "key \(number)") }
    var highest = 0
    var statistics = try store.statistics()
    for number in 0..<1800 where number % 6 > 0 {
      try store.setValue(value, forKey: "key \(number % 900)")
      statistics = try store.statistics()
      if statistics.compactedByteCount > 0 { break }
      highest = max(highest, statistics.allocatedByteCount - statistics.liveByteCount)
      scene.queue.runAll()
    }
    #expect(statistics.compactedByteCount > 0)
    #expect(highest > statistics.liveByteCount * 9 / 10)
    #expect(statistics.segments.reduce(0) { $0 + $1.liveByteCount } == statistics.liveByteCount)
    try store.close()
  }

  /// Found by FaultFuzzer: rolling a segment requested the next pass, which failed in the same way,
  /// forever.
  @Test("A pass that fails on a full disk is not retried at once")
  func failingPass() throws {
    let scene = try StoreScene()
    let store = try scene.open {
      $0.spaceBound = 1.1; $0.deadByteFloor = 0
    }
    let passCount = Atomic(0)
    let value = [UInt8](repeating: 1, count: 1000)
    for number in 0..<80 { try store.setValue(value, forKey: "key \(number)") }
    scene.queue.runAll()
    // Many bytes are dead in the sealed segment and in the segments rolled since.
    for number in 0..<160 { try store.setValue(value, forKey: "key \(number % 40)") }
    // No segment can be sealed, and none is compacted.
    scene.fileSystem.setHook { event in
      if event.call == .open, event.file == FileName.newManifest {
        passCount.add(1, ordering: .relaxed)
      }
      return event.call == .allocate ? ENOSPC : nil
    }
    var jobCount = 0
    while jobCount < 200, scene.queue.runFirst() { jobCount += 1 }
    #expect(jobCount < 20)
    let count = passCount.load(ordering: .relaxed)
    #expect((1..<20).contains(count))
    scene.fileSystem.setHook(nil)
    scene.queue.runAll(dueAfter: .seconds(1))
    try store.setValue("v", forKey: "another")
    try store.maintain()
    #expect(try store.statistics().segmentCount < 6)
    try store.close()
  }

  @Test("If no thread can be started, a later write starts maintenance")
  func threads() throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.maintenanceInterval = .seconds(60) }
    scene.queue.discardAll()
    scene.queue.refuses = true
    try store.setValue("v", forKey: "a", lifetime: .seconds(10))
    try store.setValue([UInt8](repeating: 1, count: 100_000), forKey: "b")
    #expect(scene.queue.delays == [])
    scene.queue.refuses = false
    // Not each write tries to start a thread.
    for number in 0..<300 { try store.setValue("v", forKey: "\(number)") }
    #expect(scene.queue.delays.contains(.seconds(60)))
    scene.clock.advance(by: .seconds(60))
    scene.queue.runAll(dueAfter: .seconds(60))
    #expect(try store.trim(.expired).count == 0)
    try store.close()
  }
}
