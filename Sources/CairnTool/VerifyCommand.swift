import Cairn
import CairnRepair
import CommandText

/// `verify`: checks every byte of every file of a store.
enum VerifyCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let progress = Progress(on: console)
    let report: CheckReport
    do throws(StoreError) {
      report = try Store.verify(path: location.path) {
        progress.show("checked", byteCount: $0.completedCount, of: $0.totalCount)
      }
    } catch {
      let store = try location.follow(after: error, on: console)
      return try location.use(store) { try verify($0, invocation, progress, on: console) }
    }
    console.clearProgress()
    if invocation.has(.json) {
      try console.print(json(report).text)
    } else {
      for damage in report.damage.prefix(lineLimit) {
        let isReplaced = damage.keyCount == 0
        try console.tell(
          damage.place.description + ofKey(damage.keys.first)
            + (isReplaced ? ", which was rewritten or removed since" : ""),
          style: isReplaced ? .warning : .error)
      }
      let unlisted = report.damage.count - lineLimit
      if unlisted > 0 {
        try console.tell("and \(DisplayText.count(unlisted, "more error")); --json lists all")
      }
      try console.tell(summary(report))
    }
    if !report.damage.isEmpty {
      throw CommandFailure(.corrupt, judgement(report))
    }
  }

  /// Checks the log of a store that another process has open: every head, and every value that a
  /// read would find.
  private static func verify(
    _ store: Store, _ invocation: Invocation, _ progress: Progress, on console: Console
  ) throws {
    let report = try store.scrub {
      progress.show("checked", byteCount: $0.completedCount, of: $0.totalCount)
      return .next
    }
    console.clearProgress()
    if invocation.has(.json) {
      try console.print(json(report).text)
    } else {
      try ScrubCommand.showLines(report, on: console)
    }
    try ScrubCommand.judge(report)
  }

  private static func json(_ report: CheckReport) -> JSON {
    .object([
      ("records", .integer(report.recordCount)),
      ("bytes", .integer(report.byteCount)),
      ("tornBytes", .integer(report.tornByteCount)),
      (
        "errors",
        .array(
          report.damage.map {
            .object(
              $0.place.members + [
                JSON.member(key: $0.keys.first), ("isReplaced", .bool($0.keyCount == 0)),
              ])
          })
      ),
    ])
  }

  private static func judgement(_ report: CheckReport) -> String {
    let places = DisplayText.count(report.damage.count, "error")
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
    return "the store is damaged: \(places), the first in \(report.damage[0].place); "
      + "cairn salvage copies the sound part into a new store"
  }

  /// Few people read more lines, and later errors often follow from the first.
  private static let lineLimit = 20

  /// The text after a place whose key is known.
  static func ofKey(_ key: [UInt8]?) -> String {
    key.map { "; key \(DisplayText.line($0))" } ?? ""
  }

  private static func summary(_ report: CheckReport) -> String {
    var summary = "\(DisplayText.count(report.recordCount, "sound record")), "
    summary += "\(DisplayText.exactSize(report.byteCount)) read, "
    summary += report.damage.isEmpty ? "no errors" : DisplayText.count(report.damage.count, "error")
    if report.tornByteCount > 0 {
      summary += "; \(DisplayText.count(report.tornByteCount, "torn byte")) at the end of the log,"
      summary += " which the next open discards"
    }
    return summary
  }
}
