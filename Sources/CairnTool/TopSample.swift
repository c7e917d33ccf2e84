import Cairn

/// What `top` shows of a store: its state at one moment, and how it has changed since the one before.
struct TopSample {
  let keyCount: Int
  let statistics: StoreStatistics
  let usage: DiskUsage
  /// The process that has the store open.
  let owner: (processID: Int32, since: Timestamp?)?
  let time: Timestamp
  private let moment = ContinuousClock.now
  /// Writes and removals a second since the sample before; `nil`: nobody knows.
  private(set) var writeRate: Double?

  /// The sum of all segments.
  var logByteCount: Int { statistics.segments.reduce(0) { $0 + $1.byteCount } }

  /// How long ago the newest checkpoint was written; `nil`: there is none.
  var checkpointAge: Duration? {
    usage.checkpointTime.map {
      .milliseconds(max(0, time.millisecondsSinceEpoch - $0.millisecondsSinceEpoch))
    }
  }

  /// Looks at a store that is followed.
  ///
  /// - Parameter last: the sample before.
  init(_ store: Store, at location: StoreLocation, after last: TopSample?) throws {
    (keyCount, statistics) = try Self.state(of: store)
    usage = DiskUsage(location)
    owner = Store.owner(at: location.path)
    time = SystemClock().now()
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
        // It is told once that something is gone. Then what is there is found.
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
