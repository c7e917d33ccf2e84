import Cairn
import CairnRepair
import CommandText

/// `salvage`: copies the sound contents of a damaged store into a new one.
enum SalvageCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let source = try invocation.store(at: 0)
    let destination = try invocation.store(at: 1, named: "DESTINATION")
    let copy = UnfinishedCopy(at: destination, on: console)
    let progress = Progress(on: console)
    let total = DiskUsage(source).segmentLength
    let report = try Store.salvage(path: source.path, to: destination.path) { done in
      let isReading = done.phase == .reading
      copy.removeIfInterrupted(hasBegun: !isReading)
      progress.show(
        isReading ? "searched" : "copied", byteCount: done.completedCount,
        of: isReading ? total : nil)
    }
    console.clearProgress()
    if invocation.has(.json) {
      try console.print(json(report).text)
    } else {
      for loss in report.losses {
        try console.tell("lost: \(loss)\(VerifyCommand.ofKey(loss.keys.first))", style: .error)
      }
      let unlisted = report.lossCount - report.losses.count
      if unlisted > 0 {
        try console.tell("lost: \(DisplayText.count(unlisted)) more places", style: .error)
      }
      for warning in report.warnings { try console.tell("warning: \(warning)", style: .warning) }
      try console.tell(summary(report))
    }
    if !report.isComplete {
      throw CommandFailure(
        .corrupt,
        "not everything could be copied: \(missing(report)); check the copy before it "
          + "replaces the old store")
    }
  }

  private static func summary(_ report: SalvageReport) -> String {
    var summary =
      "salvaged \(DisplayText.count(report.entryCount, "entry", "entries")), "
      + "\(DisplayText.exactSize(report.byteCount)); \(missing(report))"
    if report.tornByteCount > 0 {
      summary += "; left out \(DisplayText.count(report.tornByteCount, "torn byte"))"
      summary += " at the end of the log, which an open also discards"
    }
    return summary
  }

  private static func missing(_ report: SalvageReport) -> String {
    guard !report.isComplete else { return "nothing was lost" }
    if report.lossCount == 0, report.lostKeyCount == 0, report.manifest == .used {
      return report.tornByteCount > 0
        ? "no known data was lost, but the last write may have been"
        : "nothing that the manifest lists was lost"
    }
    let bytes = DisplayText.count(report.lostByteCount, "byte")
    let places = DisplayText.count(report.lossCount, "place")
    var text =
      if report.lostKeyCount > 0 {
        "lost \(DisplayText.count(report.lostKeyCount, "known key")) and \(bytes) in \(places)"
      } else if report.lostByteCount > 0 {
        "lost \(bytes) in \(places), of unknown keys"
      } else {
        "no known data was lost"
          + (report.lossCount > 0 ? ", but \(places) could not be read" : "")
      }
    if report.manifest != .used { text += ", with the manifest \(report.manifest.rawValue)" }
    return text
  }

  private static func json(_ report: SalvageReport) -> JSON {
    .object([
      ("entries", .integer(report.entryCount)),
      ("bytes", .integer(report.byteCount)),
      ("lostKeys", .integer(report.lostKeyCount)),
      ("lostBytes", .integer(report.lostByteCount)),
      ("lostPlaces", .integer(report.lossCount)),
      ("tornBytes", .integer(report.tornByteCount)),
      ("manifest", .string(report.manifest.rawValue)),
      ("complete", .bool(report.isComplete)),
      (
        "losses",
        .array(
          report.losses.map { loss in
            .object([
              ("file", .string(loss.place.file)), ("offset", .integer(loss.range.lowerBound)),
              ("end", .integer(loss.range.upperBound)), ("cause", .string(loss.place.code)),
              JSON.member("key", loss.keys.first),
            ])
          })
      ),
      ("warnings", .array(report.kinds.map { .string($0.rawValue) })),
    ])
  }
}
