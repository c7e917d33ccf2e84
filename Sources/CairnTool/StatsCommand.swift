import Cairn
import CommandText

/// `stats`: the state of a store, for a person or a program.
enum StatsCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    if invocation.has(.histograms) { SystemCalls.watchInterruptions() }
    let (page, histograms) = try location.read(on: console) { store in
      let page = StatsPage(
        keyCount: try store.count(), statistics: try store.statistics(),
        usage: DiskUsage(location), path: location.path, isLive: store.isFollowing)
      let histograms =
        try invocation.has(.histograms)
        ? EntryHistograms(of: store) { console.report(CommandFailure($0)) } : nil
      return (page, histograms)
    }
    // After an interruption, print nothing: half of the entries would look like all of them.
    if SystemCalls.interruption != 0 { return }
    if invocation.has(.json) {
      var members = Self.members(page.keyCount, page.statistics, page.usage)
      if let histograms {
        members += [("valueSizes", histograms.sizes.json), ("ages", histograms.ages.json)]
      }
      return try console.print(JSON.object(members).text)
    }
    let width = console.reportWidth
    for line in page.lines(width: width) {
      try console.tell(line.text, indent: line.indent, style: line.style)
    }
    guard let histograms else { return }
    for (title, histogram) in [("value size", histograms.sizes), ("age", histograms.ages)] {
      let lines = histogram.lines(title: title, width: width ?? 80, painter: console.painter)
      for line in (lines.isEmpty ? [] : [""]) + lines { try console.print(line) }
    }
  }

  private static func members(
    _ keyCount: Int, _ statistics: StoreStatistics, _ usage: DiskUsage
  ) -> [(String, JSON)] {
    let recovery = statistics.recovery
    return [
      ("keys", .integer(keyCount)),
      ("liveBytes", .integer(statistics.liveByteCount)),
      ("deadBytes", .integer(statistics.deadByteCount)),
      ("excessBytes", .integer(statistics.excessByteCount)),
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
      ("cairnVersion", .string(statistics.libraryVersion)),
      ("formatVersion", .string(statistics.formatVersion)),
      (
        "recovery",
        .object([
          ("source", .string(recovery.source.rawValue)),
          ("clean", .bool(recovery.wasClean)),
          ("recordsReplayed", .integer(recovery.replayedRecordCount)),
          ("tornBytes", .integer(recovery.tornByteCount)),
          ("damagedValues", .array(recovery.damage.map { .object($0.place.members) })),
          (
            "quarantinedFiles",
            .array(recovery.quarantinedFiles.map { JSON.string($0) })
          ),
          ("clockWentBack", .bool(recovery.clockWentBack)),
          ("clockLagSeconds", .integer(Int(recovery.clockLag.components.seconds))),
        ])
      ),
    ]
  }
}

extension Corruption {
  /// The place as members of an object, in `stats` and `verify` alike.
  var members: [(String, JSON)] {
    [("file", .string(file)), ("offset", .integer(offset)), ("cause", .string(cause.rawValue))]
  }
}
