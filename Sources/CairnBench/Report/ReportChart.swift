import CairnLibC

/// The results as an SVG chart: a panel for each section, horizontal bars on a logarithmic scale,
/// grouped by workload. Needs no font and no script, and follows the reader's light or dark mode.
struct ReportChart {
  let sections: [(section: Plan.Section, results: [BenchResult])]
  let caption: String

  private static let width = 920
  private static let labelWidth = 190
  private static let plotWidth = 560
  private static let barHeight = 12
  private static let groupGap = 8
  private static let panelHead = 52
  private static let legendLineHeight = 16
  private static let panelGap = 26
  private static let top = 74

  var svg: String {
    var body = ""
    var y = Self.top
    for (section, results) in sections where !results.isEmpty {
      body += panel(section, results, at: &y)
      y += Self.panelGap
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(y)" \
      width="\(Self.width)" height="\(y)" role="img" aria-label="cairn-bench results">
      <style>\(Self.style)</style>
      <rect class="page" width="\(Self.width)" height="\(y)"/>
      <text class="title" x="20" y="30">cairn-bench: operations per second, \
      logarithmic scale</text>
      <text class="note" x="20" y="50">\(Self.escaped(caption))</text>
      \(body)</svg>

      """
  }

  private func panel(
    _ section: Plan.Section, _ results: [BenchResult], at y: inout Int
  ) -> String {
    let scale = LogScale(results.map(\.opsPerSecond))
    var text = "<text class=\"panel\" x=\"20\" y=\"\(y + 16)\">\(section.title)</text>\n"
    var legendX = 20 + Self.labelWidth
    for store in section.stores {
      let nextX = legendX + 40 + 7 * store.rawValue.count
      if nextX > Self.width {
        legendX = 20 + Self.labelWidth
        y += Self.legendLineHeight
      }
      text +=
        "<rect class=\"\(Self.style(of: store))\" x=\"\(legendX)\" y=\"\(y + 7)\" "
        + "width=\"10\" height=\"10\"/>\n"
        + "<text class=\"note\" x=\"\(legendX + 15)\" y=\"\(y + 16)\">\(store.rawValue)</text>\n"
      legendX += 40 + 7 * store.rawValue.count
    }
    y += Self.panelHead
    var bars = ""
    let begin = y
    for workload in Workload.allCases {
      let group = results.filter { $0.workload == workload }
      guard !group.isEmpty else { continue }
      let middle = y + group.count * Self.barHeight / 2 + 4
      bars +=
        "<text class=\"label\" x=\"\(10 + Self.labelWidth)\" y=\"\(middle)\">"
        + "\(workload.rawValue)</text>\n"
      for result in group {
        bars += bar(result, in: results, at: y, scale)
        y += Self.barHeight
      }
      y += Self.groupGap
    }
    return text + grid(scale, from: begin, to: y) + bars
  }

  private func bar(
    _ result: BenchResult, in results: [BenchResult], at y: Int, _ scale: LogScale
  ) -> String {
    let left = 20 + Self.labelWidth
    let length = max(2, Int(scale.position(result.opsPerSecond) * Double(Self.plotWidth)))
    let ratio = result.cairnRatio(in: results).map { "  cairn \(Figures.ratio($0))" } ?? ""
    return "<rect class=\"\(Self.style(of: result.store))\" x=\"\(left)\" y=\"\(y)\" "
      + "width=\"\(length)\" height=\"\(Self.barHeight - 2)\"/>\n"
      + "<text class=\"value\" x=\"\(left + length + 5)\" y=\"\(y + Self.barHeight - 3)\">"
      + "\(Self.escaped(Figures.rate(result.opsPerSecond) + ratio))</text>\n"
  }

  private func grid(_ scale: LogScale, from begin: Int, to end: Int) -> String {
    var text = ""
    for exponent in scale.exponents {
      let value = pow(10, Double(exponent))
      let x = 20 + Self.labelWidth + Int(scale.position(value) * Double(Self.plotWidth))
      text +=
        "<line x1=\"\(x)\" y1=\"\(begin - 6)\" x2=\"\(x)\" y2=\"\(end)\"/>\n"
        + "<text class=\"tick\" x=\"\(x)\" y=\"\(begin - 10)\">\(Self.tick(exponent))</text>\n"
    }
    return text
  }

  /// 1, 10, 100, 1 k, 10 k …
  private static func tick(_ exponent: Int) -> String {
    let units = ["", " k", " M", " G"]
    return "1" + String(repeating: "0", count: exponent % 3) + units[min(exponent / 3, 3)]
  }

  private static func style(of store: StoreKind) -> String {
    switch store {
    case .cairn, .memoryCache: "a"
    case .cairnFirstRead, .cairnInterval, .tieredCache, .tieredCacheFull, .tieredCacheMissing,
      .diskCache:
      "k"
    case .filePerKey, .weakNodes: "b"
    case .bareMap, .bareMapSerial, .dictionary: "c"
    case .nsCache: "d"
    case .lmdb, .lmdbInterval: "e"
    case .sqlite: "f"
    case .yykv: "g"
    case .rocksDB: "h"
    case .rawCopy: "i"
    case .rawWrite: "j"
    }
  }

  /// Blue, orange, grey and violet, which also differ in lightness; the peers' green, red, pink and
  /// brown; lighter and darker greys.
  static let style = """
    text{font:11px system-ui,sans-serif;fill:#24292f}\
    .title{font-size:16px;font-weight:600}.panel{font-size:13px;font-weight:600}\
    .label{text-anchor:end}.tick{text-anchor:middle;fill:#57606a;font-size:10px}\
    .note,.value{fill:#57606a;font-size:10px}\
    .page{fill:#fff}line{stroke:#d0d7de}.a{fill:#0a58b8}.b{fill:#e08a1e}.c{fill:#8c959f}.d{fill:#8250df}\
    .e{fill:#1a7f37}.f{fill:#cf222e}.g{fill:#e85aad}.h{fill:#7d4e00}.i{fill:#b8c0c8}.j{fill:#57606a}.k{fill:#54aeff}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.tick,.note,.value{fill:#9198a1}\
    .page{fill:#0d1117}line{stroke:#30363d}.a{fill:#58a6ff}.b{fill:#d97a12}.c{fill:#6e7681}.d{fill:#a371f7}\
    .e{fill:#3fb950}.f{fill:#f85149}.g{fill:#db61a2}.h{fill:#d29922}.i{fill:#484f58}.j{fill:#9198a1}.k{fill:#388bfd}}
    """

  static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}

/// The powers of ten around some values.
private struct LogScale {
  let exponents: ClosedRange<Int>

  init(_ values: [Double]) {
    let logarithms = values.filter { $0 >= 1 }.map(log10)
    let low = Int((logarithms.min() ?? 0).rounded(.down))
    let high = Int((logarithms.max() ?? 1).rounded(.up))
    // One more power below, so that the shortest bar has a length.
    exponents = max(0, low - 1)...max(high, low + 1)
  }

  /// From 0 to 1.
  func position(_ value: Double) -> Double {
    let span = Double(exponents.upperBound - exponents.lowerBound)
    let position = (log10(max(value, 1)) - Double(exponents.lowerBound)) / span
    return min(max(position, 0), 1)
  }
}
