import Cairn
import CommandText

/// Formats the state of a store for people: first its contents and size, then its segments, then
/// advice.
struct StatsPage {
  let keyCount: Int
  let statistics: StoreStatistics
  let usage: DiskUsage
  /// The store, as given on the command line.
  let path: String
  /// Whether another process has the store open.
  let isLive: Bool

  /// The maximum number of listed segments. The segments with the most dead bytes are listed.
  private static let segmentLimit = 10

  /// A line of the page.
  struct Line {
    let text: String
    /// The indent of all lines but the first, in columns.
    var indent = 2
    var style: Style?
  }

  /// - Parameter width: the number of columns, or `nil` for no limit.
  func lines(width: Int?) -> [Line] {
    let segments = segmentLines(isNarrow: (width ?? .max) < 55)
    return figureLines.map { Line(text: $0, indent: 12) }
      + (segments.isEmpty ? [] : [Line(text: "")] + segments)
      + (advice.isEmpty ? [] : [Line(text: "")] + advice)
  }

  private var figureLines: [String] {
    let recovery = statistics.recovery
    let (live, dead) = (statistics.liveByteCount, statistics.deadByteCount)
    let spare = max(0, usage.segmentByteCount - live - dead)
    let parts = [live, dead, spare, usage.otherByteCount]
    let shares = zip(
      ["live", "dead", "spare", "other"], zip(parts, DisplayText.percents(parts)))
    let average =
      keyCount > 0 ? "\(DisplayText.size(statistics.liveByteCount / keyCount)) each" : ""
    var rows = [
      ["keys", DisplayText.count(keyCount), "", average]
    ]
    rows += shares.map { label, part in [label, DisplayText.size(part.0), part.1, ""] }
    rows += [
      [
        "on disk", DisplayText.size(usage.byteCount), "",
        "in \(DisplayText.count(statistics.segmentCount, "segment")) and "
          + DisplayText.count(usage.otherFileCount, "other file"),
      ],
      ["tombstones", DisplayText.count(statistics.tombstoneCount), "", ""],
    ]
    if statistics.pinnedByteCount > 0 {
      rows.append(
        ["pinned", DisplayText.size(statistics.pinnedByteCount), "", "removed, still being read"])
    }
    var opened =
      switch recovery.source {
      case .checkpoint: "by its checkpoint"
      case .scan: "by reading its log"
      case .created: "new"
      }
    opened += recovery.wasClean ? "; it had been closed" : "; it had not been closed"
    if !recovery.wasClean || recovery.replayedRecordCount > 0 {
      opened += ", \(DisplayText.count(recovery.replayedRecordCount, "record")) replayed"
    }
    if recovery.tornByteCount > 0 {
      opened += ", \(DisplayText.count(recovery.tornByteCount, "torn byte")) discarded"
    }
    return StatsPage.aligned(rows)
      + [
        "format      \(statistics.formatVersion)", "cairn       \(statistics.libraryVersion)",
        isLive ? "now         open in another process" : "last open   \(opened)",
      ]
  }

  /// The segments with at least 1 % of dead bytes. Every full segment has a few dead bytes at its
  /// end.
  private func segmentLines(isNarrow: Bool) -> [Line] {
    let dead = statistics.segments
      .filter { $0.deadByteCount * 100 >= $0.liveByteCount + $0.deadByteCount }
      .filter { $0.deadByteCount > 0 }
      .sorted { ($1.deadByteCount, $0.id) < ($0.deadByteCount, $1.id) }
    guard statistics.segmentCount > 1, !dead.isEmpty else { return [] }
    let shown = dead.prefix(StatsPage.segmentLimit)
    var rows = shown.map { segment in
      let percents = DisplayText.percents([segment.liveByteCount, segment.deadByteCount])
      return [
        "\(segment.id)", DisplayText.size(segment.byteCount), percents[0], percents[1],
        DisplayText.count(segment.tombstoneCount), segment.isSealed ? "" : "open",
      ]
    }
    rows.insert(["segment", "size", "live", "dead", "tombstones", ""], at: 0)
    if isNarrow { rows = rows.map { Array($0.prefix(4) + $0.suffix(1)) } }
    let texts = StatsPage.aligned(rows)
    let others = statistics.segmentCount - shown.count
    let rest =
      shown.count < dead.count
      ? "and \(DisplayText.count(others)) more with fewer dead bytes; --json lists all"
      : "and \(DisplayText.count(others, "other", "others")) with almost no dead bytes; "
        + "--json lists all"
    return [Line(text: texts[0], style: .heading)] + texts.dropFirst().map { Line(text: $0) }
      + (others == 0 ? [] : [Line(text: rest)])
  }

  /// The path as a shell word, so that a hint can be pasted.
  private var store: String {
    let isPlain =
      !path.isEmpty && path.utf8.first != UInt8(ascii: "-")
      && path.allSatisfy { $0.isLetter || $0.isNumber || "/._-+,@%".contains($0) }
    let word = isPlain ? path : "'\(path.replacing("'", with: "'\\''"))'"
    return DisplayText.line(word)
  }

  /// Advice and notes.
  private var advice: [Line] {
    let recovery = statistics.recovery
    var lines: [Line] = []
    func add(_ text: String, style: Style? = .warning) {
      lines.append(Line(text: text, style: style))
    }
    let dead = statistics.deadByteCount
    if !isLive, dead >= 1 << 20, dead >= statistics.allocatedByteCount / 4 {
      let room =
        usage.isDiskNearlyFull
        ? " The disk is nearly full: see cairn help compact." : ""
      add("cairn compact \(store) reclaims about \(DisplayText.size(dead)).\(room)", style: nil)
    }
    if statistics.excessByteCount > 0 {
      add(
        "\(DisplayText.size(statistics.excessByteCount)) are dead beyond the space bound. If cairn "
          + "compact \(store) does not reclaim them, a segment is damaged: cairn verify \(store) lists "
          + "all damage.")
    }
    let expired = statistics.count - keyCount
    if !isLive, expired > 0 {
      let keys = DisplayText.count(expired, "key has", "keys have")
      add("\(keys) expired: cairn trim \(store) --expired removes them.", style: nil)
    }
    if !recovery.damage.isEmpty {
      let values = DisplayText.count(recovery.damage.count, "value is", "values are")
      add(
        "\(values) damaged, the first in \(recovery.damage[0]): cairn verify \(store) lists"
          + " all damage, cairn salvage \(store) DESTINATION copies the sound part.",
        style: .error)
    }
    if !recovery.quarantinedFiles.isEmpty {
      let files = recovery.quarantinedFiles.map { DisplayText.line(Array($0.utf8)) }
      add(
        "Foreign files, moved to the store's folder quarantine: \(files.joined(separator: ", "))")
    }
    if recovery.clockWentBack {
      add("The clock is more than a day behind the last time in the store: set it.")
    } else if recovery.clockLag > .zero {
      let seconds = DisplayText.count(
        Int(recovery.clockLag.components.seconds), "second", "seconds")
      add(
        "The clock is \(seconds) behind the last time in the store, which decides lifetimes: set it."
      )
    }
    return lines
  }

  /// Aligns rows of cells in columns: the first column to the left, figures to the right, the last
  /// unchanged.
  private static func aligned(_ rows: [[String]]) -> [String] {
    let last = (rows.first?.count ?? 1) - 1
    let widths = (0..<last).map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        if column > 0 { line += "  " }
        let gap = column < last ? String(repeating: " ", count: widths[column] - cell.count) : ""
        line += column == 0 ? cell + gap : gap + cell
      }
      return String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}
