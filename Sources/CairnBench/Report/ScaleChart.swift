import CairnLibC

/// How cost grows with the number of keys, as an SVG chart: a line for each row of one store, both
/// axes logarithmic. Needs no font and no script, and follows the reader's light or dark mode.
struct ScaleChart {
  let results: [BenchResult]
  let caption: String

  private static let costs: [Workload] = [
    .fill, .overwrite, .churn, .get, .getTwoThreads, .getMissing, .delete,
  ]
  private static let (width, plotLeft, plotWidth) = (920, 80, 640)
  private static let (plotTop, plotHeight) = (80, 340)

  var svg: String {
    let lines = ScaleTable.lines(of: results)
    let stores = StoreKind.allCases.filter { kind in lines.contains { $0.store == kind } }
    var body = ""
    var y = 0
    for store in stores {
      body += panel(store, lines.filter { $0.store == store }, at: y)
      y += Self.plotTop + Self.plotHeight + 50
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(y)" \
      width="\(Self.width)" height="\(y)" role="img" aria-label="cost by number of keys">
      <style>\(Self.style)</style>
      <rect class="page" width="\(Self.width)" height="\(y)"/>
      \(body)</svg>

      """
  }

  private func panel(_ store: StoreKind, _ lines: [ScaleTable.Line], at top: Int) -> String {
    let costs = lines.flatMap { line in
      line.results.filter { Self.costs.contains($0.workload) }.map(\.nanosecondsPerOperation)
    }.filter { $0 > 0 }
    guard let low = costs.min(), let high = costs.max(), let first = lines.first,
      let last = lines.last
    else { return "" }
    let plot = Plot(
      counts: LogAxis(from: Double(first.keyCount), to: Double(last.keyCount)),
      times: LogAxis(from: low, to: high), left: Self.plotLeft, top: top + Self.plotTop,
      width: Self.plotWidth, height: Self.plotHeight)
    var text = """
      <text class="title" x="20" y="\(top + 30)">\(store.rawValue): time of one operation by number of \
      keys</text>
      <text class="note" x="20" y="\(top + 50)">\(ReportChart.escaped(caption))</text>

      """
    text += plot.grid
    // Keeps names apart from each other.
    var nextName = Int.min
    for (workload, points) in drawn(lines, plot) {
      guard let end = points.last else { continue }
      let style = Self.styles[Self.costs.firstIndex(of: workload) ?? 0]
      nextName = max(nextName, end.y + 4)
      let path = points.map { "\($0.x),\($0.y)" }.joined(separator: " ")
      text += "<polyline class=\"\(style)\" points=\"\(path)\"/>\n"
      for point in points {
        text += "<circle class=\"\(style)\" cx=\"\(point.x)\" cy=\"\(point.y)\" r=\"3\"/>\n"
      }
      text +=
        "<text class=\"\(style)\" x=\"\(end.x + 10)\" y=\"\(nextName)\">\(workload.rawValue)</text>\n"
      nextName += 14
    }
    return text
  }

  /// The lines ordered by their ends, the topmost first.
  private func drawn(
    _ lines: [ScaleTable.Line], _ plot: Plot
  ) -> [(workload: Workload, points: [(x: Int, y: Int)])] {
    Self.costs.compactMap { workload -> (workload: Workload, points: [(x: Int, y: Int)])? in
      let points = lines.compactMap { line in
        line.results.first { $0.workload == workload }.map {
          (x: plot.x(Double(line.keyCount)), y: plot.y($0.nanosecondsPerOperation))
        }
      }
      return points.isEmpty ? nil : (workload, points)
    }.sorted { ($0.points.last?.y ?? 0) < ($1.points.last?.y ?? 0) }
  }

  private static let styles = ["a", "b", "c", "d", "e", "f", "g"]

  /// Colours that also differ in lightness.
  private static let style: String = {
    let colors = ["#0a58b8", "#e08a1e", "#b35900", "#1a7f37", "#57ab5a", "#8c959f", "#8250df"]
    let rules = zip(styles, colors).map { name, color in
      "polyline.\(name){stroke:\(color)}circle.\(name),text.\(name){fill:\(color)}"
    }
    return """
      text{font:11px system-ui,sans-serif;fill:#24292f}\
      .title{font-size:16px;font-weight:600}.tick{text-anchor:middle}.side{text-anchor:end}\
      .note,.tick,.side{fill:#57606a;font-size:10px}\
      .page{fill:#fff}line{stroke:#d0d7de}polyline{fill:none;stroke-width:2}\
      @media(prefers-color-scheme:dark){text{fill:#e6edf3}.note,.tick,.side{fill:#9198a1}\
      .page{fill:#0d1117}line{stroke:#30363d}}\(rules.joined())
      """
  }()
}

/// Maps numbers of keys and times to positions.
private struct Plot {
  let counts: LogAxis
  let times: LogAxis
  let left: Int
  let top: Int
  let width: Int
  let height: Int

  func x(_ count: Double) -> Int { left + Int(counts.position(count) * Double(width)) }
  func y(_ time: Double) -> Int { top + Int((1 - times.position(time)) * Double(height)) }

  var grid: String {
    var text = ""
    for value in counts.powersOfTen {
      let x = x(value)
      text += "<line x1=\"\(x)\" y1=\"\(top)\" x2=\"\(x)\" y2=\"\(top + height)\"/>\n"
      text +=
        "<text class=\"tick\" x=\"\(x)\" y=\"\(top + height + 16)\">\(Figures.count(Int(value)))</text>\n"
    }
    for value in times.powersOfTen {
      let y = y(value)
      text += "<line x1=\"\(left)\" y1=\"\(y)\" x2=\"\(left + width)\" y2=\"\(y)\"/>\n"
      text +=
        "<text class=\"side\" x=\"\(left - 8)\" y=\"\(y + 4)\">\(Figures.nanoseconds(value))</text>\n"
    }
    return text
  }
}

/// Positions of values between two powers of ten, by their logarithms.
private struct LogAxis {
  private let exponents: ClosedRange<Int>

  init(from low: Double, to high: Double) {
    let first = Int(log10(low).rounded(.down))
    exponents = first...max(first + 1, Int(log10(high).rounded(.up)))
  }

  /// From 0 to 1.
  func position(_ value: Double) -> Double {
    let span = Double(exponents.upperBound - exponents.lowerBound)
    return min(max((log10(value) - Double(exponents.lowerBound)) / span, 0), 1)
  }

  var powersOfTen: [Double] { exponents.map { pow(10, Double($0)) } }
}
