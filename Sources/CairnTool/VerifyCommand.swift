import Cairn
import CairnRepair
import CommandText

/// `verify`: checks every byte of every file of a store, or of its log while another process has the
/// store open.
enum VerifyCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let rate = try invocation.value(
      of: .rate, { Quantity.byteCount($0).flatMap { $0 > 0 ? $0 : nil } },
      "a size above 0, such as 500K or 10M")
    let progress = Progress(on: console)
    let start = ContinuousClock.now
    let report: CheckReport
    do throws(StoreError) {
      report = try Store.verify(path: location.path) {
        progress.show("checked", byteCount: $0.completedCount, of: $0.totalCount)
        guard let rate, $0.completedCount < $0.totalCount ?? .max else { return }
        let due = Duration.seconds(Double($0.completedCount) / Double(rate))
        SystemCalls.pause(for: due - (ContinuousClock.now - start))
      }
    } catch {
      let store = try location.follow(after: error, on: console)
      report = try location.use(store) { store in
        try store.scrub(bytesPerSecond: rate) {
          progress.show("checked", byteCount: $0.completedCount, of: $0.totalCount)
          return .next
        }
      }
    }
    console.clearProgress()
    try show(report, invocation, on: console)
    if !report.damage.isEmpty { throw CommandFailure(.corrupt, judgement(report)) }
  }

  private static func show(
    _ report: CheckReport, _ invocation: Invocation, on console: Console
  ) throws {
    if invocation.has(.json) { return try console.print(json(report).text) }
    for damage in report.damage.prefix(lineLimit) {
      try console.tell(line(damage), style: damage.keyCount == 0 ? .warning : .error)
    }
    let unlisted = report.damage.count - lineLimit
    if unlisted > 0 {
      try console.tell("and \(DisplayText.count(unlisted, "more place")); --json lists all")
    }
    try console.tell(summary(report))
  }

  private static func json(_ report: CheckReport) -> JSON {
    .object([
      ("records", .integer(report.recordCount)),
      ("bytes", .integer(report.byteCount)),
      ("tornBytes", .integer(report.tornByteCount)),
      (
        "damage",
        .array(
          report.damage.map { damage in
            let known = damage.keys.isEmpty ? nil : damage.keys.count
            return .object(
              damage.place.members + [
                ("keyCount", (damage.keyCount ?? known).map { .integer($0) } ?? .null),
                ("keys", .array(damage.keys.map { .object([JSON.member("key", $0)]) })),
              ])
          })
      ),
    ])
  }

  private static func judgement(_ report: CheckReport) -> String {
    if report.damage.allSatisfy({ $0.place.file.hasPrefix("ckpt-") }) {
      return
        "only the checkpoint is damaged: no value is lost, but opening takes longer until a program "
        + "that writes to the store makes a new one"
    }
    if report.damage.allSatisfy({ $0.keyCount == 0 }) {
      return
        "only values that were rewritten or removed since are damaged: no value is lost, and "
        + "cairn compact reclaims their space"
    }
    let places = DisplayText.count(report.damage.count, "place")
    return "the store is damaged: \(places), the first in \(report.damage[0].place); "
      + "cairn salvage copies the sound part into a new store"
  }

  /// Few people read more lines, and later damage often follows from the first.
  private static let lineLimit = 20

  private static func line(_ damage: Damage) -> String {
    var line = damage.place.description + damage.keys.map(ofKey).joined()
    if damage.keyCount == 0 { line += ", which was rewritten or removed since" }
    let unknown = (damage.keyCount ?? 0) - damage.keys.count
    if unknown > 0 { line += "; \(DisplayText.count(unknown, "unknown key"))" }
    return line
  }

  /// The text after a place whose key is known.
  static func ofKey(_ key: [UInt8]?) -> String {
    key.map { "; key \(DisplayText.line($0))" } ?? ""
  }

  private static func summary(_ report: CheckReport) -> String {
    var summary = "\(DisplayText.count(report.recordCount, "sound record")), "
    summary += "\(DisplayText.exactSize(report.byteCount)) read, "
    summary +=
      report.damage.isEmpty
      ? "no damage" : DisplayText.count(report.damage.count, "damaged place")
    if report.tornByteCount > 0 {
      summary += "; \(DisplayText.count(report.tornByteCount, "torn byte")) at the end of the log,"
      summary += " which the next open discards"
    }
    return summary
  }
}
