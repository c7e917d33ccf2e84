import Foundation
import NearCacheModel
import Testing

@Suite("The model of near caches")
struct ModelTests {
  /// Scenarios that differ in every parameter.
  static let scenarios: [Scenario] = [
    Scenario(machineCount: 3, keyCount: 200, readRate: 50, writeRate: 5, lifetime: 10),
    Scenario(machineCount: 3, keyCount: 200, readRate: 50, writeRate: 50, lifetime: 10, delay: 0.2),
    Scenario(
      machineCount: 8, keyCount: 1000, exponent: 0, readRate: 100, writeRate: 20, lifetime: 30),
    Scenario(
      machineCount: 1, keyCount: 50, exponent: 1.2, readRate: 200, writeRate: 1, lifetime: 5,
      delay: 0.5),
    Scenario(
      machineCount: 5, keyCount: 5000, readRate: 100, writeRate: 100, lifetime: 2, delay: 3),
  ]

  @Test("Formula and simulation agree", arguments: scenarios)
  func agreement(scenario: Scenario) {
    let formula = scenario.formula
    let simulated = scenario.simulated(seed: 7, duration: 1000)
    #expect(abs(formula.hitRatio - simulated.hitRatio) < 0.01)
    #expect(abs(formula.engineRate / simulated.engineRate - 1) < 0.03)
    #expect(abs(formula.staleShare - simulated.staleShare) < 0.01)
    #expect(abs(formula.staleShare / simulated.staleShare - 1) < 0.1)
    #expect(abs(formula.staleness / simulated.staleness - 1) < 0.15)
  }

  @Test("The outcome for a single key matches a calculation by hand")
  func oneKey() {
    // With 10 reads a second, one write in 10 s and a lifetime of 10 s, there are 100 hits for each
    // miss. A copy is fresh for 10 (1 − 1/e) s on average.
    var scenario = Scenario(
      machineCount: 4, keyCount: 1, readRate: 10, writeRate: 0.1, lifetime: 10)
    let outcome = scenario.formula
    #expect(abs(outcome.hitRatio - 100.0 / 101) < 1e-12)
    #expect(abs(outcome.engineRate - (40.0 / 101 + 0.1)) < 1e-12)
    #expect(abs(outcome.staleShare - 10 * 10 * exp(-1.0) / 101) < 1e-12)
    // The mean of (10 − first write)² / 2, over 10.1 s.
    let square: Double = 100 - 2 * 10 * 10 + 2 * 100 * (1 - exp(-1.0))
    #expect(abs(outcome.staleness - 10 * square / 2 / 101) < 1e-9)
    scenario.writeRate = 0
    #expect(scenario.formula.staleShare == 0)
    #expect(scenario.formula.staleness == 0)
  }

  @Test("Invalidation makes reads less stale and the engine busier")
  func invalidation() {
    var scenario = Scenario()
    var earlier: Outcome?
    for delay in [Double.infinity, 10, 1, 0.1, 0.001, 0] {
      scenario.delay = delay
      let outcome = scenario.formula
      if let earlier {
        #expect(outcome.staleShare < earlier.staleShare)
        #expect(outcome.staleness < earlier.staleness)
        #expect(outcome.hitRatio < earlier.hitRatio)
        #expect(outcome.engineRate > earlier.engineRate)
      }
      earlier = outcome
    }
    #expect(earlier?.staleShare == 0)
  }

  @Test("The formulas for few and for many writes meet without a step")
  func continuity() {
    // The product of writes and delay passes 0.01, where the closed form begins.
    var values: [Double] = []
    for rate in stride(from: 0.0099, through: 0.0101, by: 0.00001) {
      values.append(
        Scenario(
          machineCount: 1, keyCount: 1, readRate: 1, writeRate: rate, lifetime: 1
        ).formula.staleness)
    }
    let steps = zip(values, values.dropFirst()).map { $1 - $0 }
    #expect(steps.allSatisfy { $0 > 0 })
    #expect((steps.max() ?? 1) < 1.02 * (steps.min() ?? 0))
  }

  @Test("Grouped keys give the same outcome as single keys")
  func groups() {
    var scenario = Scenario(keyCount: 9_999)
    let exact = scenario.formula
    scenario.keyCount = 12_000
    let grouped = scenario.formula
    #expect(grouped.hitRatio < exact.hitRatio)
    #expect(exact.hitRatio - grouped.hitRatio < 0.02)
    let simulated = scenario.simulated(seed: 3, duration: 500)
    #expect(abs(grouped.hitRatio - simulated.hitRatio) < 0.01)
  }

  @Test("The same seed gives the same outcome; another seed gives another")
  func seeds() {
    let scenario = Self.scenarios[0]
    let outcomes = [1, 1, 2].map { scenario.simulated(seed: $0, duration: 50) }
    #expect(outcomes[0] == outcomes[1])
    #expect(outcomes[0] != outcomes[2])
  }
}
