import Foundation
import NearCacheModel

/// Estimates the effect of near caches on their engine.
@main
enum Main {
  static let usage = """
    usage: simulate [--machines N] [--keys N] [--zipf S] [--reads PER-MACHINE-AND-SECOND]
                    [--writes PER-SECOND] [--lifetime SECONDS] [--delay SECONDS] [--seed N]
           simulate chart FILE    the chart of the README
           simulate scale         the table of Docs/Scaling.md, by formula

    Without --delay, the engine sends no invalidations.
    """

  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch arguments.first {
    case "chart" where arguments.count == 2:
      try Charts.lifetimes.svg.write(
        toFile: arguments[1], atomically: true, encoding: .utf8)
    case "scale" where arguments.count == 1: Scale.print()
    default:
      guard let options = Options(arguments) else {
        print(usage)
        exit(2)
      }
      compare(options)
    }
  }

  private static func compare(_ options: Options) {
    let scenario = options.scenario
    let duration = max(4 * scenario.lifetime, 60)
    print("simulating \(Int(duration)) s after \(Int(2 * scenario.lifetime)) s")
    let formula = scenario.formula
    let simulated = scenario.simulated(seed: options.seed, duration: duration)
    func row(_ name: String, _ format: String, _ value: (Outcome) -> Double) {
      let texts = [formula, simulated].map { String(format: format, value($0)) }
      print(
        name.padding(toLength: 34, withPad: " ", startingAt: 0)
          + texts.map { String(repeating: " ", count: max(0, 14 - $0.count)) + $0 }.joined())
    }
    print(String(repeating: " ", count: 41) + "formula    simulated")
    row("hit ratio of near copies, %", "%.2f") { 100 * $0.hitRatio }
    row("calls to the engine a second", "%.1f") { $0.engineRate }
    row("stale reads, %", "%.4f") { 100 * $0.staleShare }
    row("staleness of a read, ms, mean", "%.4f") { 1000 * $0.staleness }
  }
}

/// The command-line options.
struct Options {
  var scenario = Scenario()
  var seed: UInt64 = 1

  /// - Returns: `nil` if the arguments are invalid.
  init?(_ arguments: [String]) {
    guard arguments.count.isMultiple(of: 2) else { return nil }
    for index in stride(from: 0, to: arguments.count, by: 2) {
      guard let value = Double(arguments[index + 1]), value >= 0, value < 1e12 else { return nil }
      switch arguments[index] {
      case "--machines" where value >= 1: scenario.machineCount = Int(value)
      case "--keys" where value >= 1 && value <= 1e8: scenario.keyCount = Int(value)
      case "--zipf": scenario.exponent = value
      case "--reads" where value > 0: scenario.readRate = value
      case "--writes": scenario.writeRate = value
      case "--lifetime" where value > 0: scenario.lifetime = value
      case "--delay": scenario.delay = value
      case "--seed": seed = UInt64(value)
      default: return nil
      }
    }
  }
}
