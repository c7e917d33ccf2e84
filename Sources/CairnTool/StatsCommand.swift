import Cairn

/// `stats`: the state of a store, for a person or a program.
enum StatsCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let (keyCount, statistics) = try location.read { store in
      (try store.count(), try store.statistics())
    }
    if invocation.has(.json) {
      try console.print(json(keyCount, statistics).text)
    } else {
      for (label, value) in rows(keyCount, statistics) {
        let gap = String(repeating: " ", count: max(1, 14 - label.count))
        try console.print(label + gap + value)
      }
    }
  }

  private static func json(_ keyCount: Int, _ statistics: StoreStatistics) -> JSON {
    let recovery = statistics.recovery
    return .object([
      ("keys", .integer(keyCount)),
      ("liveBytes", .integer(statistics.liveByteCount)),
      ("deadBytes", .integer(statistics.deadByteCount)),
      ("allocatedBytes", .integer(statistics.allocatedByteCount)),
      ("segments", .integer(statistics.segmentCount)),
      (
        "segmentList",
        .array(
          statistics.segments.sorted { $0.id < $1.id }.map { segment in
            .object([
              ("id", .integer(Int(clamping: segment.id))),
              ("liveBytes", .integer(segment.liveByteCount)),
              ("deadBytes", .integer(segment.deadByteCount)),
              ("tombstones", .integer(segment.tombstoneCount)),
              ("bytes", .integer(segment.byteCount)),
              ("allocatedBytes", .integer(segment.allocatedByteCount)),
              ("sealed", .bool(segment.isSealed)),
            ])
          })
      ),
      ("tombstones", .integer(statistics.tombstoneCount)),
      ("pinnedBytes", .integer(statistics.pinnedByteCount)),
      ("indexBytes", .integer(statistics.indexByteCount)),
      ("formatVersion", .string(statistics.formatVersion)),
      (
        "recovery",
        .object([
          ("source", .string(recovery.source.rawValue)),
          ("clean", .bool(recovery.wasClean)),
          ("recordsReplayed", .integer(recovery.replayedRecordCount)),
          ("tornBytes", .integer(recovery.tornByteCount)),
          ("damagedValues", .array(recovery.damagedValues.map(\.json))),
          (
            "quarantinedFiles",
            .array(recovery.quarantinedFiles.map { JSON.string($0) })
          ),
          ("clockWentBack", .bool(recovery.clockWentBack)),
        ])
      ),
    ])
  }

  private static func rows(
    _ keyCount: Int, _ statistics: StoreStatistics
  ) -> [(label: String, value: String)] {
    let recovery = statistics.recovery
    var rows = [
      ("keys", DisplayText.count(keyCount)),
      ("live", DisplayText.exactSize(statistics.liveByteCount)),
      ("dead", DisplayText.exactSize(statistics.deadByteCount)),
      ("allocated", DisplayText.exactSize(statistics.allocatedByteCount)),
      ("segments", DisplayText.count(statistics.segmentCount)),
      ("tombstones", DisplayText.count(statistics.tombstoneCount)),
      ("index", DisplayText.exactSize(statistics.indexByteCount) + " of memory"),
      ("format", statistics.formatVersion),
      (
        "last open",
        "by \(recovery.source.rawValue), \(recovery.wasClean ? "clean" : "not closed before"); "
          + "\(DisplayText.count(recovery.replayedRecordCount, "record")) replayed, "
          + "\(DisplayText.count(recovery.tornByteCount, "torn byte")) discarded"
      ),
    ]
    if recovery.clockWentBack {
      rows.append(("clock", "stands more than a day before the last time in the store"))
    }
    if statistics.pinnedByteCount > 0 {
      rows.append(("pinned", DisplayText.exactSize(statistics.pinnedByteCount) + " still read"))
    }
    rows += statistics.segments.sorted { $0.id < $1.id }.map(row)
    rows += recovery.damagedValues.map { ("damaged", $0.description) }
    rows += recovery.quarantinedFiles.map { ("quarantined", DisplayText.line(Array($0.utf8))) }
    return rows
  }

  /// How much of a segment is live and dead.
  private static func row(_ segment: SegmentStatistics) -> (label: String, value: String) {
    let total = segment.liveByteCount + segment.deadByteCount
    // Rounded down, so that nothing counts as whole that is not.
    let share = total > 0 ? segment.liveByteCount * 100 / total : 0
    let value =
      "\(DisplayText.exactSize(segment.byteCount)), \(share) % live, "
      + "\(total > 0 ? 100 - share : 0) % dead, "
      + DisplayText.count(segment.tombstoneCount, "tombstone")
    return ("segment \(segment.id)", segment.isSealed ? value : value + ", open")
  }
}

extension Corruption {
  /// The place as an object, in `stats` and `verify` alike.
  var json: JSON {
    .object([
      ("file", .string(file)), ("offset", .integer(offset)), ("cause", .string(cause.rawValue)),
    ])
  }
}
