import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("A store whose sync failed")
struct SyncFailureTests {
  private let configuration = StoreConfiguration.simulated(ManualClock())
  private func value(_ index: Int) -> [UInt8] { [UInt8](repeating: UInt8(index), count: 900) }

  /// A disk on which a sync failed after six puts. The first of them was durable, and the process
  /// died of the failure. What reached the disk depends on the seed.
  private func disk(seed: UInt64) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: seed)
    let store = try process.open(configuration)
    try store.setValue(value(0), forKey: "0", durability: .durable)
    for index in 1..<6 { try store.setValue(value(index), forKey: "\(index)") }
    process.fileSystem.intervene = { $0 == .synchronizeData ? .fail(SystemError.inputOutput) : nil }
    #expect(throws: StoreError.self) { try store.sync() }
    process.kill()
    return disk
  }

  @Test("The store opens before a restart, with the durable data and a prefix of the rest")
  func opens() throws {
    // Found by CrashFuzzer, seed 50. After a failed sync, the kernel treats pages as clean that are
    // not on disk. The next process drops them from the cache, as it must, and finds a hole in the
    // log that only a power cut leaves, although the boot identifier shows that the machine has not
    // restarted. Nothing durable is missing.
    var tornCount = 0
    for seed in 0..<40 as Range<UInt64> {
      let disk = try disk(seed: seed)
      // Otherwise the open writes out what the cache still has, and nothing is missing.
      disk.dropCaches()
      let process = SimulatedProcess.start(on: disk, seed: 1)
      let store = try process.open(configuration)
      let count = try store.count()
      #expect((1...6).contains(count))
      for index in 0..<count { #expect(try store.value(forKey: "\(index)") == value(index)) }
      if count < 6 { tornCount += 1 }
      process.kill()
    }
    // Otherwise there was nothing to find.
    #expect(tornCount > 10)
  }

  @Test("Reading, checking and salvaging the store use the same rule")
  func others() throws {
    // Each of these calls reads the log by itself.
    for seed in 0..<10 as Range<UInt64> {
      let disk = try disk(seed: seed)
      // Find what the recovery will find: the cache still shows what the disk never received.
      disk.dropCaches()
      let reader = SimulatedProcess.start(on: disk, seed: 1)
      let count = try reader.open(configuration, readOnly: true).count()
      #expect((1...6).contains(count))
      reader.kill()
      let other = SimulatedProcess.start(on: disk, seed: 2)
      let report = try Store.verify(path: SimulatedProcess.path, environment: other.environment)
      #expect(report.errors.isEmpty)
      other.kill()
      let third = SimulatedProcess.start(on: disk, seed: 3)
      let copy = try Store.salvage(
        path: SimulatedProcess.path, to: "/copy", environment: third.environment,
        segmentByteLimit: 64 << 10, clock: configuration.clock)
      #expect(copy.entryCount == count)
      #expect(copy.losses.isEmpty)
      #expect(try third.open(configuration).count() == count)
      third.kill()
    }
  }

  @Test("Once the store was recovered, damage counts as damage again")
  func markIsCleared() throws {
    let disk = try disk(seed: 3)
    #expect(disk.contents(of: "/store/LOCK")?.count == 1)
    let process = SimulatedProcess.start(on: disk, seed: 1)
    _ = try process.open(configuration)
    process.kill()
    #expect(disk.contents(of: "/store/LOCK") == [])
  }

  @Test(
    "What the next session makes durable relies on the disk, even if the old store still exists")
  func sameProcess() throws {
    // Found in a review. The open drops the segments from the cache to see what the disk has, but
    // the kernel keeps mapped pages. The poisoned store of the same process still mapped them, so
    // its pages counted as durable, were sealed, and were gone after the next power cut.
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(sectorByteCount: 4096)
      let process = SimulatedProcess.start(on: disk, seed: seed)
      let old = try process.open(configuration)
      for index in 0..<8 { try old.setValue(value(index), forKey: "\(index)") }
      process.fileSystem.intervene = {
        $0 == .synchronizeData ? .fail(SystemError.inputOutput) : nil
      }
      #expect(throws: StoreError.self) { try old.sync() }
      process.fileSystem.intervene = nil
      let new = try process.reopen(configuration)
      let count = try new.count()
      try new.setValue(value(9), forKey: "9", durability: .durable)
      try new.close()
      withExtendedLifetime(old) {}
      process.kill()
      let next = SimulatedProcess.start(on: disk.settled(), seed: 1)
      #expect(try next.open(configuration).count() == count + 1)
      next.kill()
    }
  }

  @Test("A mark that a recovery left does not hide damage forever")
  func staleMark() throws {
    // Found in a review. Only the last act of a recovery cleared the mark. If the process died just
    // before, the store was clean and nothing cleared the mark. After the next kill, damage in the
    // middle of the log counted as a torn tail, and acknowledged writes were silently dropped.
    let disk = try disk(seed: 3)
    let second = SimulatedProcess.start(on: disk, seed: 1)
    var isSwitched = false
    second.fileSystem.intervene = { call in
      if isSwitched, call == .allocate || call == .truncate { return .die }
      if call == .exchange { isSwitched = true }
      return nil
    }
    _ = try? second.open(configuration)
    #expect(second.fileSystem.isDead)
    second.kill()
    #expect(disk.contents(of: "/store/LOCK")?.count == 1)
    let third = SimulatedProcess.start(on: disk, seed: 2)
    _ = try third.open(configuration)
    third.kill()
    #expect(disk.contents(of: "/store/LOCK") == [])
  }

  @Test("What a recovery reads was written out and dropped from the cache before")
  func order() throws {
    let disk = SimulatedDisk()
    let first = SimulatedProcess.start(on: disk, seed: 1)
    try first.open(configuration).setValue(value(1), forKey: "1")
    first.kill()
    let second = SimulatedProcess.start(on: disk, seed: 2)
    var calls: [SimulatedFileSystem.Call] = []
    second.fileSystem.intervene = { call in
      calls.append(call)
      return nil
    }
    _ = try second.open(configuration)
    second.kill()
    let drop = try #require(calls.firstIndex(of: .dropCache))
    #expect(calls[drop - 1] == .synchronizeData)
    #expect(calls[drop...].contains(.read))
  }
}
