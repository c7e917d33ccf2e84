import CairnStore

/// A workload on a simulated disk, during which a call fails or the disk is full.
///
/// The conditions: every call returns, or throws an error of the store that names a path.
/// Acknowledged data stays readable as long as the process lives. A call that threw has had no
/// effect, unless its error says that this is unknown. A store that cannot know what is on disk
/// refuses writes. After a death or a power cut, an open finds a legal state.
package final class FaultRun {
  package enum Ending: CaseIterable, Sendable {
    /// The process dies at the end of the step in which the fault hit.
    case dies
    /// The process continues to the end of the workload and closes the store.
    case goesOn
    /// The process dies at the end of that step. A second fault hits the next open.
    case diesAndReopens
  }

  private let workload: FaultWorkload
  private let ending: Ending
  package let injector: FaultInjector
  /// The free space on the disk from a step on.
  package var room: (step: Int, byteCount: Int)?
  let clock = ManualClock()
  let configuration: StoreConfiguration
  let disk: SimulatedDisk
  private var process: SimulatedProcess
  var model = ModelStore()
  /// What reads find now. An operation with an unknown outcome may have led to it.
  var live: ModelState = [:]
  /// Whether an error was thrown after which the store must refuse writes.
  var isPoisoned = false
  private var images: [(disk: SimulatedDisk, legal: [ModelState])] = []
  var choices: FuzzRandom
  package internal(set) var tally = Tally()
  /// An open snapshot, and what it must show.
  var held: (snapshot: Snapshot, state: ModelState, now: Timestamp)?
  let trace: ((String) -> Void)?

  package init(
    _ workload: FaultWorkload, fault: Fault?, ending: Ending = .goesOn, seed: UInt64 = 0,
    trace: ((String) -> Void)? = nil
  ) {
    self.workload = workload
    self.ending = ending
    self.trace = trace
    injector = FaultInjector(fault)
    disk = SimulatedDisk(
      sectorByteCount: workload.sectorByteCount, reservesBlocks: workload.reservesBlocks)
    disk.exchanges = workload.exchanges
    var configuration = StoreConfiguration.simulated(clock)
    configuration.mapsFiles = workload.mapsFiles
    configuration.countLimit = workload.countLimit
    self.configuration = configuration
    choices = FuzzRandom(seed: seed)
    process = SimulatedProcess.start(on: disk, seed: 0)
  }

  /// Corrupts the disk after the last process has ended: for tests of the checks.
  package var tamper: ((SimulatedDisk) -> Void)?
  /// All values that each key ever had.
  var writtenValues: [[UInt8]: Set<[UInt8]>] = [:]

  static let strayName = FileName.segment(SegmentID(rawValue: 0))
  /// Files that the store must move to quarantine.
  private var strayFiles: Set<String> = []

  /// The calls of the open that followed a failed sync.
  package var recoveryCalls: ArraySlice<SimulatedFileSystem.Call> {
    injector.calls[injector.recoveryCalls ?? 0..<0]
  }

  /// The kind of each call, in order.
  package var calls: [SimulatedFileSystem.Call] { injector.calls }

  package func run() throws {
    defer { process.kill() }
    // If the parent may not be read or is on a read-only filesystem, the store need not sync its
    // names, because the creator of the directory has done so.
    if injector.forbidsParent { disk.makeDirectory(SimulatedProcess.path) }
    var isOpen = try open(legal: [[:]])
    for (index, step) in workload.steps.enumerated() where isOpen {
      if let room, room.step == index { disk.capacity = disk.allocatedByteCount + room.byteCount }
      let before = injector.hitCount
      trace?(step.name)
      do { isOpen = try perform(step) } catch let failure as FuzzFailure {
        throw FuzzFailure("step \(index), \(step.name): \(failure)")
      }
      if injector.hitCount > before, before == 0 {
        takeImage()
        if ending == .dies { break }
        if ending == .diesAndReopens {
          process.kill()
          isOpen = try open(legal: legalAfterDeath)
          break
        }
      }
    }
    disk.capacity = nil
    try finish(isOpen: isOpen)
  }

  // MARK: Steps

  /// - Returns: whether the store is open afterwards.
  private func perform(_ step: FaultWorkload.Step) throws -> Bool {
    switch step {
    case .operation(.reopen):
      try close()
      return try open(legal: legalAfterDeath)
    case .operation(let operation):
      try perform(operation)
      return true
    case .kill:
      process.kill()
      return try open(legal: legalAfterDeath)
    case .strayFile:
      process.kill()
      addStrayFile()
      return try open(legal: legalAfterDeath)
    case .readOnly:
      process.kill()
      let legal = legalAfterDeath
      if try !open(legal: legal, readOnly: true) { return false }
      try checkReadOnly()
      try close(readOnly: true)
      return try open(legal: legal)
    case .verify:
      try close()
      try verify()
      return try open(legal: legalAfterDeath)
    case .salvage:
      try close()
      try salvage()
      return try open(legal: legalAfterDeath)
    }
  }

  /// A segment that no manifest lists, as in a store that was assembled by hand.
  private func addStrayFile() {
    let path = SimulatedProcess.path
    guard let name = disk.names(at: path).first(where: { FileName.isSegment($0) }) else { return }
    disk.setContents(disk.contents(of: "\(path)/\(name)"), of: "\(path)/\(Self.strayName)")
    strayFiles = [Self.strayName]
  }

  private func perform(_ operation: Operation) throws {
    guard let store = process.store else { preconditionFailure("no store is open") }
    let before = injector.hitCount
    if case .snapshot = operation { try checkSnapshot() }
    let first = injector.failures.count
    let wasPoisoned = isPoisoned
    let limits = ModelLimits(configuration)
    // If the limits could not be enforced, the next write enforces them before anything else.
    let overdue =
      operation.steps(from: live, now: clock.now()).isEmpty
      ? [] : live.evictions(limits, now: clock.now())
    var steps = operation.steps(from: live, now: clock.now(), limits: limits)
    func hasMisread() -> Bool {
      // A read may have to open a file.
      injector.failures[first...].contains { [.open, .read].contains($0.call) }
    }
    for (key, entry) in steps.last ?? [:] { writtenValues[key, default: []].insert(entry.value) }
    do {
      let versions = try operation.perform(
        on: store, holding: live, now: clock.now(), mayEvict: !overdue.isEmpty,
        mayCountMore: hasFailedRead, hasMisread: hasMisread)
      if case .snapshot = operation { held = (try store.snapshot(), live, clock.now()) }
      let evicts = !overdue.isEmpty || steps.count > 1 && limits.count != nil
      let mayMissLimits = evicts && (injector.hitCount > before || disk.capacity != nil)
      if !mayMissLimits { try checkHidden(since: first, in: operation) }
      if case .backup(let path) = operation { try checkBackup(path) }
      if !mayMissLimits, let first = overdue.last {
        steps = overdue + operation.steps(from: first, now: clock.now(), limits: limits)
      }
      if mayMissLimits, overdue.isEmpty, hasMisread() {
        steps = try sparing(steps, of: operation, store)
      }
      let taken = try pausing {
        try operation.taken(
          of: steps, from: live, in: store, limits: limits, mayMissLimits: mayMissLimits,
          mayCountMore: hasFailedRead, now: clock.now())
      }
      if let next = taken.last {
        if wasPoisoned { throw FuzzFailure("a write is acknowledged after a failed sync") }
        for step in taken.dropLast() { model.acknowledge(step) }
        model.acknowledge(next, versions, operation, now: clock.now())
        live = model.current
      }
      if case .get(let key) = operation { live.read(key, at: clock.now()) }
      if case .sync = operation { model.settle() }
      if taken.isEmpty, operation.makesAbsenceDurable, !isPoisoned { model.settle() }
    } catch is SparedEntries {
      try settleTrim(store, operation)
    } catch is EvictedFirst {
      try settlePart(store, of: overdue)
    } catch let error as StoreError {
      try judge(error, since: first, wasPoisoned: wasPoisoned)
      if case .backup(let path) = operation { try checkNoBackup(path) }
      // A read of an entry that cannot expire counts before its record has been read.
      if case .get(let key) = operation, live[key]?.expires == nil {
        live.read(key, at: clock.now())
      }
      let isOpen = isDoubtful(error) && !wasPoisoned && injector.hitCount > before
      if let last = overdue.last {
        try settlePart(
          store, of: operation.isGradual ? steps : overdue,
          orIn: isOpen ? steps + operation.steps(from: last, now: clock.now(), limits: limits) : [])
      } else if operation.isGradual, !isOpen {
        try settlePart(store, of: steps)
      } else {
        try settleLive(store, steps: isOpen ? steps : [])
      }
      // The update may or may not have read the old value.
      if case .update = operation { try pausing { try live.order(by: store.keysByRecency()) } }
    }
    passTime(operation)
    noteFailedCalls()
    if injector.hitCount > before { try checkReads(store) }
  }

  /// Lets the time of an operation pass, and does its background work.
  private func passTime(_ operation: Operation) {
    switch operation {
    case .runJobs: process.queue.runAll(dueAfter: .zero)
    case .wait(let duration):
      clock.advance(by: duration)
      process.queue.runAll(dueAfter: duration)
      noteFailedCalls()
      // A manifest that could not be replaced also poisons the store, without telling a caller:
      // neither the due sync nor any later one happens. Only the store knows whether it is
      // poisoned, because most of these calls can fail without that effect. If it is poisoned
      // without need, the next write shows this: its error must name a failed call.
      if let store = process.store, store.writeFailure != nil { isPoisoned = true }
      if !isPoisoned { model.settle(at: clock.now()) }
    default: break
    }
  }

  /// Once one of these calls fails, nothing more may be written, whichever thread made the call. An
  /// exchange of names that finds no room changes nothing.
  private func noteFailedCalls() {
    let isDoubtful = injector.failuresOfStore.contains {
      $0.call == .synchronizeData
        || [.exchange, .rename].contains($0.call) && !Self.isOfSpace($0.number)
    }
    if isDoubtful { isPoisoned = true }
  }

  func pausing<Result>(_ body: () throws -> Result) rethrows -> Result {
    let wasPaused = injector.isPaused
    injector.isPaused = true
    defer { injector.isPaused = wasPaused }
    return try body()
  }

  // MARK: Opening and closing

  /// Whether a record was ever unreadable: the counts of the log survive a reopen.
  private var hasFailedRead: Bool {
    injector.failures.contains {
      [.open, .status, .read].contains($0.call) && FileName.isSegment(String($0.name))
    }
  }

  var hasFailedSync: Bool { injector.failedCalls.contains(.synchronizeData) }

  /// Whether the log could not be synced and the failure could not be recorded for the next open.
  /// In the same boot, the next open may then treat what is missing as damage.
  private var hasLostMark: Bool { hasFailedSync && injector.failedCalls.contains(.truncate) }

  /// After a failed sync, the page cache may show what never reaches the disk, but an open relies
  /// on the disk.
  var legalAfterDeath: [ModelState] {
    hasFailedSync ? model.afterPowerCut : model.afterDeath
  }

  /// Opens the store, and retries if a temporary fault prevented it.
  ///
  /// - Returns: `false` if a permanent fault did.
  private func open(legal: [ModelState], readOnly: Bool = false) throws -> Bool {
    var legal = legal
    held = nil
    for _ in 0..<2 {
      process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
      injector.install(on: process.fileSystem)
      let before = injector.hitCount
      let first = injector.failures.count
      injector.noteOpening()
      defer { injector.noteOpening(isEnd: true) }
      do {
        let store = try process.open(configuration, readOnly: readOnly)
        let state = try pausing {
          try RecoveryCheck.match(
            store, legal, now: clock.now(), strayFiles: strayFiles, "at an opening",
            mayCountMore: hasFailedRead)
        }
        try checkHidden(since: first, isOpening: true)
        live = state
        isPoisoned = false
        if !readOnly {
          // An open makes everything that it finds durable.
          model = ModelStore(state)
          injector.forgetFailures()
        }
        return true
      } catch let error as StoreError {
        try judge(error, since: first, wasPoisoned: false)
        try checkLeaks("an open that failed")
        process.kill()
        if hasFailedSync { legal = model.afterPowerCut }
        if injector.hitCount == before { return false }
      }
    }
    return false
  }

  private func checkReadOnly() throws {
    do {
      try process.store?.setValue("x", forKey: "x")
      throw FuzzFailure("a store that is open for reading accepts a write")
    } catch StoreError.readOnly {}
  }

  /// Closes the store and ends the process, whatever the result of the close.
  private func close(readOnly: Bool = false) throws {
    let first = injector.failures.count
    let wasPoisoned = isPoisoned
    do {
      try process.close { try pausing { try checkSnapshot() } }
      if wasPoisoned, !injector.failedCalls.isEmpty {
        throw FuzzFailure("a close after a failed sync finds nothing wrong")
      }
      try checkHidden(since: first)
      if !readOnly { model.settle() }
    } catch let error as StoreError {
      try judge(error, since: first, wasPoisoned: wasPoisoned)
    }
    process.kill()
  }

  private func checkLeaks(_ place: String) throws {
    process.queue.discardAll()
    let count = process.fileSystem.leftCount
    if count > 0 { throw FuzzFailure("\(count) descriptors or mappings are left after \(place)") }
  }

  // MARK: The end

  private func takeImage() {
    var cut = RandomCut(choices.split())
    images.append((disk.afterPowerCut(&cut), model.afterPowerCut))
  }

  private func finish(isOpen: Bool) throws {
    takeImage()
    if isOpen, let store = process.store {
      try checkReads(store)
      if ending == .dies { try checkSnapshot() }
    }
    defer { held = nil }
    if isOpen, ending != .dies {
      let isLasting = injector.isLasting
      if !isLasting { try checkGoesOn() }
      try close()
    }
    process.kill()
    injector.isPaused = true
    let legal = legalAfterDeath
    tamper?(disk)
    for (image, legal) in images {
      try check(image, legal, "after a power cut")
    }
    if hasLostMark {
      tally["lost marks"] += 1
      return
    }
    try check(disk, legal, afterCut: model.afterPowerCut, "after the end of the process")
  }

  /// Once a fault is over, the store must accept writes unless it is poisoned.
  private func checkGoesOn() throws {
    let key = OperationGenerator.keys[0]
    let entry = ModelEntry(value: Array("after the fault".utf8))
    try pausing { try perform(.put(key: key, entry, .durable)) }
    if live[key]?.value != entry.value, !isPoisoned {
      throw FuzzFailure("the store does not accept a write after the fault")
    }
  }

  private func check(
    _ disk: SimulatedDisk, _ legal: [ModelState], afterCut: [ModelState]? = nil, _ place: String
  ) throws {
    var check = RecoveryCheck(configuration: configuration, now: clock.now())
    check.strayFiles = strayFiles
    check.mayCountMore = hasFailedRead
    // Writes to a recovered store evict nothing.
    check.configuration.countLimit = nil
    do {
      try check.check(disk, legal: legal, afterCut: afterCut, &choices)
    } catch let error as StoreError {
      throw FuzzFailure("\(place) the store does not open: \(error)")
    } catch let failure as FuzzFailure {
      throw FuzzFailure("\(place): \(failure)")
    }
    tally.add(check.tally)
  }
}
