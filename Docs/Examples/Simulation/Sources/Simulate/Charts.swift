import Foundation
import NearCacheModel

enum Charts {
  /// The effect of the lifetime of near copies, with and without invalidation.
  static var lifetimes: Chart {
    var base = Scenario()
    base.delay = .infinity
    var tracked = base
    tracked.delay = 0.001
    let none = Sweep(base)
    let tracking = Sweep(tracked)
    func series(
      _ name: String, _ color: String, _ sweep: Sweep, _ value: (Outcome) -> Double
    ) -> Chart.Series {
      Chart.Series(
        name: name, color: color, line: sweep.formula.map { ($0.0, value($0.1)) },
        points: sweep.simulated.map { ($0.0, value($0.1)) })
    }
    let percent: [Double] = [0, 20, 40, 60, 80, 100]
    return Chart(
      title: "10 machines, 100,000 keys by Zipf's law (0.99), 100 reads a second each, 10 writes: "
        + "lines by formula, points by simulation",
      panels: [
        Chart.Panel(
          title: "Hit ratio", ticks: percent, unit: " %",
          series: [
            series("no invalidation", "#c44", none) { 100 * $0.hitRatio },
            series("invalidation in 1 ms", "#26a", tracking) { 100 * $0.hitRatio },
          ]),
        Chart.Panel(
          title: "Stale reads", ticks: percent, unit: " %",
          series: [
            series("no invalidation", "#c44", none) { 100 * $0.staleShare },
            series("invalidation in 1 ms", "#26a", tracking) { 100 * $0.staleShare },
          ]),
        Chart.Panel(
          title: "Calls to the engine a second", ticks: [0, 200, 400, 600, 800, 1000], unit: "",
          series: [
            series("no invalidation", "#c44", none) { $0.engineRate },
            series("invalidation in 1 ms", "#26a", tracking) { $0.engineRate },
          ]),
      ], exponents: 0...4)
  }

  /// The outcomes for lifetimes from 1 s to 10,000 s.
  private struct Sweep {
    var formula: [(Double, Outcome)] = []
    var simulated: [(Double, Outcome)] = []

    init(_ scenario: Scenario) {
      for step in 0...40 {
        var scenario = scenario
        scenario.lifetime = pow(10, Double(step) / 10)
        formula.append((scenario.lifetime, scenario.formula))
        guard step.isMultiple(of: 5) else { continue }
        let duration = max(2 * scenario.lifetime, 1000)
        simulated.append(
          (scenario.lifetime, scenario.simulated(seed: UInt64(step), duration: duration)))
      }
    }
  }
}
