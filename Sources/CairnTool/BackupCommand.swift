import Cairn
import CommandText

/// `backup`: makes a checked copy of a store.
enum BackupCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let destination = try invocation.store(at: 1, named: "DESTINATION")
    let copy = UnfinishedCopy(at: destination, on: console)
    let progress = Progress(on: console)
    let report = try location.read(on: console) { store in
      try store.backup(to: destination.path) {
        copy.removeIfInterrupted(hasBegun: true)
        progress.show(
          $0.phase == .copying ? "copied" : "checked", byteCount: $0.completedCount,
          of: $0.totalCount)
      }
    }
    console.clearProgress()
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("entries", .integer(report.entryCount)),
          ("segments", .integer(report.segmentCount)),
          ("bytes", .integer(report.byteCount)),
          ("version", .integer(Int(clamping: report.version))),
          (
            "damagedValues",
            .array(
              report.damage.map {
                .object($0.place.members + [JSON.member("key", $0.keys.first)])
              })
          ),
        ]).text)
    } else {
      for value in report.damage {
        try console.tell(
          "damaged: \(value)\(VerifyCommand.ofKey(value.keys.first))", style: .error)
      }
      try console.tell(
        "the backup has \(DisplayText.count(report.entryCount, "entry", "entries")); copied "
          + DisplayText.exactSize(report.byteCount))
    }
    if !report.damage.isEmpty {
      throw CommandFailure(
        .corrupt,
        "\(DisplayText.count(report.damage.count, "value")) damaged in the store too")
    }
  }
}
