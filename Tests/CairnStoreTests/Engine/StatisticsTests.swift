import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Statistics")
struct StatisticsTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("Live and dead bytes and headers add up to the lengths of the segments after a close")
  func sums() throws {
    var generator = Seed.generator()
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, background: queue)
    for _ in 0..<600 {
      let key = "key\(Int.random(in: 0..<60, using: &generator))"
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: try store.removeValue(forKey: key)
      case 1:
        try store.write { batch in
          try batch.setValue("x", forKey: key, options: .cost(3))
          try batch.setValue("y", forKey: key)
          try batch.removeValue(forKey: "key1")
        }
      default:
        try store.setValue(
          generator.bytes(count: Int.random(in: 0..<900, using: &generator)), forKey: key)
      }
      if Int.random(in: 0..<50, using: &generator) == 0 { queue.runAll() }
    }
    try store.setValue([UInt8](repeating: 1, count: 100_000), forKey: "large")
    queue.runAll()
    let before = try store.statistics()
    try store.close()
    let image = try Image(of: directory.store).withoutReserves()
    let lengths = image.segmentNames.reduce(0) { $0 + (image.files[$1]?.count ?? 0) }
    let headers = image.segmentNames.count * SegmentHeader.byteCount
    #expect(before.segmentCount == image.segmentNames.count, Seed.comment)
    #expect(before.liveByteCount + before.deadByteCount + headers == lengths, Seed.comment)
    // An independent count: the newest record of each key is live.
    var newest: [[UInt8]: (UInt64, Int)] = [:]
    var tombstones = 0
    for name in image.segmentNames {
      let file = try #require(image.files[name])
      let base = try SegmentHeader(decoding: file.rawSpan.extracting(0..<72), file: name)
        .baseSequence
      for record in try image.records(in: name) where record.header.kind != .roll {
        let sequence = base + UInt64(record.header.sequenceDelta)
        let isPut = record.header.kind == .put
        if !isPut { tombstones += 1 }
        if newest[record.key].map({ $0.0 < sequence }) ?? true {
          newest[record.key] = (sequence, isPut ? record.header.byteCount : 0)
        }
      }
    }
    let live = newest.values.reduce(0) { $0 + $1.1 }
    #expect(before.liveByteCount == live, Seed.comment)
    #expect(before.tombstoneCount == tombstones, Seed.comment)
    #expect(before.count == newest.values.count { $0.1 > 0 }, Seed.comment)
    // The next open finds the same numbers.
    let after = try Store(directory.store).statistics()
    #expect(after.liveByteCount == before.liveByteCount, Seed.comment)
    #expect(after.deadByteCount == before.deadByteCount, Seed.comment)
    #expect(after.tombstoneCount == before.tombstoneCount, Seed.comment)
    #expect(after.count == before.count, Seed.comment)
    #expect(after.segmentCount == before.segmentCount, Seed.comment)
    #expect(after.lastVersion == before.lastVersion, Seed.comment)
    #expect(after.formatVersion == "1.0" && after.libraryVersion == "0.1.0")
  }
}
