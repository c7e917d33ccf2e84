import Cairn
import CommandText

/// Formats a sample of `top` for people: a page of a terminal, or a line.
struct TopPage {
  let sample: TopSample
  /// The store, as given on the command line.
  let path: String

  private var statistics: StoreStatistics { sample.statistics }
  private var rate: String? { sample.writeRate.map { DisplayText.count(Int($0.rounded())) } }
  private var age: String? { sample.checkpointAge.map { "\(DisplayText.duration($0)) old" } }

  /// Everything on one line, for when nothing can be drawn.
  var line: String {
    [
      DisplayText.count(sample.keyCount, "key"),
      "\(DisplayText.size(statistics.liveByteCount)) live",
      "\(DisplayText.size(statistics.deadByteCount)) dead",
      "log \(DisplayText.size(sample.logByteCount))", "\(rate ?? "-") writes/s",
      age.map { "checkpoint \($0)" } ?? "no checkpoint",
    ].joined(separator: ", ")
  }

  /// A page that fits a terminal, with a row to spare.
  func lines(columns: Int, rows: Int, painter: Painter) -> [String] {
    let width = max(1, columns - 1)
    let heads = headLines.enumerated().map { index, line in
      painter(line.prefix(width), index == 0 ? .heading : nil)
    }
    let segments = statistics.segments.sorted { $0.id > $1.id }
    // The segments are below an empty line.
    let room = rows - 1 - heads.count - 1
    guard room > 0 else { return Array(heads.prefix(max(1, rows - 1))) }
    let shown = segments.count > room ? segments.prefix(room - 1) : segments[...]
    var lines = heads + [""] + bars(Array(shown), width: width, painter: painter)
    if shown.count < segments.count {
      let rest = "and \(DisplayText.count(segments.count - shown.count, "older one"))"
      lines.append(String(rest.prefix(width)))
    }
    return lines
  }

  private var headLines: [String] {
    let (live, dead) = (statistics.liveByteCount, statistics.deadByteCount)
    let percents = DisplayText.percents([live, dead, max(0, sample.logByteCount - live - dead)])
    let owner = sample.owner.map { StoreLocation.words(for: $0.processID, since: $0.since) }
    let rows = [
      ("keys", DisplayText.count(sample.keyCount), ""),
      ("live", DisplayText.size(live), percents[0]),
      ("dead", DisplayText.size(dead), percents[1]),
      (
        "log", DisplayText.size(sample.logByteCount),
        "in \(DisplayText.count(statistics.segmentCount, "segment"))"
      ),
      ("on disk", DisplayText.size(sample.usage.byteCount), ""),
      ("writes", rate ?? "-", "a second"),
      ("checkpoint", age ?? "none", ""),
    ]
    let width = rows.map(\.1.count).max() ?? 0
    let state = owner.map { "open in \($0)" } ?? "not open in any known process"
    return [DisplayText.line(path), DisplayText.line(state), ""]
      + rows.map { label, figure, rest in
        let gap = String(repeating: " ", count: 12 - label.count + width - figure.count)
        return label + gap + figure + (rest.isEmpty ? "" : "  " + rest)
      }
  }

  /// A line for each segment: its number, its size, and its live and dead parts.
  private func bars(
    _ segments: [SegmentStatistics], width: Int, painter: Painter
  ) -> [String] {
    let longest = max(1, segments.map(\.byteCount).max() ?? 1)
    let cells = segments.map { ("\($0.id)", DisplayText.size($0.byteCount)) }
    let idWidth = cells.map(\.0.count).max() ?? 0
    let sizeWidth = cells.map(\.1.count).max() ?? 0
    let barWidth = max(0, width - idWidth - sizeWidth - 4)
    func bar(_ byteCount: Int, of character: Character) -> String {
      let length = Int((Double(byteCount) / Double(longest) * Double(barWidth)).rounded())
      return String(repeating: character, count: byteCount > 0 ? max(1, length) : 0)
    }
    return zip(segments, cells).map { segment, cell in
      let live = bar(segment.liveByteCount, of: "#").prefix(barWidth)
      let dead = bar(segment.deadByteCount, of: "-").prefix(barWidth - live.count)
      let label =
        String(repeating: " ", count: idWidth - cell.0.count) + cell.0
        + String(repeating: " ", count: 2 + sizeWidth - cell.1.count) + cell.1 + "  "
      return String(label.prefix(width)) + painter(live, .bar) + painter(dead, .faint)
    }
  }
}
