package import CairnStore

extension Timestamp {
  /// Reads what `description` returns, such as `2026-01-31T23:59:59.250Z`. `nil` for anything else,
  /// so that each moment has one form.
  package init?(reading text: String) {
    let fields = text.split { "-T:.Z".contains($0) }
    // Numbers of nine digits are as large as any moment needs, and no product of them overflows.
    let numbers = fields.filter { $0.utf8.count <= 10 }.compactMap { Int64($0) }
    guard numbers.count == fields.count, (6...7).contains(fields.count),
      numbers.allSatisfy({ $0 < 1_000_000_000 })
    else { return nil }
    let year = text.hasPrefix("-") ? -numbers[0] : numbers[0]
    // Years count from March, so that the leap day is the last of its year.
    let marchYear = numbers[1] <= 2 ? year - 1 : year
    let monthFromMarch = (numbers[1] + 9) % 12
    let leapDays =
      Self.quotient(marchYear, 4) - Self.quotient(marchYear, 100) + Self.quotient(marchYear, 400)
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days =
      marchYear * 365 + leapDays + (153 * monthFromMarch + 2) / 5 + numbers[2] - 1 - 719_468
    let milliseconds =
      ((numbers[3] * 60 + numbers[4]) * 60 + numbers[5]) * 1000
      + (numbers.count == 7 ? numbers[6] : 0)
    guard let moment = Int64(exactly: Int128(days) * 86_400_000 + Int128(milliseconds)) else {
      return nil
    }
    self.init(millisecondsSinceEpoch: moment)
    // The fields may be another form of a moment, or the 30th of February.
    if description != text { return nil }
  }

  /// The quotient, rounded down.
  private static func quotient(_ value: Int64, _ divisor: Int64) -> Int64 {
    value >= 0 ? value / divisor : (value + 1) / divisor - 1
  }
}
