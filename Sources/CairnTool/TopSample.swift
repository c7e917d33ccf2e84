import Cairn

/// The data that `top` shows: the state of a store at one moment, and the changes since the
/// previous sample.
struct TopSample {
  let keyCount: Int
  let statistics: StoreStatistics
  let usage: DiskUsage
  /// The process that has the store open.
  let owner: (processID: Int32, since: Timestamp?)?
  let time: Timestamp
  private let moment = ContinuousClock.now
  /// Writes and removals a second since the previous sample, or `nil` if unknown.
  private(set) var writeRate: Double?

  /// The bytes of all segments.
  var logByteCount: Int { statistics.segments.reduce(0) { $0 + $1.byteCount } }

  /// How long ago the newest checkpoint was written, or `nil` for none.
  var checkpointAge: Duration? {
    usage.checkpointTime.map { written in
      if written >= time { return .zero }
      let (age, isTooLong) = time.millisecondsSinceEpoch.subtractingReportingOverflow(
        written.millisecondsSinceEpoch)
      return .milliseconds(isTooLong ? .max : age)
    }
  }

  /// Samples a followed store.
  ///
  /// - Parameter last: the previous sample.
  init(_ store: Store, at location: StoreLocation, after last: TopSample?) throws {
    (keyCount, statistics) = try Self.state(of: store)
    usage = DiskUsage(location)
    owner = Store.owner(at: location.path)
    time = Timestamp.now
    if let last, statistics.lastVersion >= last.statistics.lastVersion {
      let seconds = last.moment.duration(to: moment) / .seconds(1)
      let count = statistics.lastVersion - last.statistics.lastVersion
      if seconds > 0 { writeRate = Double(count) / seconds }
    }
  }

  private static func state(of store: Store) throws(StoreError) -> (Int, StoreStatistics) {
    var attempt = 0
    while true {
      do throws(StoreError) {
        try store.catchUp()
        return (try store.count(), try store.statistics())
      } catch {
        // The loss of data is reported once. The next attempt sees the current data.
        attempt += 1
        guard case .outdated = error, attempt < 10 else { throw error }
      }
    }
  }

  var json: JSON {
    let segments = statistics.segments.sorted { $0.id < $1.id }.map { segment in
      JSON.object([
        ("id", .integer(Int(clamping: segment.id))),
        ("liveBytes", .integer(segment.liveByteCount)),
        ("deadBytes", .integer(segment.deadByteCount)),
        ("bytes", .integer(segment.byteCount)),
        ("sealed", .bool(segment.isSealed)),
      ])
    }
    func integer(_ number: Int?) -> JSON { number.map { .integer($0) } ?? .null }
    return .object([
      ("time", .string("\(time)")),
      ("keys", .integer(keyCount)),
      ("liveBytes", .integer(statistics.liveByteCount)),
      ("deadBytes", .integer(statistics.deadByteCount)),
      ("logBytes", .integer(logByteCount)),
      ("onDiskBytes", .integer(usage.byteCount)),
      ("lastVersion", .integer(Int(clamping: statistics.lastVersion))),
      ("writesPerSecond", integer(writeRate.map { Int($0.rounded()) })),
      ("checkpointAgeSeconds", integer(checkpointAge.map { Int($0.components.seconds) })),
      ("processID", integer((owner?.processID).map { Int($0) })),
      ("segmentList", .array(segments)),
    ])
  }
}
