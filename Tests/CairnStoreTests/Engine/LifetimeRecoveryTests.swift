import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// A power cut that leaves only what was synced.
private struct OldestCut: CutChooser {
  mutating func version(of count: Int) -> Int { 0 }
  mutating func tearsSector() -> Bool { false }
  mutating func keepsOldWord() -> Bool { true }
  mutating func length(of count: Int) -> Int { 0 }
  mutating func persistsName() -> Bool { false }
  mutating func fillsUnwritten() -> Bool { false }
  mutating func junk(of count: Int) -> Int { 0 }
  mutating func isHostile() -> Bool { false }
}

@Suite("Changed lifetimes after a crash, a close and a backup")
final class LifetimeRecoveryTests: StoreSuite {
  @Test("A lifetime survives a kill and a close, with and without a checkpoint")
  func reopened() throws {
    var store = try makeStore()
    for number in 0..<40 {
      try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(10))
    }
    for number in stride(from: 0, to: 40, by: 2) {
      try store.setLifetime(.seconds(Int64(100 + number)), forKey: "key\(number)")
    }
    try store.setLifetime(.seconds(300), forKey: "key4")
    try store.setLifetime(.seconds(200), forKey: "key4")
    let ends = try store.ends()
    #expect(Set(ends.values).count == 21)
    func check(_ store: Store, _ source: RecoveryReport.Source) throws {
      #expect(try store.ends() == ends)
      #expect(try store.auditUsage() == [])
      #expect(try store.statistics().recovery.source == source)
      try store.close()
    }
    try check(reopenedAfterKill("killed"), .scan)
    try store.checkpoint()
    try check(reopenedAfterKill("with checkpoint"), .checkpoint)
    try store.close()
    store = try makeStore()
    #expect(try store.ends() == ends)
    try store.close()
    let image = try Image(of: directory.store)
    let name = FileName.checkpoint(try image.manifest.checkpointID)
    try image.flipping(name, at: 40).write(to: directory("damaged"))
    try check(Store(directory("damaged"), .small(clock: clock)), .scan)
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("A power cut takes back a lifetime that is not durable, and keeps one that is")
  func powerCut() throws {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: 1)
    let store = try process.open(.simulated(clock))
    for key in ["a", "b"] {
      try store.setValue("v", forKey: key, lifetime: .seconds(10), durability: .durable)
    }
    #expect(try store.setLifetime(.seconds(60), forKey: "a", durability: .durable))
    #expect(try store.setLifetime(.seconds(60), forKey: "b", durability: .process))
    process.kill()
    var chooser = OldestCut()
    let cut = disk.afterPowerCut(&chooser)
    let again = try SimulatedProcess.start(on: cut, seed: 2).open(.simulated(clock))
    #expect(try end(again, "a") == 60)
    #expect(try end(again, "b") == 10)
  }

  @Test("A backup has the later ends")
  func backup() throws {
    let store = try makeStore()
    for number in 0..<40 {
      try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(10))
    }
    for number in 0..<30 { try store.setLifetime(.seconds(50), forKey: "key\(number)") }
    let ends = try store.ends()
    try store.snapshot().backup(to: directory("copy"))
    let copy = try Store(directory("copy"), .small(clock: clock), background: queue)
    #expect(try copy.statistics().recovery.source == .checkpoint)
    #expect(try copy.ends() == ends)
    #expect(try copy.auditUsage() == [])
    try copy.close()
    // Without its checkpoint, the copy is opened from the log alone.
    var image = try Image(of: directory("copy"))
    image.files = image.files.filter { !$0.key.hasPrefix("ckpt-") }
    try image.write(to: directory("other"))
    #expect(try Store(directory("other"), .small(clock: clock), background: queue).ends() == ends)
  }
}
