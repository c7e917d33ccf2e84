import Cairn
import CommandText

/// `scrub`: checks the live data of a store, at a limited rate.
enum ScrubCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    var rate: Int?
    if invocation.has(.rate) {
      rate = try invocation.value(
        of: .rate,
        { (text: [UInt8]) -> Int? in Quantity.byteCount(text).flatMap { $0 > 0 ? $0 : nil } },
        "a number of bytes above 0, such as 500K or 10M")
    }
    let progress = Progress(on: console)
    let report = try location.read(on: console) { store in
      try store.scrub(bytesPerSecond: rate) {
        progress.show("checked", byteCount: $0.completedCount, of: $0.totalCount)
        return .next
      }
    }
    console.clearProgress()
    try show(report, invocation, on: console)
  }

  private static func show(
    _ report: CheckReport, _ invocation: Invocation, on console: Console
  ) throws {
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("records", .integer(report.recordCount)),
          ("bytes", .integer(report.byteCount)),
          (
            "damage",
            .array(
              report.damage.map { event in
                .object(
                  event.place.members + [
                    ("keyCount", .integer(event.keyCount ?? event.keys.count)),
                    ("keys", .array(event.keys.map { .object([JSON.member(key: $0)]) })),
                  ])
              })
          ),
        ]).text)
    } else {
      try showLines(report, on: console)
    }
    try judge(report)
  }

  static func showLines(_ report: CheckReport, on console: Console) throws {
    for event in report.damage.prefix(lineLimit) { try console.tell(line(event), style: .error) }
    let unlisted = report.damage.count - lineLimit
    if unlisted > 0 {
      try console.tell("and \(DisplayText.count(unlisted, "more place")); --json lists all")
    }
    try console.tell(summary(report))
  }

  static func judge(_ report: CheckReport) throws {
    if let first = report.damage.first {
      throw CommandFailure(
        .corrupt,
        "the store is damaged: \(DisplayText.count(report.damage.count, "place")), the first in "
          + "\(first.place); restore the keys from a backup, or see cairn help salvage")
    }
  }

  private static let lineLimit = 20

  private static func line(_ event: Damage) -> String {
    var line = event.place.description
    for key in event.keys { line += VerifyCommand.ofKey(key) }
    let unknown = (event.keyCount ?? 0) - event.keys.count
    if unknown > 0 { line += "; \(DisplayText.count(unknown, "unknown key"))" }
    return line
  }

  private static func summary(_ report: CheckReport) -> String {
    "\(DisplayText.count(report.recordCount, "record")), \(DisplayText.exactSize(report.byteCount)) read, "
      + (report.damage.isEmpty
        ? "no damage" : DisplayText.count(report.damage.count, "damaged place"))
  }
}
