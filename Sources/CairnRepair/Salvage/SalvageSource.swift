import CairnStore

/// The remains of a damaged store: its segments, and which records of each to use.
struct SalvageSource {
  let directory: Directory
  let names: [String]
  private(set) var manifest: Manifest?
  /// The readable segments, in the order of the log if it is known.
  private(set) var segments: [SalvageSegment] = []
  private(set) var losses: [Damage] = []
  private(set) var report = SalvageReport()
  /// The highest sequence number in discarded parts of the log.
  private(set) var highestSequence: Int64 = 0
  /// The store's UUID from a damaged manifest, used only for comparison.
  private var supposedIdentifier: [UInt8]?

  init(directory: Directory, names: [String]) throws(StoreError) {
    self.directory = directory
    self.names = names
    try readManifest()
  }

  private mutating func readManifest() throws(StoreError) {
    do {
      manifest = try ManifestFile(directory: directory).read()
      if manifest == nil { report.manifest = .missing }
    } catch {
      report.manifest = .damaged
      switch error {
      case .corrupt(let damage):
        lose(FileName.manifest, damage.offset..<damage.offset, damage.cause)
        supposedIdentifier = try? Self.bytes(
          Manifest.identifierRange, of: FileName.manifest, in: directory)
      case .unsafeFile: lose(FileName.manifest, 0..<0, .unsafeFile)
      case let error where error.isOfMedium: lose(FileName.manifest, 0..<0, .unreadable)
      default: throw error
      }
    }
  }

  private static func bytes(
    _ range: Range<Int>, of name: String, in directory: Directory
  ) throws(StoreError) -> [UInt8]? {
    guard let file = try directory.openFile(name, mode: .readOnly) else { return nil }
    var bytes = [UInt8](repeating: 0, count: range.count)
    return try file.read(into: &bytes, at: range.lowerBound) == range.count ? bytes : nil
  }

  private mutating func lose(_ file: String, _ range: Range<Int>, _ cause: Corruption.Cause) {
    losses.append(Damage(lost: range, of: file, cause))
  }

  /// Finds the segments and the end of each.
  mutating func findSegments(
    bootIdentifier: [UInt8], hasLostPages: Bool
  ) throws(StoreError) {
    guard let manifest else { return try findUnlisted() }
    for entry in manifest.sealedSegments {
      if let segment = try openListed(
        entry.id, entry.salt, recordedEnd: entry.byteCount, durableByteCount: entry.byteCount)
      {
        if segment.header == nil {
          try boundBase(
            of: segment, by: entry.lowestSequence...max(entry.lowestSequence, entry.highestSequence)
          )
        }
        segments.append(segment)
      }
    }
    var open: [SalvageSegment?] = []
    var reserved: [Int: Manifest.OpenSegment] = [:]
    let covered = coveredEnds(manifest)
    for (index, entry) in manifest.openSegments.enumerated() {
      let durable = max(entry.byteCount, covered[entry.id] ?? 0)
      if durable == 0, isUnwritten(entry.id, storeOf: manifest) {
        reserved[index] = entry
        open.append(nil)
      } else {
        open.append(
          try openListed(
            entry.id, entry.salt, recordedEnd: manifest.isClean ? entry.byteCount : nil,
            durableByteCount: durable))
      }
    }
    let last = manifest.sealedSegments.map(\.highestSequence).max() ?? 0
    try orderBases(of: open, after: max(manifest.floorSequence, last))
    if !manifest.isClean {
      try findEnd(
        of: open, reserved,
        sameBoot: bootIdentifier == manifest.bootIdentifier && !hasLostPages)
    }
    segments += open.compactMap { $0 }
    let listed = Set(
      (manifest.sealedSegments.map(\.id) + manifest.openSegments.map(\.id)).map(\.rawValue)
        + manifest.retiredIDs + manifest.pendingIDs)
    let isUnlisted = names.contains { name in
      guard FileName.isSegment(name), let id = FileName.identifier(in: name) else { return false }
      return id < manifest.nextID && !listed.contains(id)
    }
    if isUnlisted { report.kinds.append(.unlistedSegments) }
  }

  // MARK: By the manifest

  /// How many bytes of each segment the checkpoint covers; all of them were durable. Empty if the
  /// checkpoint is unusable.
  private func coveredEnds(_ manifest: Manifest) -> [SegmentID: Int] {
    guard !manifest.isClean, manifest.checkpointID != 0,
      let file = try? CheckpointFile(
        in: directory, id: manifest.checkpointID, storeIdentifier: manifest.storeIdentifier,
        checksum: manifest.checkpointChecksum),
      file.header.agrees(with: manifest)
    else { return [:] }
    return Dictionary(file.header.segments.map { ($0.id, $0.end) }) { first, _ in first }
  }

  /// Opens a segment that the manifest lists, even if its header is damaged.
  private mutating func openListed(
    _ id: SegmentID, _ salt: UInt64, recordedEnd: Int?, durableByteCount: Int
  ) throws(StoreError) -> SalvageSegment? {
    let name = FileName.segment(id)
    guard let (file, byteCount) = try openFile(name, expected: recordedEnd ?? durableByteCount)
    else { return nil }
    let (raw, found) = try readHeader(of: file)
    var header = found
    if let found,
      found.id != id || found.salt != salt
        || found.storeIdentifier != manifest?.storeIdentifier
    {
      header = nil
    }
    if header == nil, let identifier = manifest?.storeIdentifier {
      header = SegmentHeader(
        restoring: raw.rawSpan, storeIdentifier: identifier, id: id, salt: salt)
    }
    if header == nil {
      lose(name, 0..<min(SegmentHeader.byteCount, max(byteCount, 0)), .badHeader)
    }
    return SalvageSegment(
      name: name, id: id, salt: salt, directory: directory, fileByteCount: byteCount,
      header: header,
      recordedEnd: recordedEnd, durableByteCount: durableByteCount)
  }

  /// Whether a segment has no file, or one that is too short for a header or has only zeros.
  private func isUnwritten(_ id: SegmentID, storeOf manifest: Manifest) -> Bool {
    let name = FileName.segment(id)
    guard names.contains(name) else { return true }
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.byteCount)
    guard let file = try? directory.openFile(name, mode: .readOnly),
      let byteCount = try? file.status().byteCount,
      let count = try? file.read(into: &bytes, at: 0)
    else { return false }
    if count < bytes.count { return true }
    guard bytes.allSatisfy({ $0 == 0 }) else { return false }
    let header = SegmentHeader(
      storeIdentifier: manifest.storeIdentifier, id: id, salt: 0, baseSequence: 0, baseTime: 0)
    let end = min(byteCount, FormatVersion.highestOffset)
    var scanner = SegmentScanner(file: file, header: header, end: end)
    return (try? scanner.endOfData(from: 0, to: end)) == 0
  }

  /// The file of a segment, or `nil` if no file is readable.
  private mutating func openFile(
    _ name: String, expected byteCount: Int
  ) throws(StoreError) -> (File, byteCount: Int)? {
    do {
      guard let file = try directory.openFile(name, mode: .readOnly) else {
        lose(name, 0..<byteCount, .missingFile)
        return nil
      }
      return (file, min(try file.status().byteCount, FormatVersion.highestOffset))
    } catch {
      guard let cause = error.causeOfLostFile else { throw error }
      lose(name, 0..<byteCount, cause)
      return nil
    }
  }

  /// The bytes of a header, with zeros for unreadable ones, and the header if it is sound.
  ///
  /// - Throws: `unsupportedVersion`: data of another version cannot be interpreted.
  private func readHeader(
    of file: File
  ) throws(StoreError) -> (raw: [UInt8], header: SegmentHeader?) {
    var raw = [UInt8](repeating: 0, count: SegmentHeader.byteCount)
    do {
      _ = try file.read(into: &raw, at: 0)
      let name = file.name
      return (
        raw,
        try SegmentHeader(decoding: raw.rawSpan, file: name)
      )
    } catch {
      if case .corrupt = error { return (raw, nil) }
      if error.isOfMedium { return (raw, nil) }
      throw error
    }
  }

  /// Finds the base sequence of a sealed segment without a header. If every record is present, the
  /// lowest and the highest number both determine the base. If some records are lost, the two
  /// numbers bound it.
  private func boundBase(
    of segment: SalvageSegment, by sequences: ClosedRange<SequenceNumber>
  ) throws(StoreError) {
    guard let deltas = try Self.deltas(of: segment) else { return }
    let low = Int64(sequences.lowerBound) - deltas.lowerBound
    let high = Int64(sequences.upperBound) - deltas.upperBound
    guard sequences.lowerBound > 0, low <= high else { return }
    segment.base = low...high
    segment.hasProvenBase = low == high
    guard low == high, low >= 1, let identifier = manifest?.storeIdentifier,
      let id = FileName.identifier(in: segment.name)
    else { return }
    let (raw, _) = try readHeader(of: segment.open())
    let salt = manifest?.sealedSegments.first { $0.id.rawValue == id }?.salt ?? 0
    let header = SegmentHeader(
      restoring: raw.rawSpan, storeIdentifier: identifier, id: SegmentID(rawValue: id), salt: salt,
      baseSequence: UInt64(low))
    segment.baseTime = header?.baseTime
  }

  /// The lowest and the highest difference between a record's number and the base.
  private static func deltas(of segment: SalvageSegment) throws(StoreError) -> ClosedRange<Int64>? {
    var walk = try SalvageWalk(segment)
    var deltas: ClosedRange<Int64>?
    loop: while true {
      switch try walk.next() {
      case .end: return deltas
      case .hole: continue
      case .record(let record, _):
        if record.kind == .roll { continue loop }
        let delta = Int64(record.sequenceDelta)
        deltas = min(deltas?.lowerBound ?? delta, delta)...max(deltas?.upperBound ?? delta, delta)
      }
    }
  }

  /// Assigns bases to open segments without a header, in the order of the log, which the manifest
  /// gives. Each base makes the segment's lowest number follow the highest earlier one.
  private func orderBases(
    of open: [SalvageSegment?], after highest: SequenceNumber
  ) throws(StoreError) {
    guard open.contains(where: { $0 != nil && $0?.header == nil }) else { return }
    var highest = Int64(highest)
    for segment in open {
      guard let segment, let deltas = try Self.deltas(of: segment) else { continue }
      if segment.header == nil {
        let base = highest + 1 - deltas.lowerBound
        segment.base = base...base
      }
      highest = max(highest, segment.base.upperBound + deltas.upperBound)
    }
  }

  /// Finds the end of the log of a store that was not closed: where an open would find it, or as
  /// close to that as the damage allows.
  ///
  /// - Parameter reserved: the places without a written segment.
  private mutating func findEnd(
    of open: [SalvageSegment?], _ reserved: [Int: Manifest.OpenSegment], sameBoot: Bool
  ) throws(StoreError) {
    if try recover(open, reserved, sameBoot: sameBoot) { return }
    try SalvageTail.markFollowed(open)
    // The log has reached the places before a written segment, and the one after a roll record.
    let last = open.indices.last { reserved[$0] == nil } ?? 0
    let reached = try open[last].map(SalvageTail.hasRolled) ?? false ? last + 1 : last
    for (index, entry) in reserved.sorted(by: { $0.key < $1.key }) where index <= reached {
      loseReached(entry.id)
    }
    if sameBoot {
      highestSequence = try SalvageTail.markUnproven(in: open.compactMap { $0 })
    } else {
      let (highest, torn) = try SalvageTail.cut(open)
      highestSequence = highest
      report.tornByteCount = torn
    }
  }

  /// Adds a segment that the log has reached, although nothing of it is there.
  private mutating func loseReached(_ id: SegmentID) {
    let name = FileName.segment(id)
    lose(name, 0..<0, names.contains(name) ? .badMagic : .missingFile)
  }

  /// Lets recovery find the end. Returns `false` if recovery finds corruption.
  private mutating func recover(
    _ open: [SalvageSegment?], _ reserved: [Int: Manifest.OpenSegment], sameBoot: Bool
  ) throws(StoreError) -> Bool {
    do {
      var tail = LogTail()
      for (index, segment) in open.enumerated() {
        if let entry = reserved[index] {
          try tail.addAbsent(entry, durable: 0)
          continue
        }
        guard let segment, let header = segment.header else { return false }
        try tail.scan(
          file: try segment.open(), header: header, byteCount: segment.fileByteCount,
          durable: segment.durableByteCount)
      }
      try tail.resolve(sameBoot: sameBoot)
      // In the same boot, a written batch proves that the segments before it were written too.
      if sameBoot, let cut = tail.cut {
        for case let later? in open[(cut.index + 1)...]
        where try SalvageTail.endOfWrittenBatch(at: SegmentHeader.byteCount, in: later) != nil {
          return false
        }
      }
      for (segment, extent) in zip(open, tail.extents) { segment?.cut = extent.end }
      highestSequence = Int64(clamping: tail.highestSequence)
      report.tornByteCount = tail.tornByteCount
      // A log ends in a segment that has a header, except for a moment when a session begins or
      // everything is removed. Torn bytes already show that the log went on.
      if let cut = tail.cut, let entry = reserved[cut.index], tail.tornByteCount == 0 {
        loseReached(entry.id)
      }
      if let (index, offset, hole) = tail.cut, let segment = open[index] {
        var end = try SalvageTail.endOfWrittenBatch(at: offset, in: segment)
        // In the same boot, everything before a written batch was also written, even if a value
        // before it is damaged.
        if end == nil, sameBoot, hole > offset {
          end = try SalvageTail.endOfWrittenBatch(at: hole, in: segment)
        }
        if let end {
          segment.cut = end
          report.tornByteCount = max(0, report.tornByteCount - (end - offset))
        }
      }
      return true
    } catch {
      if case .corrupt = error { return false }
      if error.isOfMedium { return false }
      throw error
    }
  }

  // MARK: Without a manifest

  /// Takes all segments, if they belong to only one store.
  private mutating func findUnlisted() throws(StoreError) {
    typealias Found = (name: String, byteCount: Int, raw: [UInt8], header: SegmentHeader?)
    var found: [Found] = []
    for name in names.filter({ FileName.isSegment($0) }).sorted() {
      guard let (file, byteCount) = try openFile(name, expected: 0) else { continue }
      let (raw, header) = try readHeader(of: file)
      found.append((name, byteCount, raw, header))
    }
    guard let identifier = try identifier(among: found.map { ($0.raw, $0.header) }) else { return }
    for (name, byteCount, raw, sound) in found {
      guard let number = FileName.identifier(in: name) else { continue }
      let id = SegmentID(rawValue: number)
      let salt = SegmentHeader.salt(in: raw.rawSpan)
      var header = sound
      if header == nil {
        header = SegmentHeader(
          restoring: raw.rawSpan, storeIdentifier: identifier, id: id, salt: salt)
      }
      let isOurs =
        header.map { $0.storeIdentifier == identifier }
        ?? (SegmentHeader.identifier(in: raw.rawSpan) == identifier)
      guard isOurs else {
        lose(name, 0..<byteCount, .badHeader)
        continue
      }
      if header == nil { lose(name, 0..<min(SegmentHeader.byteCount, byteCount), .badHeader) }
      segments.append(
        SalvageSegment(
          name: name, id: header?.id ?? id, salt: header?.salt ?? salt, directory: directory,
          fileByteCount: byteCount, header: header, recordedEnd: nil, durableByteCount: 0))
    }
    highestSequence = try SalvageTail.markUnproven(in: segments)
  }

  /// The UUID of the store: the one in all sound headers, or, if there are several, the one that
  /// the damaged manifest also names.
  private func identifier(
    among found: [(raw: [UInt8], header: SegmentHeader?)]
  ) throws(StoreError) -> [UInt8]? {
    var all = Set(found.compactMap { $0.header?.storeIdentifier })
    if all.isEmpty { all = Set(found.map { SegmentHeader.identifier(in: $0.raw.rawSpan) }) }
    if let supposedIdentifier, all.contains(supposedIdentifier) { return supposedIdentifier }
    guard all.count <= 1 else {
      throw .notAStore(
        path: directory.path,
        reason: "it holds segments of \(all.count) stores, and no MANIFEST says which one is meant")
    }
    return all.first
  }
}

extension StoreError {
  /// Why a file counts as lost, or `nil` if the error is of another kind.
  fileprivate var causeOfLostFile: Corruption.Cause? {
    if case .unsafeFile = self { return .unsafeFile }
    return isOfMedium ? .unreadable : nil
  }
}
