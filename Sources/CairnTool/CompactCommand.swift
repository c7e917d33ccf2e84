import Cairn

/// `compact`: gives back the space of dead records.
enum CompactCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    var configuration = StoreConfiguration()
    configuration.createsStore = false
    let report = try location.write(configuration) { store in try store.compact() }
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("bytesBefore", .integer(report.byteCountBefore)),
          ("bytesAfter", .integer(report.byteCountAfter)),
          ("removedSegments", .integer(report.removedSegmentCount)),
          ("writtenSegments", .integer(report.writtenSegmentCount)),
          ("copiedRecords", .integer(report.copiedRecordCount)),
          ("droppedTombstones", .integer(report.droppedTombstoneCount)),
          ("unreadableSegments", .integer(report.unreadableSegmentCount)),
        ]).text)
    } else {
      try console.print(
        "\(DisplayText.exactSize(report.byteCountBefore)) became "
          + "\(DisplayText.exactSize(report.byteCountAfter)): "
          + "\(DisplayText.count(report.removedSegmentCount, "segment")) removed, "
          + "\(DisplayText.count(report.writtenSegmentCount)) written")
    }
    if report.unreadableSegmentCount > 0 {
      console.report(
        CommandFailure(
          .corrupt,
          "\(DisplayText.count(report.unreadableSegmentCount, "damaged segment")) left as before; "
            + "see cairn verify"))
    }
  }
}
