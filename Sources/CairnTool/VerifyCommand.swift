import Cairn

/// `verify`: checks every byte of every file of a store.
enum VerifyCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let report = try Store.verify(path: location.path)
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("records", .integer(report.recordCount)),
          ("bytes", .integer(report.byteCount)),
          ("tornBytes", .integer(report.tornByteCount)),
          ("errors", .array(report.errors.map(\.json))),
        ]).text)
    } else {
      for error in report.errors { try console.print(error.description) }
      var summary =
        "\(DisplayText.count(report.recordCount, "sound record")), "
        + "\(DisplayText.exactSize(report.byteCount)) read, "
        + DisplayText.count(report.errors.count, "error")
      if report.tornByteCount > 0 {
        summary +=
          "; \(DisplayText.count(report.tornByteCount, "torn byte")) at the end of the log,"
        summary += " which the next open discards"
      }
      try console.print(summary)
    }
    if let first = report.errors.first {
      let more = report.errors.count - 1
      let others = more > 0 ? " (and \(DisplayText.count(more, "more error")))" : ""
      throw CommandFailure(.corrupt, "corrupt: \(first)\(others)")
    }
  }
}
