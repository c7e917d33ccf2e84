/// Six workloads on one screen, as an SVG chart: Cairn beside its alternatives.
///
/// A panel for each workload, a bar for each store. A bar's length is proportional to the
/// operations per second, and the fastest store of a panel fills it. Needs no font and no script,
/// and follows the reader's light or dark mode.
struct SummaryChart {
  let results: [BenchResult]
  let caption: String

  static let workloads: [(workload: Workload, title: String)] = [
    (.fill, "set, new key"), (.overwrite, "set, existing key"),
    (.get, "get"), (.getTwoThreads, "get, 2 threads"),
    (.mixed95to5, "95 % gets, 5 % sets"),
    (.durablePut16Threads, "durable set, 16 threads"),
  ]
  static let images: [(workload: Workload, title: String)] = [
    (.fill, "store"), (.overwrite, "replace"),
    (.getZipf, "read"), (.mixed95to5, "95 % read, 5 % replaced"),
    (.limited, "request under a limit; misses stored"), (.openClean, "open and read one"),
  ]
  private var workloads: [(workload: Workload, title: String)] {
    results.contains { $0.images == true } ? Self.images : Self.workloads
  }
  static let stores: [(store: StoreKind, name: String)] = [
    (.cairn, "Cairn"), (.lmdb, "LMDB"), (.rocksDB, "RocksDB"), (.sqlite, "SQLite"),
    (.filePerKey, "file per key"),
  ]

  static let (width, height) = (700, 350)
  private static let (panelWidth, panelHeight) = (345, 96)
  private static let (top, titleHeight, barPitch, barHeight) = (46, 18, 14, 11)
  private static let (labelWidth, plotWidth) = (88, 150)

  var svg: String {
    let (title, shown) = section
    var panels = ""
    for (place, row) in workloads.enumerated() {
      panels += panel(
        row.title, shown.filter { $0.workload == row.workload },
        x: place % 2 * Self.panelWidth, y: Self.top + place / 2 * Self.panelHeight)
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(Self.height)" \
      width="\(Self.width)" height="\(Self.height)" role="img" aria-label="Cairn beside other stores">
      <style>\(Self.style)</style>
      <rect class="page" width="\(Self.width)" height="\(Self.height)"/>
      <text class="title" x="12" y="20">Operations per second\(title.map { ", \($0)" } ?? "")</text>
      <text class="note" x="12" y="36">Longer is faster; each panel has its own scale. 4.0 × beside a store: Cairn is four times as fast.</text>
      \(panels)<text class="note" x="12" y="\(Self.height - 6)">\(ReportChart.escaped(caption))</text>
      </svg>

      """
  }

  /// The section with the most bars. Among equals, the one with the most keys, and then with the
  /// smallest values.
  private var section: (title: String?, results: [BenchResult]) {
    let sections = BenchReport.sections(of: results).map { section, results in
      (
        section: section,
        results: results.filter { result in
          workloads.contains { $0.workload == result.workload }
            && Self.stores.contains { $0.store == result.store }
        }
      )
    }
    let best = sections.max { a, b in
      (a.results.count, a.section.keyCount, -a.section.valueByteCount)
        < (b.results.count, b.section.keyCount, -b.section.valueByteCount)
    }
    guard let best, !best.results.isEmpty else { return (nil, []) }
    return (best.section.title, best.results)
  }

  private func panel(_ title: String, _ row: [BenchResult], x: Int, y: Int) -> String {
    guard let fastest = row.map(\.opsPerSecond).max(), fastest > 0 else { return "" }
    let left = x + Self.labelWidth + 6
    var text = "<text class=\"panel\" x=\"\(left)\" y=\"\(y + 11)\">\(title)</text>\n"
    var barY = y + Self.titleHeight
    for (store, name) in Self.stores {
      guard let result = row.first(where: { $0.store == store }) else { continue }
      let length = max(1, Int(result.opsPerSecond / fastest * Double(Self.plotWidth)))
      let note =
        result.hitRatio.map { "   \(Figures.percent($0)) hits" }
        ?? result.cairnRatio(in: row).map { "   \(Figures.ratio($0))" } ?? ""
      let (bar, label) = store == .cairn ? ("ours", "label ours") : ("other", "label")
      text +=
        "<text class=\"\(label)\" x=\"\(left - 6)\" y=\"\(barY + 9)\">\(name)</text>\n"
        + "<rect class=\"\(bar)\" x=\"\(left)\" y=\"\(barY)\" width=\"\(length)\" "
        + "height=\"\(Self.barHeight)\"/>\n"
        + "<text class=\"value\" x=\"\(left + length + 5)\" y=\"\(barY + 9)\">"
        + "\(Figures.rate(result.opsPerSecond).replacing("  /", with: " /"))\(note)</text>\n"
      barY += Self.barPitch
    }
    return text
  }

  /// Blue for Cairn and grey for the others, which also differ in lightness.
  private static let style = """
    text{font:11px system-ui,sans-serif;fill:#24292f;white-space:pre}\
    .title{font-size:15px;font-weight:600}.panel{font-weight:600}\
    .label{text-anchor:end}.note{fill:#57606a;font-size:10px}\
    .page{fill:#fff}rect.ours{fill:#0a58b8}text.ours{font-weight:600}.other{fill:#a3acb5}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}\
    .page{fill:#0d1117}rect.ours{fill:#58a6ff}.other{fill:#6e7681}}
    """
}
