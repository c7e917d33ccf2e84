import Foundation

/// A chart in SVG of values by lifetime. Lines are from the formula, points from the simulation.
public struct Chart: Sendable {
  public struct Series: Sendable {
    var name: String
    var color: String
    /// Pairs of lifetime, in seconds, and value.
    var line: [(Double, Double)]
    var points: [(Double, Double)]

    public init(
      name: String, color: String, line: [(Double, Double)], points: [(Double, Double)]
    ) {
      self.name = name
      self.color = color
      self.line = line
      self.points = points
    }
  }

  public struct Panel: Sendable {
    var title: String
    /// The values at the bottom, at the grid lines, and at the top.
    var ticks: [Double]
    var unit: String
    var series: [Series]

    public init(title: String, ticks: [Double], unit: String, series: [Series]) {
      self.title = title
      self.ticks = ticks
      self.unit = unit
      self.series = series
    }
  }

  var title: String
  var panels: [Panel]
  /// The lifetimes at the left and right, as powers of ten.
  var exponents: ClosedRange<Int>

  public init(title: String, panels: [Panel], exponents: ClosedRange<Int>) {
    self.title = title
    self.panels = panels
    self.exponents = exponents
  }

  public var svg: String {
    let width = 420.0
    let height = 250.0
    var text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(Double(panels.count) * 520)) 390\" "
      + "font-family=\"sans-serif\" font-size=\"13\">\n"
      + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      + "<text x=\"60\" y=\"24\" font-size=\"15\">\(title)</text>\n"
    for (index, panel) in panels.enumerated() {
      let left = 60 + Double(index) * 520
      let top = 70.0
      let lowest = panel.ticks.first ?? 0
      let span = (panel.ticks.last ?? 1) - lowest
      func x(_ lifetime: Double) -> String {
        let part =
          (log10(lifetime) - Double(exponents.lowerBound)) / Double(exponents.count - 1)
        return String(format: "%.1f", left + part * width)
      }
      func y(_ value: Double) -> String {
        String(format: "%.1f", top + height - (value - lowest) / span * height)
      }
      func label(_ x: String, _ y: String, _ anchor: String, _ label: String) {
        text +=
          "<text x=\"\(x)\" y=\"\(y)\" text-anchor=\"\(anchor)\" fill=\"#333\">\(label)</text>\n"
      }
      label("\(left)", "\(top - 18)", "start", panel.title)
      for tick in panel.ticks {
        text +=
          "<path d=\"M\(left) \(y(tick))h\(width)\" stroke=\"#ddd\" fill=\"none\"/>\n"
        label("\(left - 6)", y(tick), "end", Self.short(tick) + panel.unit)
      }
      for exponent in exponents {
        label(
          x(pow(10, Double(exponent))), "\(top + height + 18)", "middle",
          Self.short(pow(10, Double(exponent))) + " s")
      }
      label("\(left + width / 2)", "\(top + height + 36)", "middle", "lifetime of a near copy")
      for (row, series) in panel.series.enumerated() {
        let path = series.line.map { "\(x($0.0)) \(y($0.1))" }.joined(separator: "L")
        text +=
          "<path d=\"M\(path)\" stroke=\"\(series.color)\" stroke-width=\"2\" fill=\"none\"/>\n"
        for point in series.points {
          text +=
            "<circle cx=\"\(x(point.0))\" cy=\"\(y(point.1))\" r=\"4\" fill=\"\(series.color)\"/>\n"
        }
        let line = top + height + 56
        let start = left + Double(row) * 200
        text +=
          "<path d=\"M\(start) \(line - 4)h20\" stroke=\"\(series.color)\" stroke-width=\"3\"/>\n"
        label("\(start + 26)", "\(line)", "start", series.name)
      }
    }
    return text + "</svg>\n"
  }

  /// Formats a number with few digits.
  static func short(_ number: Double) -> String {
    number >= 10_000 ? "\(Int(number / 1000))k" : String(format: "%g", number)
  }
}
