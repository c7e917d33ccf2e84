/// Scrubbing: slowly rereads the log, to find damage in rarely read data while an undamaged backup
/// still exists.
///
/// Reads with system calls, and always checks the checksums of every head and of every value that a
/// read would find. Cached pages come from the page cache, so damage on the disk is found only once
/// the page has left the cache. A scrub changes nothing and holds no lock while it reads the log,
/// so no thread waits for a step.
///
/// The state is locked only briefly. For a step, a thread takes the pass out of the state and puts it
/// back afterwards. The lock is taken under no other.
final class Scrubber: Sendable {
  private let session: Session
  private let lookup: Lookup
  private let log: LogWriter
  private let state: Lock<ScrubState>

  init(_ lookup: Lookup, _ log: LogWriter) {
    session = lookup.session
    self.lookup = lookup
    self.log = log
    let pace = session.configuration.scrubBytesPerSecond.map(ScrubPace.init)
    let clock = session.clock
    let time = clock.elapsed() ?? .milliseconds(clock.now().millisecondsSinceEpoch)
    state = Lock(ScrubState(due: time + (pace?.cost(of: ScrubPass.windowByteCount) ?? .zero)))
  }

  /// Reads the whole log once.
  ///
  /// - Parameter progress: called after each step. `.stop` ends the scrub there.
  func scrub(
    bytesPerSecond: Int?, progress: (WorkProgress) -> Visit
  ) throws(StoreError) -> CheckReport {
    try session.checkUsable()
    if let bytesPerSecond, bytesPerSecond < 1 {
      throw .invalidConfiguration(
        option: "bytesPerSecond", reason: "\(bytesPerSecond); it must be 1 or more")
    }
    var report = CheckReport()
    var pass = ScrubPass(began: session.clock.now(), lastID: segmentIDs.max() ?? 0)
    let total = byteCounts(of: pass).total
    var due = scrubTime
    while let damage = try takeStep(&pass) {
      damage.forEach(session.report)
      report.damage += damage
      let byteCount = pass.readByteCount - report.byteCount
      report.byteCount = pass.readByteCount
      report.recordCount = pass.recordCount
      func step() -> Visit {
        let done = min(total, byteCounts(of: pass).done)
        return progress(WorkProgress(.reading, completedCount: done, totalCount: total))
      }
      if step() == .stop { return report }
      guard let bytesPerSecond else { continue }
      due = ScrubPace(bytesPerSecond: bytesPerSecond).next(
        after: due, byteCount: byteCount, now: scrubTime)
      // Pause in pieces, so that the caller can stop the scrub and close the store. The loop counts
      // its pauses, so it ends even if the clock stands still.
      var rest = due - scrubTime
      while rest > .zero {
        session.environment.pause(min(rest, .milliseconds(100)))
        rest -= .milliseconds(100)
        if rest > .zero, step() == .stop { return report }
        try session.checkUsable()
      }
    }
    report.isComplete = true
    let now = session.clock.now()
    state.withLock { $0.complete(pass, at: now) }
    return report
  }

  // MARK: Maintenance

  /// Starts taking steps, if the configuration enables them.
  func start() {
    guard session.configuration.scrubBytesPerSecond != nil,
      session.configuration.maintenanceInterval != nil,
      !session.isReadOnly
    else { return }
    scheduleScrub()
  }

  /// Steps have their own timer. If each step ran a pass of housekeeping, every segment would be
  /// checked many times a second.
  private func scheduleScrub() {
    let now = scrubTime
    let delay = state.withLock { $0.due - now }
    session.environment.maintenance.run(
      after: min(max(delay, .milliseconds(1)), Self.longestScrubDelay)
    ) {
      [weak self] in
      guard let self, !session.isClosed, !session.hasVanished else { return }
      session.attempt("scrubbing", .error) { () throws(StoreError) in try scrubIfDue() }
      scheduleScrub()
    }
  }

  /// Takes the due steps, but only a few, so that other waiting work gets its turn.
  func scrubIfDue() throws(StoreError) {
    guard let bytesPerSecond = session.configuration.scrubBytesPerSecond else { return }
    for _ in 0..<Self.stepsAtOnce {
      guard let damage = try takeDueStep(ScrubPace(bytesPerSecond: bytesPerSecond)) else { return }
      damage.forEach(session.report)
    }
  }

  /// - Returns: the damage found, or `nil` if no step was due.
  private func takeDueStep(_ pace: ScrubPace) throws(StoreError) -> [Damage]? {
    let (now, time) = (scrubTime, session.clock.now())
    guard var pass = passIfDue(now: now, time: time) else { return nil }
    let before = pass.readByteCount
    do throws(StoreError) {
      let damage = try takeStep(&pass)
      state.withLock { state in
        state.isAtWork = false
        state.pass = damage == nil ? nil : pass
        state.due = pace.next(
          after: state.due, byteCount: pass.readByteCount - before, now: now)
        if damage == nil { state.complete(pass, at: time) }
      }
      return damage ?? []
    } catch {
      state.withLock { state in
        state.isAtWork = false
        state.due = now + Self.pauseAfterScrubFailure
      }
      throw error
    }
  }

  /// The current cycle, or a new one, if a step is due and no other thread is taking it.
  private func passIfDue(now: Duration, time: Timestamp) -> ScrubPass? {
    let isDue = state.withLock { state in
      if state.isAtWork || state.due > now { return false }
      let rest = state.pass == nil ? state.rest(at: time) : .zero
      if rest > .zero {
        state.due = now + min(rest, Self.longestScrubDelay)
        return false
      }
      state.isAtWork = true
      return true
    }
    if !isDue { return nil }
    if let pass = state.withLock({ $0.pass }) { return pass }
    let ids = segmentIDs
    let random = (try? session.directory.randomNumbers(count: 1)[0]) ?? 0
    let first = ids.isEmpty ? 0 : ids[Int(random % UInt64(ids.count))]
    return ScrubPass(began: time, firstID: first, lastID: ids.max() ?? 0)
  }

  private static let stepsAtOnce = 4
  private static let longestScrubDelay = Duration.seconds(3600)
  private static let pauseAfterScrubFailure = Duration.seconds(60)

  /// The time that paces scrubs. It never goes back, because the store's time does not.
  var scrubTime: Duration {
    session.clock.elapsed() ?? .milliseconds(session.clock.now().millisecondsSinceEpoch)
  }

  // MARK: Steps

  private var segmentIDs: [UInt64] { log.withLock { $0.segments.map(\.id.rawValue) } }

  /// Reads one more window of a segment.
  ///
  /// - Returns: the damage there, or `nil` if nothing was left to read.
  private func takeStep(_ pass: inout ScrubPass) throws(StoreError) -> [Damage]? {
    try session.checkUsable()
    // The entries show what is live, so all of them must be loaded.
    try lookup.index.loadAll()
    let next = log.withLock { appender in
      appender.segments.filter {
        let (id, end) = ($0.id.rawValue, $0.usage.end)
        return pass.completedByteCount(of: id, end: end).map { $0 < end } ?? false
      }
      .min { pass.rank($0.id.rawValue) ?? 0 < pass.rank($1.id.rawValue) ?? 0 }
      .map { (segment: $0, end: $0.usage.end) }
    }
    guard let (segment, end) = next else { return nil }
    guard let file = try segment.file.openIfNamed() else {
      pass.leaveOut(segment)
      guard let event = try eventOfMissingFile(segment, end: end) else { return [] }
      pass.noteDamage()
      return [event]
    }
    let before = pass.readByteCount
    let findings = try pass.read(segment, in: file, to: end) { key, offset in
      lookup.isLive(lookup.hash.hash(key), at: offset, in: segment)
    }
    let count = pass.readByteCount - before
    state.withLock { $0.readByteCount += count }
    var damage: [Damage] = []
    for finding in findings {
      guard let event = try event(of: finding, in: segment) else { continue }
      damage.append(event)
      pass.noteDamage()
    }
    return damage
  }

  private func hash(of key: [UInt8]) -> UInt64 { lookup.hash.hash(key.rawSpan) }

  /// The event to report, or `nil` if it no longer matters.
  private func event(
    of finding: ScrubPass.Finding, in segment: Segment
  ) throws(StoreError) -> Damage? {
    func event(_ offset: Int, _ cause: Corruption.Cause, _ keys: [[UInt8]], _ count: Int)
      -> Damage
    {
      Damage(
        place: Corruption(file: segment.name, offset: offset, cause: cause), keys: keys,
        keyCount: count)
    }
    switch finding {
    case .value(let key, let record, let value, let isUnreadable):
      guard lookup.isLive(hash(of: key), at: record, in: segment) else { return nil }
      return event(value, isUnreadable ? .unreadable : .badValue, [key], 1)
    case .hole(let range, let isUnreadable):
      let (keys, count) = try keys(in: range, of: segment)
      // A compaction or `removeAll` may have taken the segment in the meantime.
      if segment.isRetired { return nil }
      return event(
        range.lowerBound, isUnreadable ? .unreadable : .badRecordHeader, keys, count)
    }
  }

  /// The event for a segment whose file has lost its name, or `nil` if this is expected. As long as
  /// the store is open, the mapping may still be readable.
  private func eventOfMissingFile(
    _ segment: Segment, end: Int
  ) throws(StoreError) -> Damage? {
    // After a close or the loss of the directory, names mean nothing.
    try session.checkUsable()
    if session.lookForPlace() { throw .vanished(path: session.path) }
    if segment.isRetired { return nil }
    if session.isReadOnly, !isListed(segment) { return nil }
    let (keys, count) = try keys(in: 0..<end, of: segment)
    return Damage(
      place: Corruption(file: segment.name, offset: 0, cause: .missingFile), keys: keys,
      keyCount: count)
  }

  /// Whether the manifest still lists a segment, or cannot be read. The writer that this store
  /// follows may have compacted the segment.
  private func isListed(_ segment: Segment) -> Bool {
    for _ in 0..<20 {
      // The writer may be replacing the manifest.
      guard let manifest = try? ManifestFile(directory: session.directory).readBesideWriter()
      else {
        session.environment.pause(.milliseconds(1))
        continue
      }
      return manifest.openSegments.contains { $0.id == segment.id }
        || manifest.sealedSegments.contains { $0.id == segment.id }
    }
    return true
  }

  /// The keys that the index has in a part of a segment, and the number of entries there. A damaged
  /// head's key is sound if its hash equals the entry's.
  private func keys(
    in range: Range<Int>, of segment: Segment
  ) throws(StoreError) -> (keys: [[UInt8]], count: Int) {
    var keys: [[UInt8]] = []
    var offsets: [Int] = []
    try lookup.forEachEntry { entry, _ in
      guard segment.granules.contains(entry.location.granule) else { return }
      let offset = segment.offset(of: entry.location)
      if range.contains(offset) { offsets.append(offset) }
    }
    for offset in offsets {
      if let key = try key(at: offset, in: segment),
        lookup.isLive(hash(of: key), at: offset, in: segment)
      {
        keys.append(key)
      }
    }
    return (keys, offsets.count)
  }

  /// The key of a record, even if the checksum is wrong, or `nil` if the head is invalid or
  /// unreadable.
  private func key(at offset: Int, in segment: Segment) throws(StoreError) -> [UInt8]? {
    let limit = segment.usage.end - offset
    do throws(StoreError) {
      let source = try segment.bytes()
      func read(_ count: Int) throws(StoreError) -> [UInt8] {
        let count = max(0, min(limit, count))
        var bytes = [UInt8](repeating: 0, count: count)
        let found = try source.read(into: &bytes, bufferOffset: 0, byteCount: count, at: offset)
        return Array(bytes[..<found])
      }
      let fields = try read(RecordHeader.maximumFieldByteCount)
      let header = RecordHeader(decoding: fields.rawSpan, limit: limit)
      guard let header, header.kind == .put else { return nil }
      let head = try read(header.headByteCount)
      return head.count == header.headByteCount ? Array(head[header.keyRange]) : nil
    } catch {
      if error.isLoss { return nil }
      throw error
    }
  }

  // MARK: State

  var statistics: ScrubStatistics {
    let state = state.withLock { $0 }
    var statistics = ScrubStatistics()
    statistics.lastCompleted = state.completed
    statistics.lastDamageCount = state.completedDamageCount
    statistics.readByteCount = state.readByteCount
    if let pass = state.pass {
      statistics.began = pass.began
      statistics.damageCount = pass.damageCount
      let (done, total) = byteCounts(of: pass)
      statistics.progress = WorkProgress(.reading, completedCount: done, totalCount: total)
    }
    return statistics
  }

  private func byteCounts(of pass: ScrubPass) -> (done: Int, total: Int) {
    log.withLock { appender in
      appender.segments.reduce((0, 0)) { sum, segment in
        let end = segment.usage.end
        let done = pass.completedByteCount(of: segment.id.rawValue, end: end)
        return done.map { (sum.0 + $0, sum.1 + end) } ?? sum
      }
    }
  }
}
