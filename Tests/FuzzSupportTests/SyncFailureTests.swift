import CairnStore
import FuzzSupport
import Testing

@Suite("Regression: a store whose sync failed")
struct SyncFailureTests {
  private static let inputOutput: Int32 = 5
  private let configuration = StoreConfiguration.simulated(ManualClock())
  private func value(_ index: Int) -> [UInt8] { [UInt8](repeating: UInt8(index), count: 900) }

  /// A disk on which a sync failed after six puts, of which the first was durable; the process
  /// died of it. What reached the disk depends on the seed.
  private func disk(seed: UInt64) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: seed)
    let store = try process.open(configuration)
    try store.setValue(value(0), forKey: "0", durability: .durable)
    for index in 1..<6 { try store.setValue(value(index), forKey: "\(index)") }
    process.fileSystem.intervene = { $0 == .synchronizeData ? .fail(Self.inputOutput) : nil }
    #expect(throws: StoreError.self) { try store.sync() }
    process.kill()
    return disk
  }

  @Test("It opens in the same run of the machine, with what was durable and a prefix of the rest")
  func opens() throws {
    // CrashFuzzer, seed 50. After a failed sync the kernel takes pages for clean that are not on
    // disk. The next process drops them from the cache, as it must, and found a hole in the log
    // that only a power cut leaves; but the boot identifier said that the machine had not
    // restarted, so the store was refused as corrupt although nothing durable was missing.
    var tornCount = 0
    for seed in 0..<40 as Range<UInt64> {
      let disk = try disk(seed: seed)
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

  @Test("Reading it, checking it and salvaging it go by the same rule")
  func others() throws {
    // As above: each of them read the log by itself, and took the hole for damage.
    for seed in 0..<10 as Range<UInt64> {
      let disk = try disk(seed: seed)
      // What the recovery will find: the cache still shows what the disk never got.
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

  @Test("Once it was recovered, damage is damage again")
  func markIsCleared() throws {
    let disk = try disk(seed: 3)
    #expect(disk.contents(of: "/store/LOCK")?.count == 1)
    let process = SimulatedProcess.start(on: disk, seed: 1)
    _ = try process.open(configuration)
    process.kill()
    #expect(disk.contents(of: "/store/LOCK") == [])
  }
}
