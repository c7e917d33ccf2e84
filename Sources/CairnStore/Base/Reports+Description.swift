// The text that `print` shows for reports and statistics. It is for people, and later versions may
// change its wording.

/// One line of the parts that are present.
private func line(_ first: String, _ others: String?...) -> String {
  ([first] + others).compactMap(\.self).joined(separator: ", ")
}

/// A part of a line, or `nil` if the count is zero.
private func part(_ count: Int, _ text: @autoclosure () -> String) -> String? {
  count == 0 ? nil : text()
}

extension StoreStatistics: CustomStringConvertible {
  /// The store's content, delayed writes and the result of the open, one line each.
  public var description: String {
    let size = DisplayText.size
    var lines = [
      line(
        DisplayText.count(count, "key"), "\(size(liveByteCount)) live",
        "\(size(deadByteCount)) dead",
        "\(size(allocatedByteCount)) on disk in \(DisplayText.count(segmentCount, "segment"))",
        part(pinnedByteCount, "\(size(pinnedByteCount)) still read from"),
        "\(size(indexByteCount)) of memory for the index")
    ]
    if delayedWriteCount > 0 {
      lines.append(
        "\(DisplayText.count(delayedWriteCount, "write")) waited "
          + "\(DisplayText.shortDuration(writeDelay)) in all for compaction")
    }
    lines.append("\(recovery)")
    return lines.joined(separator: "\n")
  }
}

extension RecoveryReport: CustomStringConvertible {
  /// The result of the open, on one line.
  public var description: String {
    let records = "\(DisplayText.count(replayedRecordCount, "record")) read"
    let opening =
      switch source {
      case .created: "opened as a new store"
      case .scan: "opened by reading the log: \(records)"
      case .checkpoint: "opened from a checkpoint: \(records)"
      }
    return line(
      opening, wasClean ? nil : "not closed before",
      part(tornByteCount, "\(DisplayText.count(tornByteCount, "unfinished byte")) discarded"),
      part(damage.count, DisplayText.count(damage.count, "damaged value")),
      part(
        quarantinedFiles.count, "\(DisplayText.count(quarantinedFiles.count, "file")) set aside"),
      clockWentBack ? "the clock is more than a day behind" : nil,
      clockLag > .zero && !clockWentBack
        ? "the clock is \(DisplayText.shortDuration(clockLag)) behind" : nil)
  }
}

extension CompactionReport: CustomStringConvertible {
  /// The result of the compaction, on one line.
  public var description: String {
    let size = DisplayText.size
    return line(
      "\(DisplayText.count(removedSegmentCount, "segment")) compacted into "
        + DisplayText.count(writtenSegmentCount),
      "\(size(byteCountBefore)) before and \(size(byteCountAfter)) after",
      "\(DisplayText.count(copiedRecordCount, "record")) copied",
      part(pinnedByteCount, "\(size(pinnedByteCount)) still read from"),
      part(
        unreadableSegmentCount,
        "\(DisplayText.count(unreadableSegmentCount, "unreadable segment")) left as before"))
  }
}

extension RemovalSummary: CustomStringConvertible {
  /// The removed entries, on one line.
  public var description: String {
    line(
      "\(DisplayText.count(count, "entry", "entries")) removed", "cost \(DisplayText.count(cost))",
      part(damagedCount, "\(DisplayText.count(damagedCount, "damaged one")) left"))
  }
}

extension BackupReport: CustomStringConvertible {
  /// The copied entries, and the first ten damaged values.
  public var description: String {
    line(
      "\(DisplayText.count(entryCount, "entry", "entries")) backed up",
      "\(DisplayText.size(byteCount)) in \(DisplayText.count(segmentCount, "segment"))",
      part(
        damage.count, DisplayText.count(damage.count, "damaged value") + DisplayText.list(damage)))
  }
}

extension CheckReport: CustomStringConvertible {
  /// The amount checked, and the first ten damaged places.
  public var description: String {
    line(
      "\(DisplayText.count(recordCount, "sound record")) in \(DisplayText.size(byteCount))",
      part(tornByteCount, DisplayText.count(tornByteCount, "unfinished byte")),
      isComplete ? nil : "stopped before the end",
      damage.isEmpty
        ? "no damage" : DisplayText.count(damage.count, "damaged place") + DisplayText.list(damage))
  }
}
