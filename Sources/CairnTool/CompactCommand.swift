import Cairn
import CommandText
import Dispatch
import Synchronization

/// `compact`: reclaims the space of dead records.
enum CompactCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    SystemCalls.watchInterruptions()
    // Measured before the store is opened and after it is closed, as in `stats`.
    let before = DiskUsage(location).byteCount
    let report = try location.write(StoreLocation.forMany(createsStore: false)) { store in
      try compact(store, on: console)
    }
    let usage = DiskUsage(location)
    let after = usage.byteCount
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("bytesBefore", .integer(before)),
          ("bytesAfter", .integer(after)),
          ("removedSegments", .integer(report.removedSegmentCount)),
          ("writtenSegments", .integer(report.writtenSegmentCount)),
          ("copiedRecords", .integer(report.copiedRecordCount)),
          ("droppedTombstones", .integer(report.droppedTombstoneCount)),
          ("unreadableSegments", .integer(report.unreadableSegmentCount)),
        ]).text)
    } else {
      try console.tell(summary(report, before, after, isDiskNearlyFull: usage.isDiskNearlyFull))
    }
    if report.unreadableSegmentCount > 0 {
      console.report(
        CommandFailure(
          .corrupt,
          "\(DisplayText.count(report.unreadableSegmentCount, "damaged segment")) left unchanged; "
            + "see cairn verify"))
    }
  }

  private static func summary(
    _ report: CompactionReport, _ before: Int, _ after: Int, isDiskNearlyFull: Bool
  ) -> String {
    let sizes =
      "\(DisplayText.exactSize(before)) on disk became \(DisplayText.exactSize(after)): "
    let segments =
      "\(DisplayText.count(report.removedSegmentCount, "segment")) removed, "
      + "\(DisplayText.count(report.writtenSegmentCount)) written"
    return report.removedSegmentCount == 0
      ? report.unreadableSegmentCount > 0 || isDiskNearlyFull
        ? "nothing was reclaimed" : "nothing to reclaim: no segment has dead records"
      : sizes + segments
  }

  /// Compacts on another thread, and shows on this one how many bytes have been reclaimed.
  private static func compact(_ store: Store, on console: Console) throws -> CompactionReport {
    let outcome = Outcome()
    let dead = try store.statistics().deadByteCount
    DispatchQueue.global().async { outcome.set(Result { try store.compact() }) }
    let progress = Progress(on: console)
    while !outcome.wait(.milliseconds(100)) {
      if SystemCalls.interruption != 0 { try? store.close() }
      guard let left = try? store.statistics().deadByteCount else { continue }
      let done = max(0, dead - left)
      progress.show("reclaimed", byteCount: done, of: dead)
    }
    console.clearProgress()
    do { return try outcome.get() } catch {
      guard SystemCalls.interruption != 0 else { throw error }
      throw CommandFailure(.failure, "interrupted; the space reclaimed so far stays free")
    }
  }

  /// The result of a compaction on another thread.
  private final class Outcome: Sendable {
    private let result = Mutex<Result<CompactionReport, any Error>?>(nil)
    private let isDone = DispatchSemaphore(value: 0)

    func set(_ result: Result<CompactionReport, any Error>) {
      self.result.withLock { $0 = result }
      isDone.signal()
    }

    /// Waits for the result, at most this long, and returns whether the result has arrived.
    func wait(_ limit: DispatchTimeInterval) -> Bool {
      isDone.wait(timeout: .now() + limit) == .success
    }

    func get() throws -> CompactionReport {
      guard let result = result.withLock({ $0 }) else {
        throw CommandFailure(.failure, "the compaction has not ended")
      }
      return try result.get()
    }
  }
}
