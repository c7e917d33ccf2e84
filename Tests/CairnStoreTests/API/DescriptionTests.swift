import CairnRepair
import FuzzSupport
import Testing

@testable import CairnStore

@Suite("What a store and its reports print")
struct DescriptionTests {
  @Test("Statistics print as lines with readable sizes, counts and times")
  func statistics() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small())
    #expect("\(store)" == "Store at \(directory.store)")
    var statistics = try store.statistics()
    statistics.count = 1234
    statistics.liveByteCount = 3 << 19
    statistics.deadByteCount = 100
    statistics.allocatedByteCount = 4 << 20
    statistics.segments = [
      SegmentStatistics(
        id: 1, liveByteCount: 0, deadByteCount: 0, tombstoneCount: 0, byteCount: 0,
        allocatedByteCount: 0, isSealed: false)
    ]
    statistics.indexByteCount = 2048
    #expect(
      "\(statistics)" == """
        1,234 keys, 1.5 MiB live, 100 B dead, 4.0 MiB on disk in 1 segment, 2.0 KiB of memory for the index
        opened as a new store
        """)
    statistics.pinnedByteCount = 1024
    statistics.delayedWriteCount = 2
    statistics.writeDelay = .milliseconds(340)
    statistics.recovery.source = .scan
    statistics.recovery.wasClean = false
    statistics.recovery.replayedRecordCount = 1
    statistics.recovery.tornByteCount = 12
    statistics.recovery.clockLag = .seconds(200)
    statistics.recovery.quarantinedFiles = ["a", "b"]
    let lines = "\(statistics)".split(separator: "\n")
    #expect(lines.first?.contains(", 1.0 KiB still read from, ") == true)
    #expect(
      lines.dropFirst().map(String.init) == [
        "2 writes waited 340 ms in all for compaction",
        "opened by reading the log: 1 record read, not closed before, 12 unfinished bytes discarded, 2 files set "
          + "aside, the clock is 3 min 20 s behind",
      ])
    try store.close()
  }

  @Test("Reports are one line, plus one for each of the first ten places")
  func reports() throws {
    var verification = CheckReport()
    verification.recordCount = 1
    verification.byteCount = 2 << 30
    #expect("\(verification)" == "1 sound record in 2.0 GiB, stopped before the end, no damage")
    verification.isComplete = true
    #expect("\(verification)" == "1 sound record in 2.0 GiB, no damage")
    verification.damage = (0..<12).map {
      Damage(place: Corruption(file: "f", offset: $0, cause: .badValue))
    }
    let lines = "\(verification)".split(separator: "\n")
    #expect(lines.first == "1 sound record in 2.0 GiB, 12 damaged places")
    #expect(lines.dropFirst().first == "  \(verification.damage[0])")
    #expect(lines.count == 12 && lines.last == "  and 2 more")
    var salvage = SalvageReport()
    salvage.entryCount = 2
    salvage.byteCount = 10
    #expect("\(salvage)" == "2 entries salvaged, 10 B, complete")
    salvage.lostKeyCount = 1
    salvage.lossCount = 1
    salvage.lostByteCount = 2048
    salvage.losses = [Damage(lost: 1..<2049, of: "f", .badValue, key: [65, 66])]
    salvage.kinds = [.notLocked]
    #expect(
      "\(salvage)" == """
        2 entries salvaged, 10 B, 1 key lost, 2.0 KiB unreadable in 1 place
          \(salvage.losses[0])
          warning: \(SalvageReport.Warning.notLocked)
        """)
    #expect(
      "\(CompactionReport(removedSegmentCount: 3, writtenSegmentCount: 1, byteCountBefore: 3 << 20, byteCountAfter: 1 << 20, copiedRecordCount: 5, unreadableSegmentCount: 1))"
        == "3 segments compacted into 1, 3.0 MiB before and 1.0 MiB after, 5 records copied, 1 unreadable segment left as before"
    )
    #expect(
      "\(RemovalSummary(count: 1, cost: 1234, damagedCount: 2))"
        == "1 entry removed, cost 1,234, 2 damaged ones left")
    #expect(
      "\(BackupReport(entryCount: 1, segmentCount: 2, byteCount: 2048))"
        == "1 entry backed up, 2.0 KiB in 2 segments")
  }
}
