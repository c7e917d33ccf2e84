import Cairn
import CairnRepair
import CommandText

/// `verify`: checks every byte of every file of a store.
enum VerifyCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let progress = Progress(on: console)
    let report: VerificationReport
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
      try console.print(
        JSON.object([
          ("records", .integer(report.recordCount)),
          ("bytes", .integer(report.byteCount)),
          ("tornBytes", .integer(report.tornByteCount)),
          (
            "errors",
            .array(
              report.errors.map { error in
                let isReplaced = ("isReplaced", JSON.bool(report.replaced.contains(error)))
                return .object(
                  error.members + [JSON.member(key: report.keys[error]), isReplaced])
              })
          ),
        ]).text)
    } else {
      for error in report.errors.prefix(lineLimit) {
        let isReplaced = report.replaced.contains(error)
        try console.tell(
          error.description + ofKey(report.keys[error])
            + (isReplaced ? ", which was rewritten or removed since" : ""),
          style: isReplaced ? .warning : .error)
      }
      let unlisted = report.errors.count - lineLimit
      if unlisted > 0 {
        try console.tell("and \(DisplayText.count(unlisted, "more error")); --json lists all")
      }
      try console.tell(summary(report))
    }
    if !report.errors.isEmpty {
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
      try console.print(
        JSON.object([
          ("records", .integer(report.recordCount)),
          ("bytes", .integer(report.byteCount)),
          ("tornBytes", .integer(0)),
          (
            "errors",
            .array(
              report.damage.map { event in
                .object(
                  event.place.members + [
                    JSON.member(key: event.keys.first), ("isReplaced", .bool(event.keyCount == 0)),
                  ])
              })
          ),
        ]).text)
    } else {
      try ScrubCommand.showLines(report, on: console)
    }
    try ScrubCommand.judge(report)
  }

  private static func judgement(_ report: VerificationReport) -> String {
    let places = DisplayText.count(report.errors.count, "error")
    if report.errors.allSatisfy({ $0.file.hasPrefix("ckpt-") }) {
      return
        "only the checkpoint is damaged: no value is lost, but opening takes longer until a program "
        + "that writes to the store makes a new one"
    }
    if report.errors.allSatisfy({ report.replaced.contains($0) }) {
      return
        "only values that were rewritten or removed since are damaged: no value is lost, and "
        + "cairn compact reclaims their space"
    }
    return "the store is damaged: \(places), the first in \(report.errors[0]); "
      + "cairn salvage copies the sound part into a new store"
  }

  /// Few people read more lines, and later errors often follow from the first.
  private static let lineLimit = 20

  /// The text after a place whose key is known.
  static func ofKey(_ key: [UInt8]?) -> String {
    key.map { "; key \(DisplayText.line($0))" } ?? ""
  }

  private static func summary(_ report: VerificationReport) -> String {
    var summary = "\(DisplayText.count(report.recordCount, "sound record")), "
    summary += "\(DisplayText.exactSize(report.byteCount)) read, "
    summary += report.errors.isEmpty ? "no errors" : DisplayText.count(report.errors.count, "error")
    if report.tornByteCount > 0 {
      summary += "; \(DisplayText.count(report.tornByteCount, "torn byte")) at the end of the log,"
      summary += " which the next open discards"
    }
    return summary
  }
}
