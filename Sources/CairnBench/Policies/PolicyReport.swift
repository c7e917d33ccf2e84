/// Hit ratio and time by policy, as a table and as an SVG chart: a group of bars for each stream.
struct PolicyReport {
  let results: [PolicyResult]
  let caption: String

  var table: String {
    let rows = results.map { result in
      [
        result.stream.rawValue, result.policy, Self.percent(result.hitRatio),
        Figures.threeDigits(result.nanosecondsPerRequest) + " ns",
      ]
    }
    let head = ["stream", "policy", "hits", "a request"]
    return "\(Figures.count(RequestStream.capacity)) entries\n"
      + TextTable.aligned([head] + rows, leftAlignedColumnCount: 2)
  }

  /// With one decimal place.
  static func percent(_ ratio: Double) -> String {
    let tenths = Int((ratio * 1_000).rounded())
    return "\(tenths / 10).\(tenths % 10) %"
  }

  // MARK: The chart

  private static let (width, plotLeft, plotWidth) = (920, 210, 560)
  private static let (top, barHeight, groupGap) = (116, 14, 10)
  private static let styles = ["lru": "c", "sieve": "b", "s3-fifo": "a"]

  var svg: String {
    var bars = ""
    var y = Self.top
    for stream in RequestStream.allCases {
      let group = results.filter { $0.stream == stream }
      guard !group.isEmpty else { continue }
      bars +=
        "<text class=\"label\" x=\"\(Self.plotLeft - 10)\" "
        + "y=\"\(y + group.count * Self.barHeight / 2 + 4)\">\(stream.rawValue)</text>\n"
      for result in group {
        let length = Int(result.hitRatio * Double(Self.plotWidth))
        bars +=
          "<rect class=\"\(Self.styles[result.policy] ?? "d")\" x=\"\(Self.plotLeft)\" y=\"\(y)\" "
          + "width=\"\(max(1, length))\" height=\"\(Self.barHeight - 2)\"/>\n"
          + "<text class=\"value\" x=\"\(Self.plotLeft + length + 5)\" "
          + "y=\"\(y + Self.barHeight - 4)\">\(Self.percent(result.hitRatio))</text>\n"
        y += Self.barHeight
      }
      y += Self.groupGap
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(y + 10)" \
      width="\(Self.width)" height="\(y + 10)" role="img" aria-label="hit ratio by eviction policy">
      <style>\(ReportChart.style)</style>
      <rect class="page" width="\(Self.width)" height="\(y + 10)"/>
      <text class="title" x="20" y="30">MemoryCache: hit ratio by eviction policy</text>
      <text class="note" x="20" y="50">\(ReportChart.escaped(caption))</text>
      \(legend)\(grid(to: y))\(bars)</svg>

      """
  }

  private var legend: String {
    var text = ""
    var x = Self.plotLeft
    for policy in ["lru", "sieve", "s3-fifo"] {
      text +=
        "<rect class=\"\(Self.styles[policy] ?? "d")\" x=\"\(x)\" y=\"68\" width=\"10\" height=\"10\"/>\n"
        + "<text class=\"note\" x=\"\(x + 15)\" y=\"77\">\(policy)</text>\n"
      x += 70
    }
    return text
  }

  private func grid(to end: Int) -> String {
    [0, 25, 50, 75, 100].map { percent in
      let x = Self.plotLeft + percent * Self.plotWidth / 100
      return "<line x1=\"\(x)\" y1=\"\(Self.top - 6)\" x2=\"\(x)\" y2=\"\(end)\"/>\n"
        + "<text class=\"tick\" x=\"\(x)\" y=\"\(Self.top - 10)\">\(percent) %</text>\n"
    }.joined()
  }
}
