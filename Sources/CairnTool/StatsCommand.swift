import Cairn
import CommandText

/// `stats`: the state of a store, for a person or a program.
enum StatsCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let (keyCount, statistics, usage) = try location.read(on: console) { store in
      (try store.count(), try store.statistics(), DiskUsage(location))
    }
    if invocation.has(.json) {
      try console.print(json(keyCount, statistics, usage).text)
    } else {
      let page = StatsPage(
        keyCount: keyCount, statistics: statistics, usage: usage, path: location.path)
      for line in page.lines {
        try console.print(line)
      }
    }
  }

  private static func json(
    _ keyCount: Int, _ statistics: StoreStatistics, _ usage: DiskUsage
  ) -> JSON {
    let recovery = statistics.recovery
    return .object([
      ("keys", .integer(keyCount)),
      ("liveBytes", .integer(statistics.liveByteCount)),
      ("deadBytes", .integer(statistics.deadByteCount)),
      ("allocatedBytes", .integer(usage.segmentByteCount)),
      ("otherBytes", .integer(usage.otherByteCount)),
      ("onDiskBytes", .integer(usage.byteCount)),
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
          ("damagedValues", .array(recovery.damagedValues.map { .object($0.members) })),
          (
            "quarantinedFiles",
            .array(recovery.quarantinedFiles.map { JSON.string($0) })
          ),
          ("clockWentBack", .bool(recovery.clockWentBack)),
          ("clockLagSeconds", .integer(Int(recovery.clockLag.components.seconds))),
        ])
      ),
    ])
  }
}

extension Corruption {
  /// The place as members of an object, in `stats` and `verify` alike.
  var members: [(String, JSON)] {
    [("file", .string(file)), ("offset", .integer(offset)), ("cause", .string(cause.rawValue))]
  }
}
