import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("Regression: reading")
struct RegressionReadingTests {
  @Test("A value near the end of a sealed segment is read without a mapping")
  func endOfSealedSegment() throws {
    // Sealing cut the file at its last record, and a read by calls asked for 4 KiB whatever was
    // left: the last records of every sealed segment were called corrupt.
    let scene = try RegressionScene()
    let store = try scene.open { $0.access = .systemCalls }
    for index in 0..<1000 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    scene.queue.runAll(dueAfter: .zero)
    for index in 0..<1000 {
      #expect(try store.value(forKey: "key\(index)") == [UInt8].filled(300))
    }
  }

  @Test("A read that began before a segment was cut at its end still finds the record")
  func sealedWhileReading() throws {
    // The bound of a read is asked first, and the file is read after: a segment sealed in between
    // was shorter than the bound, and an intact record was called corrupt.
    let scene = try RegressionScene()
    let store = try scene.open { $0.access = .systemCalls }
    for index in 0..<1000 { try store.setValue([UInt8].filled(300), forKey: "key\(index)") }
    var rolled = SegmentHeader.byteCount
    // The last record of the first segment, which has not been sealed: nothing was drained.
    let bytes = try scene.bytes(of: RegressionScene.segment)
    var last: [UInt8] = []
    while let header = bytes.withSpan({
      RecordHeader(decoding: $0.extracting(rolled..<$0.byteCount), limit: $0.byteCount - rolled)
    }), header.kind != .roll {
      last = Array(bytes[(rolled + header.keyRange.lowerBound)...].prefix(header.keyByteCount))
      rolled += header.byteCount
    }
    let queue = scene.queue
    scene.fileSystem.setHook { event in
      if event.call == .read { queue.runAll(dueAfter: .zero) }
      return nil
    }
    #expect(try store.value(forKey: last) == [UInt8].filled(300))
  }

  @Test("A damaged key length at the end of a sealed segment throws")
  func damagedKeyLength() async {
    // The header's checksum was run over as many bytes as the damaged length said, beyond the end
    // of the file that sealing had cut: SIGBUS killed the process.
    await #expect(processExitsWith: .success) {
      let scene = try RegressionScene()
      let store = try scene.open { $0.segmentByteLimit = 1 << 20 }
      for index in 0..<60 { try store.setValue([UInt8].filled(10_000), forKey: "k\(index)") }
      try store.setValue([UInt8].filled(500_000), forKey: "next")
      scene.queue.runAll(dueAfter: .zero)
      let record = (24 + 3 + 10_000 + 7) & ~7
      try scene.edit { $0[$0.count - RecordHeader.rollByteCount - record + 21] = 0xF0 }
      #expect(throws: StoreError.self) { try store.value(forKey: "k59") }
      // The whole length is the file's to lose, so what lies before is untouched.
      #expect(try store.value(forKey: "k58") == [UInt8].filled(10_000))
    }
  }

  @Test(
    "Without a mapping, a look at an entry does not read its value",
    arguments: ["contains", "info", "overwrite", "remove", "forEachKey", "count"])
  func looksReadHeadsOnly(operation: String) throws {
    // Every look read the whole record: `contains` on a value of 200 MiB took 200 MiB of memory.
    let scene = try RegressionScene()
    let store = try scene.open { $0.access = .systemCalls }
    try store.setValue([UInt8].filled(4 << 20), forKey: "big", lifetime: .seconds(3600))
    let before = scene.fileSystem.readByteCount
    switch operation {
    case "contains": #expect(try store.contains("big"))
    case "info": #expect(try store.info(forKey: "big")?.valueByteCount == 4 << 20)
    case "overwrite": try store.setValue("small", forKey: "big")
    case "remove": #expect(try store.removeValue(forKey: "big"))
    case "forEachKey": try store.forEachKey { _ in .next }
    default: #expect(try store.count() == 1)
    }
    #expect(scene.fileSystem.readByteCount - before < 64 << 10)
  }

  @Test("A compare-and-set on a damaged record throws", arguments: [nil, 1] as [UInt64?])
  func compareAndSetOnDamage(expected: UInt64?) throws {
    // A record that could not be read counted as absent, so `expecting: nil` overwrote a key that
    // was there.
    let scene = try RegressionScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "the key")
    try scene.damage("the key")
    #expect(throws: StoreError.self) {
      try store.compareAndSet("other", forKey: "the key", expecting: expected)
    }
    #expect(try store.statistics().lastVersion == 1)
  }
}
