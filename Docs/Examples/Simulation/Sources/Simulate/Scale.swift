import Foundation
import NearCacheModel

/// Computes how hits and calls scale with the number of machines.
enum Scale {
  /// Prints the table for a million keys, 10,000 reads and 100 writes a second per machine. Copies
  /// live for 600 s, and invalidations take 1 ms.
  static func print() {
    Swift.print(
      """
      | machines | all read all: hits | engine, calls/s | invalidations/s \
      | routed: hits | engines, calls/s | invalidations/s |
      |---|---|---|---|---|---|---|
      """)
    for machines in [1, 10, 100, 1000, 10_000] {
      let alone = Scenario(
        machineCount: 1, keyCount: 1_000_000, readRate: 10_000, writeRate: 100, lifetime: 600,
        delay: 0.001)
      var together = alone
      together.machineCount = machines
      together.keyCount *= machines
      together.writeRate *= Double(machines)
      let count = Double(machines)
      let cells =
        [grouped(count)]
        // The engine notifies all machines of each write.
        + self.cells(together.formula, calls: 1, invalidations: together.writeRate * count)
        // One engine for each machine. An engine holds that machine's keys and notifies it alone.
        + self.cells(alone.formula, calls: count, invalidations: together.writeRate)
      Swift.print("| " + cells.joined(separator: " | ") + " |")
    }
  }

  private static func cells(
    _ outcome: Outcome, calls factor: Double, invalidations: Double
  ) -> [String] {
    [
      String(format: "%.0f %%", 100 * outcome.hitRatio), grouped(outcome.engineRate * factor),
      grouped(invalidations),
    ]
  }

  /// Rounds a number to three significant digits, with commas between groups of digits.
  private static func grouped(_ number: Double) -> String {
    let unit = pow(10, max(0, floor(log10(max(1, number))) - 2))
    var digits = String(Int((number / unit).rounded() * unit))
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    return ([digits] + groups).joined(separator: ",")
  }
}
