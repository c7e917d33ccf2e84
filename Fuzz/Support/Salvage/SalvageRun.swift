import CairnStore

/// One store with a random history, damaged in several ways and salvaged after each.
///
/// Nothing may be copied that was not once the key's value, nothing that is older than the newest
/// record of its key that can be read, and everything that lies in undamaged bytes must be there.
/// Where the damaged store can be opened, the copy must be what opening gives.
package struct SalvageRun {
  private static let copyPath = "/copy"

  package private(set) var tally = Tally()
  private var random: FuzzRandom

  package init(_ random: FuzzRandom) { self.random = random }

  package mutating func run() throws {
    let history = try SalvageHistory(&random)
    tally["stores"] += 1
    for round in 0..<8 {
      let disk = try copy(of: history)
      let names = disk.names(at: SimulatedProcess.path).filter { $0 != FileName.lock }
      var changed: Set<String> = []
      if round > 0 {
        for _ in 0...random.below(4) {
          let name = random.element(of: names)
          damage(name, on: disk)
          changed.insert(name)
        }
      }
      try check(history, disk, isDamaged: round > 0)
    }
  }

  /// The store's files on a disk of their own, in the same boot or another.
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
      // Two sectors change places.
      let other = random.below(bytes.count) & ~511
      let page = place & ~511
      let count = min(512, bytes.count - max(page, other))
      for index in 0..<count { bytes.swapAt(page + index, other + index) }
    case 7:
      let junk = random.bytes(count: min(bytes.count - place, 1 + random.below(600)))
      bytes.replaceSubrange(place..<(place + junk.count), with: junk)
    case 8:
      // A record's bytes are repeated elsewhere in the file.
      let count = min(bytes.count - place, 200)
      let target = random.below(bytes.count - count + 1) & ~7
      bytes.replaceSubrange(target..<(target + count), with: bytes[place..<(place + count)])
    default:
      disk.setContents(nil, of: path)
      return
    }
    disk.setContents(bytes, of: path)
  }

  // MARK: The check

  private mutating func check(
    _ history: SalvageHistory, _ disk: SimulatedDisk, isDamaged: Bool
  ) throws {
    let opened = contents(of: SimulatedProcess.path, on: disk)
    let before = image(disk)
    let process = SimulatedProcess.start(on: disk, seed: random.next())
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
    if process.fileSystem.openCount > 0 { throw FuzzFailure("descriptors are left") }
    tally["salvages"] += 1
    if image(disk) != before { throw FuzzFailure("the original was changed") }
    let errors = try Store.verify(path: Self.copyPath, environment: process.environment).errors
    if let first = errors.first { throw FuzzFailure("the copy is damaged: \(first)") }
    guard let copy = contents(of: Self.copyPath, on: disk) else {
      throw FuzzFailure("the copy cannot be opened")
    }
    process.kill()
    tally["entries"] += copy.count
    if let opened {
      tally["openable"] += 1
      if copy != opened.filter({ $0.value != nil }) {
        throw FuzzFailure("the copy is not what opening gives")
      }
    }
    if !isDamaged, history.end != .powerCut, opened == nil || !report.isComplete {
      throw FuzzFailure("a sound store was not copied whole")
    }
    for (key, value) in copy {
      guard let value, history.values[key]?.values.contains(value) ?? false else {
        throw FuzzFailure("a key has a value that it never had")
      }
    }
    try checkNewest(history, disk, copy)
  }

  /// Compares each key with its newest record whose head is undamaged.
  private func checkNewest(
    _ history: SalvageHistory, _ disk: SimulatedDisk, _ copy: [[UInt8]: [UInt8]?]
  ) throws {
    func isIntact(_ range: Range<Int>, of file: String) -> Bool {
      let path = "\(SimulatedProcess.path)/\(file)"
      guard let old = history.disk.contents(of: path), let new = disk.contents(of: path) else {
        return false
      }
      return new.count >= range.upperBound && old[range] == new[range]
    }
    let hasManifest =
      history.disk.contents(of: "/store/MANIFEST") == disk.contents(of: "/store/MANIFEST")
    for (key, records) in history.records {
      // Of a segment whose header is gone, only the manifest still has the salt.
      let readable = records.filter {
        isIntact($0.head, of: $0.file) && (hasManifest || isIntact(0..<72, of: $0.file))
      }
      // In the tail of a store that was not closed, it is for recovery to say what counts.
      guard let newest = readable.last(where: { $0.isSettled }) else { continue }
      // Newer values may lie where recovery does not look, and come back without a manifest.
      let newer = (history.values[key] ?? [:]).filter { $0.key > newest.version }
      let allowed = readable.filter { $0.version >= newest.version }
      let isSound = isIntact(newest.value, of: newest.file)
      if let value = copy[key] ?? nil {
        guard newest.bytes == value && isSound || newer.values.contains(value) else {
          throw FuzzFailure("a key has a value that is older than its newest record, or damaged")
        }
      } else if hasManifest || history.end != .powerCut,
        // Without a manifest, a removal that a power cut had put behind a hole counts again.
        allowed.count == 1, newest.bytes != nil, isSound,
        readable.allSatisfy({ isIntact(0..<72, of: $0.file) }), hasManifest || !newest.isInBatch
      {
        throw FuzzFailure("a key is missing though its newest record is sound")
      }
    }
  }

  /// What opening gives for each key, `nil` where its value is damaged; or `nil` where it is
  /// refused.
  private mutating func contents(of path: String, on disk: SimulatedDisk) -> [[UInt8]: [UInt8]?]? {
    let process = SimulatedProcess.start(on: disk, seed: random.next())
    defer { process.kill() }
    do {
      let store = try Store(
        path: path, configuration: .simulated(ManualClock()), environment: process.environment,
        readOnly: true)
      var contents: [[UInt8]: [UInt8]?] = [:]
      var keys: [[UInt8]] = []
      try store.forEachKey { key in
        keys.append([UInt8](copying: key))
        return .next
      }
      for key in keys { contents[key] = .some(try? store.value(forKey: key)) }
      return contents
    } catch {
      return nil
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
