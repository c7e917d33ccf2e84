import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// What a process leaves if it dies during a compaction and the manifest is then lost.
@Suite("Salvage: the old and the new files of a compaction")
struct SalvageAfterCompactionTests {
  /// Found by reading the code. Without a manifest, it is unknown whether the last batch of a log
  /// was applied, so if it is damaged, its keys are lost. A compaction copies only what was
  /// applied. But the old record came first, and the sound copy was not used.
  @Test("The last batch is damaged, and the copies of its records are sound")
  func batchWithCopies() throws {
    let disk = SimulatedDisk()
    let first = SimulatedProcess.start(on: disk, seed: 1)
    let value = [UInt8](repeating: 0x77, count: 40)
    do {
      let store = try first.open(.simulated(ManualClock()))
      for byte in [1, 2] as [UInt8] { try store.setValue([byte], forKey: "a") }
      try store.write { batch in
        try batch.setValue(value, forKey: "b")
        try batch.setValue([3], forKey: "c")
      }
    }
    first.kill()
    let second = SimulatedProcess.start(on: disk, seed: 2)
    do {
      let store = try second.open(.simulated(ManualClock()))
      var hasSwitched = false
      second.fileSystem.intervene = { call in
        if call == .exchange || call == .rename { hasSwitched = true }
        return hasSwitched && call == .unlink ? .die : nil
      }
      _ = try? store.compact()
    }
    #expect(second.fileSystem.isDead)
    second.kill()

    let names = disk.names(at: SimulatedProcess.path).filter { FileName.isSegment($0) }.sorted()
    try #require(names.count == 2)
    let old = "\(SimulatedProcess.path)/\(names[0])"
    var bytes = try #require(disk.contents(of: old))
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: value) })
    bytes[place] ^= 1
    disk.setContents(bytes, of: old)
    disk.setContents(nil, of: "\(SimulatedProcess.path)/\(FileName.manifest)")

    let third = SimulatedProcess.start(on: disk, seed: 3)
    defer { third.kill() }
    let report = try Store.salvage(
      path: SimulatedProcess.path, to: "/copy", environment: third.environment,
      segmentByteLimit: 64 << 10, clock: ManualClock())
    #expect(report.lostKeyCount == 0 && report.entryCount == 3)
    let copy = try Store(
      path: "/copy", configuration: .simulated(ManualClock()), environment: third.environment,
      readOnly: true)
    #expect(try copy.entry(forKey: "b")?.value == value)
    #expect(try copy.entry(forKey: "c")?.value == [3])
    try copy.close()
  }
}
