import CairnStore

/// Copies the sound contents of a store that may be damaged into a new one.
///
/// Two promises: nothing unsound is ever copied, and everything provably sound is. Both rely on two
/// rules. A record's checksum is seeded with the record's place. And the newest record of a key
/// decides: if it is damaged, the key is lost, and no older value replaces it.
struct Salvager: ~Copyable {
  private static let lossLimit = 1000

  private var source: SalvageSource
  private var report: SalvageReport
  private var index = SalvageIndex()
  private let clock: StoreClock
  private let bootIdentifier: [UInt8]
  /// Whether a sync failed. The log may then have holes even if the machine has not restarted.
  private let hasLostPages: Bool
  private var searchedByteCount = 0
  private var highest: Int64 = 0
  private let progress: (WorkProgress) -> Void
  private var pool = SalvagePool([])

  static func salvage(
    path: String, to destination: String, segmentByteLimit: Int, clock: any WallClock,
    environment: Environment, progress: (WorkProgress) -> Void
  ) throws(StoreError) -> SalvageReport {
    try withoutActuallyEscaping(progress) { (progress) throws(StoreError) -> SalvageReport in
      let directory = try Directory(
        path: path, fileSystem: environment.fileSystem, readOnly: true)
      let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
      try lockFile?.lockStore(at: path, exclusively: false)
      defer { lockFile?.unlock() }
      var hasLostPages = false
      if let lockFile { hasLostPages = try SyncFailureMark(lockFile: lockFile).isSet() }
      let names = try directory.names()
      guard names.contains(FileName.manifest) || names.contains(where: { FileName.isSegment($0) })
      else {
        if let other = names.first(where: { !FileName.beforeManifest.contains($0) }) {
          throw .notAStore(path: path, reason: "it holds \"\(shown(other))\" and no MANIFEST")
        }
        throw .noStore(path: path)
      }
      var salvager = try Salvager(
        directory: directory, names: names, hasLostPages: hasLostPages, clock: clock,
        progress: progress)
      if lockFile == nil { salvager.report.kinds.append(.notLocked) }
      // Check this before the search, which may take a long time.
      try StoreCopy.checkDestination(destination, outside: directory)
      try salvager.search()
      try salvager.copy(to: destination, outside: directory, segmentByteLimit: segmentByteLimit)
      return salvager.report
    }
  }

  private init(
    directory: Directory, names: [String], hasLostPages: Bool, clock: any WallClock,
    progress: @escaping (WorkProgress) -> Void
  ) throws(StoreError) {
    self.init(
      try SalvageSource(directory: directory, names: names), hasLostPages: hasLostPages,
      bootIdentifier: try directory.fileSystem.currentBoot(path: directory.path), clock, progress)
  }

  private init(
    _ source: SalvageSource, hasLostPages: Bool, bootIdentifier: [UInt8], _ clock: any WallClock,
    _ progress: @escaping (WorkProgress) -> Void
  ) {
    self.source = source
    self.hasLostPages = hasLostPages
    self.progress = progress
    self.bootIdentifier = bootIdentifier
    self.clock = StoreClock(
      clock, lastRecorded: source.manifest?.lastTime ?? Timestamp(millisecondsSinceEpoch: .min))
    report = source.report
  }

  // MARK: Losses

  private mutating func lose(
    _ file: String, _ range: Range<Int>, _ cause: Corruption.Cause, key: [UInt8]? = nil
  ) {
    report.lossCount += 1
    report.lostByteCount = report.lostByteCount.adding(clamped: range.count)
    if report.losses.count < Self.lossLimit {
      report.losses.append(Damage(lost: range, of: file, cause, key: key))
    }
  }

  private mutating func warn(_ warning: SalvageReport.Warning) {
    if !report.kinds.contains(warning) { report.kinds.append(warning) }
  }

  // MARK: Searching

  /// Finds the newest record of every key.
  private mutating func search() throws(StoreError) {
    try source.findSegments(bootIdentifier: bootIdentifier, hasLostPages: hasLostPages)
    report.tornByteCount = source.report.tornByteCount
    for warning in source.report.kinds { warn(warning) }
    for loss in source.losses {
      let place = loss.place
      lose(place.file, loss.range, place.cause)
      // Losing only a header affects no records.
      if place.file != FileName.manifest,
        place.cause != .badHeader || loss.range.count > SegmentHeader.byteCount
      {
        warn(.olderValuesMayBeBack)
      }
    }
    if source.manifest == nil {
      warn(.olderValuesMayBeBack)
      warn(.removedDataMayBeBack)
    }
    highest = max(source.highestSequence, Int64(clamping: source.manifest?.highestSequence ?? 0))
    pool = SalvagePool(source.segments)
    for position in source.segments.indices { try search(position) }
  }

  private mutating func search(_ position: Int) throws(StoreError) {
    let segment = source.segments[position]
    let floor = Int64(source.manifest?.floorSequence ?? 0)
    var walk = try SalvageWalk(segment)
    // Losses before this offset are accounted for.
    var accounted = SegmentHeader.byteCount
    walking: while true {
      switch try walk.next() {
      case .end: break walking
      case .hole(let hole):
        if hole.lowerBound >= segment.cut { break walking }
        accounted = hole.upperBound
        let isCutOff = hole.lowerBound >= segment.fileByteCount
        lose(
          segment.name, hole.lowerBound..<min(hole.upperBound, segment.cut),
          isCutOff ? .fileTooShort : .badRecordHeader)
        warn(.olderValuesMayBeBack)
      case .record(let record, let offset):
        if offset >= segment.cut { break walking }
        accounted = offset + record.byteCount
        if record.kind == .roll { continue }
        let sequence = segment.sequence(of: record)
        highest = max(highest, sequence.lowerBound)
        if sequence.upperBound <= floor { continue }
        var entry = SalvageIndex.Entry(
          sequence: sequence, offset: offset, written: segment.written(record),
          segment: Int32(position), state: record.kind == .put ? .value : .tombstone)
        let isUnproven = offset >= segment.unprovenStart || sequence.lowerBound <= floor
        if isUnproven { entry.state = .lost }
        let pool = pool
        try walk.withKey(of: record, at: offset) { (key) throws(StoreError) in
          try index.add(entry, key: key) { (entry) throws(StoreError) in
            try Self.isSound(entry, in: pool[Int(entry.segment)])
          }
        }
      }
    }
    let needed = segment.mustRoll && !walk.hasRolled ? segment.dataEnd : segment.durableEnd
    if accounted < needed {
      lose(segment.name, accounted..<needed, .lostRecords)
      warn(.olderValuesMayBeBack)
    }
    for range in walk.unreadable where range.lowerBound < segment.cut {
      lose(segment.name, range, .unreadable)
    }
    if segment.unprovenStart < segment.dataEnd {
      lose(segment.name, segment.unprovenStart..<segment.unprovenStart, .unfinishedBatch)
    }
    searchedByteCount += segment.dataEnd
    progress(WorkProgress(.reading, completedCount: searchedByteCount))
  }

  private static func isSound(
    _ entry: SalvageIndex.Entry, in segment: SalvageSegment
  ) throws(StoreError) -> Bool {
    try segment.withScanner { (scanner) throws(StoreError) in
      guard let record = try scanner.header(at: entry.offset) else { return false }
      return try scanner.hasValidValue(record, at: entry.offset)
    }
  }

  // MARK: Copying

  /// Copies the newest value of every key, in the order of the writes.
  private mutating func copy(
    to destination: String, outside directory: Directory, segmentByteLimit: Int
  ) throws(StoreError) {
    let found = index.entries.lazy.filter { $0.value.state == .value }
    let sorted = found.sorted { left, right in
      left.value.sequence.lowerBound != right.value.sequence.lowerBound
        ? left.value.sequence.lowerBound < right.value.sequence.lowerBound
        : left.key.lexicographicallyPrecedes(right.key)
    }
    report.lostKeyCount = index.lostKeyCount
    let now = clock.now()
    let seconds = SegmentHeader.baseTime(for: now)
    var earliest = seconds
    var latest = seconds
    for (_, entry) in sorted {
      guard let written = entry.written else {
        warn(.writtenTimesLost)
        continue
      }
      earliest = min(earliest, written)
      latest = max(latest, written)
    }
    let keepsVersions = keepsVersions(sorted.map(\.value))
    if !keepsVersions { warn(.versionsChanged) }
    let identifier: [UInt8]
    do { identifier = try directory.fileSystem.randomBytes(count: 16) } catch {
      throw error.storeError(path: destination)
    }
    var writer = SalvageWriter(
      try StoreCopy.begin(at: destination, outside: directory),
      segmentByteLimit: segmentByteLimit,
      // Times that are too far apart for one segment are clamped: they are only informative.
      baseTime: max(earliest, latest - Int64(UInt32.max)), storeIdentifier: identifier)
    do throws(StoreError) {
      var last: SequenceNumber = 0
      for (key, entry) in sorted {
        let sequence = keepsVersions ? UInt64(entry.sequence.lowerBound) : last + 1
        let isCopied = try copy(
          key: key, entry, sequence: sequence, written: entry.written ?? seconds, to: &writer)
        if isCopied { last = sequence }
      }
      try writer.finish(
        lastSequence: keepsVersions ? max(last, UInt64(max(0, highest))) : last,
        lastTime: now, bootIdentifier: bootIdentifier)
    } catch {
      writer.discard()
      throw error
    }
  }

  /// Whether the copy can keep the entries' sequence numbers: all must be known and different, and
  /// must leave as many higher numbers free as an open needs.
  private func keepsVersions(_ sorted: [SalvageIndex.Entry]) -> Bool {
    var last: Int64 = 0
    for entry in sorted {
      let segment = source.segments[Int(entry.segment)]
      guard entry.sequence.count == 1, segment.hasProvenBase, entry.sequence.lowerBound > last
      else {
        return false
      }
      last = entry.sequence.lowerBound
    }
    return max(last, highest) < Int64(FormatVersion.writableLimit)
  }

  /// Copies one value. Returns `false` if the value turns out to be damaged.
  private mutating func copy(
    key: [UInt8], _ entry: SalvageIndex.Entry, sequence: SequenceNumber, written: Int64,
    to writer: inout SalvageWriter
  ) throws(StoreError) -> Bool {
    let segment = pool[Int(entry.segment)]
    let copied = try segment.withScanner {
      (scanner) throws(StoreError) -> (isSound: Bool, header: RecordHeader?) in
      // Read again, because a failing disk may return different bytes than before.
      guard let header = try scanner.header(at: entry.offset),
        let head = try scanner.head(of: header, at: entry.offset),
        Array(head[header.keyRange]) == key
      else { return (false, nil) }
      let isSound = try writer.append(header, head: head, sequence: sequence, written: written) {
        (emit) throws(StoreError) in
        try scanner.readValue(header, at: entry.offset, emit)
      }
      return (isSound, header)
    }
    guard copied.isSound, let header = copied.header else {
      report.lostKeyCount += 1
      let range = copied.header?.valueRange ?? 0..<RecordHeader.fixedByteCount
      lose(
        segment.name, entry.offset + range.lowerBound..<entry.offset + range.upperBound,
        copied.header == nil ? .badRecordHeader : .badValue, key: key)
      return false
    }
    report.entryCount += 1
    report.byteCount += header.keyByteCount + header.metadataByteCount + header.valueByteCount
    if report.entryCount % 256 == 0 || header.valueByteCount > 1 << 20 {
      progress(WorkProgress(.copying, completedCount: report.byteCount))
    }
    return true
  }
}
