import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("Extended lifetimes and compaction")
final class ExtensionCompactionTests: StoreSuite {
  /// Fills segments with values and makes every other one dead, so that they are compacted.
  private func fillAround(_ store: Store, _ body: () throws -> Void) throws {
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "filler\(number)")
      if number == 100 { try body() }
    }
    for number in stride(from: 0, to: 200, by: 2) {
      try store.removeValue(forKey: "filler\(number)")
    }
  }

  @Test("The copy of a value gets its end, and the record of the extension is dropped")
  func folded() throws {
    let store = try makeStore()
    try fillAround(store) {
      for number in 0..<30 {
        try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(10))
        try store.extendLifetime(forKey: "key\(number)", to: .seconds(Int64(20 + number)))
        try store.extendLifetime(forKey: "key\(number)", to: .seconds(Int64(200 + number)))
      }
    }
    queue.runAll()
    let ends = try store.ends()
    try store.compact()
    #expect(try store.ends() == ends)
    #expect(try store.auditUsage() == [])
    let image = try Image(of: directory.store)
    let listed = try image.manifest.sealedSegments.map { FileName.segment($0.id) }
    let records = try listed.flatMap { try image.records(in: $0) }
    #expect(records.filter { $0.header.kind == .extension }.isEmpty)
    #expect(records.filter { $0.key.starts(with: Array("key".utf8)) }.count == 30)
    let killed = try reopenedAfterKill("killed")
    #expect(try killed.ends() == ends)
    #expect(try killed.auditUsage() == [])
    try killed.close()
    try store.close()
    #expect(try makeStore().ends() == ends)
  }

  @Test(
    "Extensions whose ends were copied with the values are dropped too, even in the active segment")
  func foldedFromElsewhere() throws {
    let store = try makeStore()
    try fillAround(store) {
      for number in 0..<30 {
        try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(10))
      }
    }
    queue.runAll()
    try store.compact()
    // The active segment then has no dead record until the values have been copied.
    try store.extendLifetimes(forKeys: (0..<30).map { "key\($0)" }, to: .seconds(200))
    // Another value in the same segment dies.
    try store.setValue("w", forKey: "filler101")
    let ends = try store.ends()
    try store.compact()
    let statistics = try store.statistics()
    #expect(statistics.deadByteCount <= 24 * statistics.segmentCount)
    #expect(try store.ends() == ends)
    #expect(try store.auditUsage() == [])
    #expect(try store.compact().writtenSegmentCount == 0)
  }

  @Test(
    "An extension is copied if its value stays in place, and dropped if it is not in force")
  func copied() throws {
    let store = try makeStore { $0.checkpointRecordThreshold = 1 << 30 }
    for number in 0..<30 {
      try store.setValue(
        [UInt8](repeating: 7, count: 2500), forKey: "key\(number)", lifetime: .seconds(10))
    }
    // The extensions are in separate segments, together with values that die.
    try fillAround(store) {
      for number in 0..<20 {
        try store.extendLifetime(forKey: "key\(number)", to: .seconds(Int64(100 + number)))
      }
    }
    for number in 0..<5 {
      try store.extendLifetime(forKey: "key\(number)", to: .seconds(Int64(400 + number)))
    }
    try store.removeValue(forKey: "key5")
    queue.runAll()
    let ends = try store.ends()
    for _ in 0..<3 {
      try store.compact()
      #expect(try store.ends() == ends)
      #expect(try store.auditUsage() == [])
      let killed = try reopenedAfterKill("killed")
      #expect(try killed.ends() == ends)
      #expect(try killed.auditUsage() == [])
      try killed.close()
      try FileManager.default.removeItem(atPath: directory("killed"))
      try store.checkpoint()
    }
  }

  @Test(
    "An extension between the copy of its value and the switch is found, even by a checkpoint")
  func betweenCopyAndSwitch() throws {
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store, .small(clock: clock), fileSystem: system, background: queue)
    try fillAround(store) {
      for key in ["a", "b"] { try store.setValue("v", forKey: key, lifetime: .seconds(10)) }
      try store.extendLifetime(forKey: "a", to: .seconds(20))
    }
    queue.runAll()
    let isDone = Mutex(false)
    system.setHook { event in
      // The first output is complete.
      guard event.call == .synchronize, event.file.hasPrefix("seg-"),
        isDone.withLock({ done in
          defer { done = true }
          return !done
        })
      else { return nil }
      do {
        for key in ["a", "b"] { try store.extendLifetime(forKey: key, to: .seconds(300)) }
        try store.checkpoint()
      } catch { Issue.record(error) }
      return nil
    }
    try store.compact()
    system.setHook(nil)
    #expect(isDone.withLock { $0 })
    let manifest = try Image(of: directory.store).manifest
    #expect(manifest.checkpointID != 0)
    let ends = try store.ends()
    #expect(try end(store, "a") == 300 && end(store, "b") == 300)
    #expect(try store.auditUsage() == [])
    let killed = try reopenedAfterKill("killed")
    #expect(try killed.statistics().recovery.source == .checkpoint)
    #expect(try killed.ends() == ends)
    #expect(try killed.auditUsage() == [])
  }

  @Test("Extending forever keeps space within its bound")
  func forEver() throws {
    let store = try makeStore {
      $0.deadByteFloor = 0
      $0.spaceBound = 1.5
    }
    for number in 0..<100 {
      try store.setValue(
        [UInt8](repeating: 7, count: 2000), forKey: "key\(number)", lifetime: .seconds(100))
    }
    for _ in 0..<400 {
      clock.advance(by: .milliseconds(500))
      for number in 0..<100 {
        try store.extendLifetime(forKey: "key\(number)", to: .seconds(100))
      }
      queue.runAll()
    }
    let statistics = try store.statistics()
    #expect(try store.count() == 100)
    #expect(statistics.allocatedByteCount < 4 * 200_000)
    #expect(try store.auditUsage() == [])
    let ends = try store.ends()
    #expect(try reopenedAfterKill("killed").ends() == ends)
  }
}
