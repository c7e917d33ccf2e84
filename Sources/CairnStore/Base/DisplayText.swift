/// Formats sizes, counts and times for people, in printed reports and in the commands.
package enum DisplayText {
  /// A number with thousands separators: `1,234,567`.
  package static func count(_ number: Int) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.append(String(digits.suffix(3)))
      digits.removeLast(3)
    }
    groups.append(digits)
    return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
  }

  /// A number with the word for what it counts: `1 file`, `2 files`.
  package static func count(_ number: Int, _ singular: String, _ plural: String? = nil) -> String {
    "\(count(number)) \(number == 1 ? singular : plural ?? singular + "s")"
  }

  /// A size in a suitable unit: `12.3 MiB`.
  package static func size(_ byteCount: Int) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"]
    guard byteCount >= 1024 else { return "\(byteCount) B" }
    var value = Double(byteCount) / 1024
    var unit = 0
    // The number is shown with one decimal place, so 1023.95 would round to 1024.0.
    while value >= 1023.95, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    let tenths = Int((value * 10).rounded())
    return "\(count(tenths / 10)).\(tenths % 10) \(units[unit])"
  }

  /// A size, with the exact number if the unit hides it: `12.3 MiB (12,897,485 bytes)`.
  package static func exactSize(_ byteCount: Int) -> String {
    byteCount < 1024
      ? count(byteCount, "byte") : "\(size(byteCount)) (\(count(byteCount)) bytes)"
  }

  /// The parts of a whole as integer percentages that add up to 100: `37 %`. A part shows as 100
  /// only if the others are empty, and as 0 only if the part itself is empty. A tiny part may show
  /// as `<1 %`.
  package static func percents(_ parts: [Int]) -> [String] {
    let whole = parts.reduce(0.0) { $0 + Double($1) }
    guard whole > 0 else { return parts.map { _ in "0 %" } }
    let shares = parts.map { Double($0) / whole * 100 }
    var percents = shares.map { Int($0) }
    // The remainder goes to the parts that rounding down cut most.
    let byRest = shares.indices.sorted {
      (shares[$1] - shares[$1].rounded(.down), $0) < (shares[$0] - shares[$0].rounded(.down), $1)
    }
    for index in byRest.prefix(max(0, 100 - percents.reduce(0, +))) { percents[index] += 1 }
    let isWhole = parts.count { $0 > 0 } == 1
    return zip(parts, percents).map { part, percent in
      if part <= 0 { return "0 %" }
      if percent == 0 { return "<1 %" }
      return "\(isWhole ? 100 : min(percent, 99)) %"
    }
  }

  /// A duration in its one or two largest units: `48 s`, `3 min 20 s`, `2 h 5 min`.
  package static func duration(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    switch seconds {
    case ..<60: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) min \(seconds % 60) s"
    default: return "\(count(Int(seconds / 3600))) h \(seconds / 60 % 60) min"
    }
  }

  /// Like `duration(_:)`, but in milliseconds below a second: `340 ms`.
  package static func shortDuration(_ duration: Duration) -> String {
    duration < .seconds(1) ? "\(max(0, duration.milliseconds)) ms" : Self.duration(duration)
  }

  /// The first lines of a list, and the number of the others.
  package static func list(_ lines: [some CustomStringConvertible]) -> String {
    let shown = 10
    let first = lines.prefix(shown).map { "\n  \($0)" }.joined()
    return lines.count <= shown ? first : first + "\n  and \(count(lines.count - shown)) more"
  }
}
