import CairnRepair
package import CairnStore

/// Opens what a crash left, and checks that the store keeps its promises. The power may also fail
/// during the recovery, up to three times.
package struct RecoveryCheck {
  package var configuration: StoreConfiguration
  package var now: Timestamp
  /// The limit on nesting: cuts in a recovery, in the recovery after that, and so on.
  package var depthLimit = 3
  /// One recovery in this many is itself cut.
  package var nestingInterval = 8
  /// Files that an open must move to quarantine.
  package var strayFiles: Set<String> = []
  /// The checkpoint files that may be found in place of the listed one.
  package var otherCheckpoints: [[UInt8]] = []
  /// Whether unreadable records were overwritten or removed. The size of such a record is unknown,
  /// so its bytes still count as live. A checkpoint keeps this count, which lasts until the segment
  /// is compacted or read again. Only space depends on it, and too low a count would be wrong. So
  /// only the byte count may differ, and only upwards.
  package var mayCountMore = false
  /// The highest version that was given to a value. A power cut may have taken that value.
  package var highestVersion: UInt64 = 0
  package private(set) var tally = Tally()
  /// How many calls the last examined recovery made.
  private var callCount = 40

  package init(configuration: StoreConfiguration, now: Timestamp) {
    self.configuration = configuration
    self.now = now
  }

  /// - Parameters:
  ///   - disk: as the crash left it; the check uses it up.
  ///   - legal: the states that may be found.
  ///   - afterCut: the states that may be found if the power fails during the check while the page
  ///     cache holds something that is not on disk. `nil`: the page cache holds no such thing, and
  ///     every further crash must lead to the same state.
  /// - Returns: the state that was found.
  @discardableResult
  package mutating func check(
    _ disk: SimulatedDisk, legal: [ModelState], afterCut: [ModelState]? = nil,
    _ choices: inout some ChoiceSource, depth: Int = 0
  ) throws -> ModelState {
    let process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    if depth == 0, choices.once(in: 6) { try readOnly(disk, legal) }
    if depth == 0, choices.once(in: 3) {
      try checkWithoutCheckpoint(disk.settled(), legal, &choices)
    }
    let isNesting = depth < depthLimit && choices.once(in: nestingInterval)
    let callOfDeath = isNesting && choices.once(in: 4) ? choices.below(callCount) : -1
    var call = 0
    var nested: SimulatedDisk?
    if isNesting {
      var random = FuzzRandom(seed: UInt64(choices.below(1 << 30)))
      process.fileSystem.intervene = { _ in
        defer { call += 1 }
        if call == callOfDeath { return .die }
        // Any of the calls, with equal probability, though their number is not known in advance.
        if callOfDeath < 0, random.once(in: call + 1) {
          var cut = RandomCut(random.split())
          nested = disk.afterPowerCut(&cut)
        }
        return nil
      }
    }
    var found: ModelState?
    do {
      let store = try process.open(configuration)
      process.fileSystem.intervene = nil
      if isNesting { callCount = max(1, call) }
      let state = try Self.match(
        store, legal, now: now, strayFiles: strayFiles, "depth \(depth)",
        mayCountMore: mayCountMore)
      try checkReads(store, state)
      found = state
    } catch {
      guard process.fileSystem.isDead else { throw error }
    }
    process.fileSystem.intervene = nil
    guard let found, !process.fileSystem.isDead else {
      // The recovery was killed: the next one finds the page cache as it is.
      process.kill()
      tally["nested kills"] += 1
      return try check(disk, legal: legal, afterCut: afterCut, &choices, depth: depth + 1)
    }
    tally["recoveries"] += 1
    try goOn(process, found, &choices)
    if let nested {
      tally["nested cuts"] += 1
      if depth > 0 { tally["of these \(depth + 1) deep"] += 1 }
      try check(nested, legal: afterCut ?? [found], &choices, depth: depth + 1)
    }
    return found
  }

  mutating func noteChangedCheckpoint() { tally["checkpoints taken away"] += 1 }

  /// A reader finds a legal state too, and changes nothing.
  private func readOnly(_ disk: SimulatedDisk, _ legal: [ModelState]) throws {
    let files = disk.names(at: SimulatedProcess.path)
    // If a store's creation was cut, a reader finds none.
    guard files.contains("MANIFEST"), files.contains("LOCK") else { return }
    let unsettledCount = disk.unsettledCount
    let process = SimulatedProcess.start(on: disk, seed: 1)
    _ = try Self.match(
      try process.open(configuration, readOnly: true), legal, now: now, "opened for reading",
      mayCountMore: mayCountMore)
    process.kill()
    guard disk.names(at: SimulatedProcess.path) == files, disk.unsettledCount == unsettledCount
    else {
      throw FuzzFailure("a store opened for reading was written to")
    }
  }

  /// Compares the contents of a store with the possible states, and the report of the open with
  /// what a crash can do.
  static func match(
    _ store: Store, _ legal: [ModelState], now: Timestamp, strayFiles: Set<String> = [],
    _ place: String, keysByRecency: [[UInt8]]? = nil, mayCountMore: Bool = false
  ) throws -> ModelState {
    let report = try store.statistics().recovery
    guard strayFiles.isSuperset(of: report.quarantinedFiles), report.damage.isEmpty,
      !report.clockWentBack
    else { throw FuzzFailure("(\(place)) no crash explains what the open reports: \(report)") }
    let contents = try StoreContents(of: store, now: now)
    guard let state = contents.match(legal) else {
      throw FuzzFailure(
        "(\(place)) a state that never existed, or one that must not come back. From the newest legal: "
          + "\(contents.differences(from: legal[legal.count - 1])). From the oldest: "
          + contents.differences(from: legal[0]))
    }
    let order = try store.keysByRecency()
    if let keysByRecency, keysByRecency != order {
      throw FuzzFailure("(\(place)) a close and an open changed the order of recency")
    }
    let differences = try store.auditUsage(mayCountMore: mayCountMore)
    if !differences.isEmpty {
      throw FuzzFailure("(\(place)) counts are wrong: \(differences.joined(separator: "; "))")
    }
    return contents.completing(state, keysByRecency: order)
  }

  /// Single reads return the same as an iteration, and `count` counts what they find.
  func checkReads(_ store: Store, _ state: ModelState) throws {
    var count = 0
    for key in OperationGenerator.keys {
      let entry = state[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      if entry != nil { count += 1 }
      guard try store.value(forKey: key) == entry?.value else {
        throw FuzzFailure("a read differs from an iteration")
      }
    }
    guard try store.count() == count else {
      throw FuzzFailure("count is \(try store.count()) instead of \(count)")
    }
  }

  /// Checks that the recovered state stays after a write, a close and another open, and that every
  /// byte of every file is then sound.
  private func goOn(
    _ process: SimulatedProcess, _ found: ModelState, _ choices: inout some ChoiceSource
  ) throws {
    guard choices.once(in: 4) else {
      process.kill()
      return
    }
    var state = found
    let writes = choices.once(in: 2)
    if writes {
      let key = choices.element(of: OperationGenerator.keys)
      let durability: Durability = choices.once(in: 2) ? .durable : .process
      var entry = ModelEntry(value: Array("after recovery".utf8))
      // Expired entries may also have been lost.
      let last = found.values.filter { !$0.hasExpired(now) }.compactMap(\.version)
        .reduce(highestVersion, max)
      let version =
        try process.store?.setValue(entry.value, forKey: key, durability: durability) ?? 0
      if version <= last { throw FuzzFailure("version \(version) after \(last)") }
      entry.version = version
      state[key] = entry
    }
    if choices.once(in: 2) { process.queue.runAll() }
    let isClosed = !choices.once(in: 3)
    if isClosed { try process.close() } else { process.kill() }
    let disk = process.fileSystem.disk
    if isClosed { try checkFiles(of: disk) }
    let checker = SimulatedProcess.start(on: disk, seed: 1)
    let report = try Store.verify(path: SimulatedProcess.path, environment: checker.environment)
    guard report.errors.isEmpty else {
      throw FuzzFailure("verify finds \(report.errors) after a recovery")
    }
    checker.kill()
    let again = SimulatedProcess.start(on: disk, seed: 2)
    var later = configuration
    // Expired entries stay expired if the clock goes back, because the close recorded the time.
    if writes, isClosed { later.clock = ManualClock(now.advanced(by: .seconds(-3600))) }
    let hasLimit = choices.once(in: 4)
    if hasLimit { later.countLimit = 1 + choices.below(state.count + 1) }
    let store = try again.open(later)
    _ = try Self.match(
      store, [state], now: now, "opened again after a recovery", mayCountMore: mayCountMore)
    if let limit = later.countLimit { try checkLimit(limit, of: store) }
    again.kill()
  }

  /// After a close, only the files that the manifest lists exist.
  private func checkFiles(of disk: SimulatedDisk) throws {
    let path = SimulatedProcess.path
    let bytes = disk.contents(of: "\(path)/MANIFEST") ?? []
    let manifest = try Manifest(decoding: bytes.rawSpan)
    let listed =
      (manifest.openSegments.map(\.id) + manifest.sealedSegments.map(\.id)).map {
        FileName.segment($0)
      }
    let checkpoint =
      manifest.checkpointID == 0 ? [] : [FileName.checkpoint(manifest.checkpointID)]
    let expected = Set(listed + checkpoint + ["LOCK", "MANIFEST"])
    let names = disk.names(at: path).filter {
      !$0.hasPrefix("MANIFEST.") && $0 != FileName.reserve && $0 != FileName.spare
        && $0 != FileName.followPage
        && ($0 != FileName.quarantine || strayFiles.isEmpty)
    }
    if Set(names) != expected {
      throw FuzzFailure("after a close there is \(names) instead of \(expected.sorted())")
    }
  }
}
