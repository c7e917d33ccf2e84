/// Formats the outcomes in 80 columns.
enum TargetTable {
  private static let legend = """
    "a / b" is how many times as fast Cairn is at a as b, with values of 100 bytes
    and 1,000,000 keys if it names no others. Medians of interleaved rounds.
    Cairn syncs once a second, too, beside lmdb-interval.

    """

  static func text(_ outcomes: [TargetOutcome]) -> String {
    let rows = outcomes.map { outcome in
      let unit = outcome.unit.isEmpty ? "" : " \(outcome.unit)"
      return [
        outcome.row,
        outcome.figure.map { number($0) + unit } ?? without(outcome.missing),
        (outcome.isAtMost ? "≤ " : "≥ ") + aim(outcome.aim) + unit,
        outcome.isMet.map { $0 ? "yes" : "NO" } ?? "–",
      ]
    }
    let measured = outcomes.compactMap(\.isMet)
    var text = TextTable.aligned(
      [["row", "figure", "aim", "met?"]] + rows, leftAlignedColumnCount: 1)
    text += "\nmet: \(measured.count { $0 }) of \(measured.count)"
    text +=
      outcomes.count > measured.count ? "; not measured: \(outcomes.count - measured.count)" : ""
    return text + "\n" + legend
  }

  private static func without(_ missing: [String]) -> String {
    guard let first = missing.first else { return "–" }
    return "needs \(first)" + (missing.count > 1 ? " +\(missing.count - 1)" : "")
  }

  private static func aim(_ value: Double) -> String {
    value == value.rounded() ? Figures.count(Int(value)) : "\(value)"
  }

  private static func number(_ value: Double) -> String {
    value >= 999.5 ? Figures.count(Int(value.rounded())) : Figures.threeDigits(value)
  }
}
