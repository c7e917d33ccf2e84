import CairnRepair
import CairnStore

/// One store with a random history, damaged in several ways and salvaged after each.
///
/// No copied value may be one that its key never had, or older than the newest readable record of
/// its key. Everything in undamaged bytes must be copied. If the damaged store can be opened, the
/// copy must equal what opening returns, except for sound records of a damaged batch at the end of
/// the log, which an open discards. A copy reported as complete must contain everything that the
/// store contained before the damage.
package struct SalvageRun {
  private static let copyPath = "/copy"

  package private(set) var tally = Tally()
  private var random: FuzzRandom
  /// What the disk cannot read in the damaged store's files.
  private var unreadable: [String: Range<Int>] = [:]
  /// The contents of the store before it was damaged.
  private var undamaged: SalvageContents?

  package init(_ random: FuzzRandom) { self.random = random }

  package mutating func run() throws {
    let history = try SalvageHistory(&random)
    tally["stores"] += 1
    if history.isUnordered { tally["with numbers out of order"] += 1 }
    if !history.unlisted.isEmpty { tally["with unlisted segments"] += 1 }
    for round in 0..<8 {
      let disk = try copy(of: history)
      let names = disk.names(at: SimulatedProcess.path).filter { $0 != FileName.lock }
      unreadable = [:]
      if round > 0 {
        // Without a manifest, all segments count, even those that a compaction has replaced.
        if random.once(in: 8) {
          disk.setContents(nil, of: "\(SimulatedProcess.path)/\(FileName.manifest)")
        }
        for _ in 0...random.below(4) { damage(random.element(of: names), on: disk) }
        if random.once(in: 3) { makeUnreadable(random.element(of: names), on: disk) }
      }
      try check(history, disk, isDamaged: round > 0)
    }
  }

  /// The store's files on a separate disk, in the same boot or another.
  private mutating func copy(of history: SalvageHistory) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let fileSystem = SimulatedFileSystem(disk: disk, seed: random.next())
    try fileSystem.makeDirectory(path: SimulatedProcess.path)
    for name in history.disk.names(at: SimulatedProcess.path) {
      let path = "\(SimulatedProcess.path)/\(name)"
      disk.setContents(history.disk.contents(of: path), of: path)
    }
    return history.end == .powerCut ? disk.settled() : disk
  }

  // MARK: Damage

  private mutating func damage(_ name: String, on disk: SimulatedDisk) {
    let path = "\(SimulatedProcess.path)/\(name)"
    guard var bytes = disk.contents(of: path), !bytes.isEmpty else { return }
    let place = random.below(bytes.count)
    switch random.below(10) {
    case 0..<4: bytes[place] ^= 1 << UInt8(random.below(8))
    case 4: bytes.removeLast(bytes.count - place)
    case 5:
      for index in (place & ~511)..<min((place & ~511) + 512, bytes.count) { bytes[index] = 0 }
    case 6:
      // Exchanges two sectors.
      let other = random.below(bytes.count) & ~511
      let page = place & ~511
      let count = min(512, bytes.count - max(page, other))
      for index in 0..<count { bytes.swapAt(page + index, other + index) }
    case 7:
      let junk = random.bytes(count: min(bytes.count - place, 1 + random.below(600)))
      bytes.replaceSubrange(place..<(place + junk.count), with: junk)
    case 8:
      // Repeats a record's bytes elsewhere in the file.
      let count = min(bytes.count - place, 200)
      let target = random.below(bytes.count - count + 1) & ~7
      bytes.replaceSubrange(target..<(target + count), with: bytes[place..<(place + count)])
    default:
      // Nothing of the file is left: it is missing, empty or zero.
      guard place % 3 > 0 else { return disk.setContents(nil, of: path) }
      bytes = [UInt8](repeating: 0, count: place % 3 == 1 ? 0 : bytes.count)
    }
    disk.setContents(bytes, of: path)
  }

  /// Makes some pages of a file unreadable.
  private mutating func makeUnreadable(_ name: String, on disk: SimulatedDisk) {
    let path = "\(SimulatedProcess.path)/\(name)"
    guard let count = disk.contents(of: path)?.count, count > 0 else { return }
    let start = random.below(count) & ~4095
    let range = start..<(start + 4096 * (1 + random.below(3)))
    disk.setUnreadable(range, of: path)
    unreadable[name] = range
  }

  private static func difference(_ copy: [[UInt8]: ByteEntry], _ opened: [[UInt8]: ByteEntry])
    -> String
  {
    Set(copy.keys).union(opened.keys).filter { copy[$0] != opened[$0] }.map { key in
      "\(String(decoding: key.prefix(20), as: UTF8.self)) has "
        + "\(copy[key].map { "\($0.info)" } ?? "nothing") instead of "
        + "\(opened[key].map { "\($0.info)" } ?? "nothing")"
    }.joined(separator: "; ")
  }

  // MARK: The check

  private mutating func check(
    _ history: SalvageHistory, _ disk: SimulatedDisk, isDamaged: Bool
  ) throws {
    let opened = SalvageContents(of: SimulatedProcess.path, on: disk, seed: random.next())
    let before = image(disk)
    let process = SimulatedProcess.start(on: disk, seed: random.next())
    let watch = SalvageWatch(Self.copyPath, on: disk, random: random.split())
    process.fileSystem.intervene = { _ in
      watch.look()
      return nil
    }
    let report: SalvageReport
    do throws(StoreError) {
      report = try Store.salvage(
        path: SimulatedProcess.path, to: Self.copyPath, environment: process.environment,
        segmentByteLimit: random.once(in: 2) ? 64 << 10 : 1 << 20, clock: ManualClock())
    } catch {
      switch error {
      case .noStore, .notAStore, .unsupportedVersion:
        guard isDamaged else { throw FuzzFailure("a sound store is refused: \(error)") }
        tally["refusals"] += 1
        return
      default: throw FuzzFailure("salvage failed: \(error)")
      }
    }
    process.fileSystem.intervene = nil
    if process.fileSystem.leftCount > 0 { throw FuzzFailure("descriptors are left") }
    process.kill()
    tally["salvages"] += 1
    if report.manifest != .used, !history.unlisted.isEmpty {
      tally["without a manifest, beside unlisted segments"] += 1
    }
    if image(disk) != before { throw FuzzFailure("the original was changed") }
    let copy = try checkSound(disk)
    tally["entries"] += copy.entries.count
    try check(copy, after: watch)
    if let opened {
      tally["openable"] += 1
      // With a checkpoint, an open may succeed despite lost records that a salvage does not know
      // of.
      if !report.kinds.contains(.olderValuesMayBeBack) {
        // A salvage may need neither a value that its own batch replaces nor the header of an open
        // segment. But an open discards the batch, or the contents of the segment.
        func isHeaderIntact(_ file: String) -> Bool { isIntact(0..<72, of: file, history, disk) }
        let (one, other) =
          report.isComplete && isOpenPartIntact(history, disk)
          ? (copy, opened)
          : (
            history.withoutOpenBatches(copy, isHeaderIntact),
            history.withoutOpenBatches(opened, isHeaderIntact)
          )
        if one.copied(report) != other.copied(report) {
          throw FuzzFailure(
            "the copy differs from what opening returns: "
              + Self.difference(copy.copied(report), opened.copied(report)) + " \(report)")
        }
      }
    }
    if !isDamaged { undamaged = opened }
    let isWhole = report.lossCount == 0 && report.lostKeyCount == 0
    if !isDamaged, history.end != .powerCut, opened == nil || !isWhole {
      throw FuzzFailure(
        opened == nil
          ? "a sound store cannot be opened" : "a sound store was not copied whole: \(report)")
    }
    if report.isComplete, history.end != .powerCut, let undamaged,
      !history.hasLostEnd(on: disk), copy.copied(report) != undamaged.copied(report)
    {
      throw FuzzFailure(
        "a copy reported as complete is not: "
          + Self.difference(copy.copied(report), undamaged.copied(report)))
    }
    try checkEntries(history, copy, report)
    try checkNewest(history, disk, copy, report, opened)
  }

  /// The contents of a copy that should be sound.
  private mutating func checkSound(_ disk: SimulatedDisk) throws -> SalvageContents {
    let process = SimulatedProcess.start(on: disk, seed: random.next())
    defer { process.kill() }
    let errors = try Store.verify(path: Self.copyPath, environment: process.environment).errors
    if let first = errors.first { throw FuzzFailure("the copy is damaged: \(first)") }
    guard let copy = SalvageContents(of: Self.copyPath, on: disk, seed: random.next()) else {
      throw FuzzFailure("the copy cannot be opened")
    }
    return copy
  }

  /// Checks what power cuts and kills leave: no store or the whole copy during the salvage, and the
  /// whole copy once it has returned.
  private mutating func check(_ copy: SalvageContents, after watch: SalvageWatch) throws {
    for (image, isFinished) in watch.images.map({ ($0, false) }) + [(watch.cut(), true)] {
      let names = image.names(at: Self.copyPath)
      guard isFinished || names.contains(FileName.manifest) else {
        tally["unfinished copies"] += 1
        continue
      }
      tally["finished copies"] += 1
      if names.contains(FileName.unfinishedCopy) {
        throw FuzzFailure("a finished copy is called unfinished")
      }
      if try checkSound(image) != copy {
        throw FuzzFailure("a power cut or a kill left something other than the copy")
      }
    }
  }

  /// Compares each entry with what was written.
  private func checkEntries(
    _ history: SalvageHistory, _ copy: SalvageContents, _ report: SalvageReport
  ) throws {
    for (key, entry) in copy.entries {
      let known = history.values[key] ?? [:]
      guard let entry else { throw FuzzFailure("the copy has a damaged value") }
      let value = SalvageValue(entry)
      guard known.values.contains(value) else {
        throw FuzzFailure("a key has a value or attributes that it never had")
      }
      if !report.kinds.contains(.versionsChanged),
        known[entry.info.version] != value
      {
        throw FuzzFailure("the version of an entry has changed without a warning")
      }
    }
  }

  /// Whether a part of a file is as it was before the damage.
  private func isIntact(
    _ range: Range<Int>, of file: String, _ history: SalvageHistory, _ disk: SimulatedDisk
  ) -> Bool {
    let path = "\(SimulatedProcess.path)/\(file)"
    guard let old = history.disk.contents(of: path), let new = disk.contents(of: path) else {
      return false
    }
    if let unreadable = unreadable[file], unreadable.overlaps(range) { return false }
    return new.count >= range.upperBound && old[range] == new[range]
  }

  /// Whether the headers and the batches of open segments are as they were before the damage.
  private func isOpenPartIntact(_ history: SalvageHistory, _ disk: SimulatedDisk) -> Bool {
    history.records.values.joined().allSatisfy { record in
      // With the padding: an open drops a batch whose last bytes are missing.
      let range = record.head.lowerBound..<(record.value.upperBound + 7) & ~7
      return record.isSettled
        || isIntact(0..<72, of: record.file, history, disk)
          && (!record.isInBatch || isIntact(range, of: record.file, history, disk))
    }
  }

  /// Compares each key with its newest record whose head is undamaged.
  private func checkNewest(
    _ history: SalvageHistory, _ disk: SimulatedDisk, _ copy: SalvageContents,
    _ report: SalvageReport, _ opened: SalvageContents?
  ) throws {
    func isIntact(_ range: Range<Int>, of file: String) -> Bool {
      self.isIntact(range, of: file, history, disk)
    }
    func isMissing(_ file: String) -> Bool {
      disk.contents(of: "\(SimulatedProcess.path)/\(file)") == nil
    }
    let hasManifest =
      history.disk.contents(of: "/store/MANIFEST") == disk.contents(of: "/store/MANIFEST")
      && unreadable[FileName.manifest] == nil
    // A batch is one write, from front to back.
    let isLastBatchWritten =
      history.end == .killed && hasManifest
      && (history.lastOfLastBatch.map {
        isIntact($0.range, of: $0.file) && isIntact(0..<72, of: $0.file)
      } ?? false)
    func isWritten(_ record: SalvageHistory.Written) -> Bool {
      isLastBatchWritten && history.lastBatch.contains(record.version)
    }
    let keepsVersions = !report.kinds.contains(.versionsChanged)
    let warns =
      report.kinds.contains(.olderValuesMayBeBack)
      || report.kinds.contains(.removedDataMayBeBack)
    // In the tail of a store that was not closed, recovery decides what counts. If it refuses,
    // everything that a killed process wrote counts.
    let allCount = history.end == .killed && opened == nil
    var highest = opened?.lastVersion ?? 0
    for (key, records) in history.records {
      // If a segment's header is gone, only the manifest still has the salt.
      let readable = records.filter {
        isIntact($0.head, of: $0.file) && (hasManifest || isIntact(0..<72, of: $0.file))
      }
      guard let newest = readable.last(where: { $0.isSettled || allCount || isWritten($0) })
      else { continue }
      // Newer values may be where recovery does not look. Without a manifest, they may reappear.
      let newer = (history.values[key] ?? [:]).filter { $0.key > newest.version }
      let allowed = readable.filter { $0.version >= newest.version }
      let strays = hasManifest ? [] : history.strays[key] ?? []
      // If a record is in two files, either copy is enough.
      let isSound =
        newest.isSound && isIntact(newest.value, of: newest.file)
        || strays.contains {
          $0.isSound && $0.version == newest.version && isIntact($0.range, of: $0.file)
            && isIntact(0..<72, of: $0.file)
        }
      // Damage to the last write of a killed process looks like a write that the kill cut short,
      // which is dropped.
      guard newest.isSettled || isSound && (!newest.isInBatch || isWritten(newest))
      else { continue }
      highest = max(highest, newest.version)
      if let entry = copy.entries[key] ?? nil {
        // If the segment of a copy has a damaged header, the original may be found again.
        let isNewest =
          newest.bytes == entry.value
          && (isSound || strays.contains { $0.version == newest.version })
        guard isNewest || newer.values.contains(where: { $0.bytes == entry.value }) else {
          throw FuzzFailure("a key has a value that is older than its newest record, or damaged")
        }
        // At the end of a log that was not closed, a loss leaves no trace.
        if opened == nil, !warns, let last = records.last, last.isSettled || !hasManifest,
          keepsVersions ? entry.info.version < last.version : entry.value != last.bytes
        {
          throw FuzzFailure("an older value is back without a warning")
        }
      } else if hasManifest || history.end != .powerCut,
        // Without a manifest, a removal that a power cut had put after a hole counts again.
        allowed.count == 1, newest.bytes != nil, isSound,
        // A batch with a hole may have removed the key.
        report.isComplete || !history.keysAfterGap.contains(key),
        // The contents of a segment without its header may also be newer.
        records.allSatisfy({ isMissing($0.file) || isIntact(0..<72, of: $0.file) }),
        // Without a manifest, records that it excluded count, including the remains of compactions.
        strays.allSatisfy({
          isMissing($0.file) || $0.version <= newest.version && isIntact(0..<72, of: $0.file)
        }),
        hasManifest && (newest.isSettled || isWritten(newest)) || !newest.isInBatch
      {
        throw FuzzFailure(
          "a key is missing though its newest record, version \(newest.version) in \(newest.file) "
            + "from \(newest.head.lowerBound), is sound: \(report)")
      }
    }
    if keepsVersions, copy.lastVersion < highest {
      throw FuzzFailure("the copy reuses versions: \(copy.lastVersion), not \(highest)")
    }
  }

  private func image(_ disk: SimulatedDisk) -> [String: [UInt8]] {
    var image: [String: [UInt8]] = [:]
    for name in disk.names(at: SimulatedProcess.path) {
      image[name] = disk.contents(of: "\(SimulatedProcess.path)/\(name)")
    }
    return image
  }
}

extension SalvageHistory {
  /// The contents without the keys that an open may discard: those of batches, and of open segments
  /// whose header is damaged.
  fileprivate func withoutOpenBatches(
    _ contents: SalvageContents, _ isHeaderIntact: (String) -> Bool
  ) -> SalvageContents {
    var contents = contents
    for (key, records) in records
    where records.contains(where: {
      !$0.isSettled && ($0.isInBatch || !isHeaderIntact($0.file))
    }) {
      contents.entries[key] = nil
    }
    for key in keysAfterGap { contents.entries[key] = nil }
    return contents
  }

  /// Whether the last record of the log is gone with everything after it, which leaves no trace. A
  /// whole segment does.
  fileprivate func hasLostEnd(on disk: SimulatedDisk) -> Bool {
    guard let lastRecord else { return false }
    let path = "\(SimulatedProcess.path)/\(lastRecord.file)"
    guard let bytes = disk.contents(of: path), bytes.count >= SegmentHeader.byteCount,
      !bytes[..<SegmentHeader.byteCount].allSatisfy({ $0 == 0 })
    else { return false }
    let start = min(lastRecord.range.lowerBound, bytes.count)
    return bytes[start..<min(lastRecord.range.upperBound, bytes.count)].allSatisfy { $0 == 0 }
  }
}
