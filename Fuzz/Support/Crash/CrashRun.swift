import CairnStore

/// Collects the damage that scrubs report.
final class FoundDamage: Sendable {
  private let event = Lock<Damage?>(nil)

  var first: Damage? { event.withLock { $0 } }
  func forget() { event.withLock { $0 = nil } }
  func note(_ new: Damage) { event.withLock { $0 = $0 ?? new } }
}

/// A workload on a simulated disk, with power cuts and kills at any call.
///
/// During the run, images record what a power cut at that moment would leave. Each is recovered and
/// compared with the model. Sometimes the run itself crashes and continues with what was recovered.
package final class CrashRun<Choices: ChoiceSource> {
  var choices: Choices
  var generator = OperationGenerator()
  let clock = ManualClock()
  var configuration: StoreConfiguration
  var disk: SimulatedDisk
  var process: SimulatedProcess
  var model = ModelStore()
  /// What power cuts would have left, what may be found in it, and when each cut was.
  var images:
    [(SimulatedDisk, model: ModelStore, SimulatedFileSystem.Call, Operation, version: UInt64)] = []
  /// Whether a sync failed in the current operation.
  var hasFailedSync = false
  var isMeanwhile = false
  /// A failure of another thread's action during an operation.
  var failureMeanwhile: FuzzFailure?
  /// Damage that a scrub has reported, although there is none.
  let damage = FoundDamage()
  /// Whether anything was written since the store was opened and since the last checkpoint.
  var hasWritten = false
  package internal(set) var tally = Tally()

  /// Every version that a put returned, with what it was given to.
  var given: [UInt64: [[UInt8]]] = [:]

  /// An open snapshot, and what it should show.
  var held: (snapshot: Snapshot, state: ModelState, now: Timestamp)?
  /// The files of all checkpoints that were ever listed, the newest last.
  var checkpoints: [[UInt8]] = []

  /// The followers of the store, if there are any.
  var followers: SimulatedFollowers?

  /// One call in this many is examined, on average.
  let cutInterval: Int

  /// Called for each step, to help examine a failure.
  let trace: ((String) -> Void)?

  /// - Parameter isFollowed: whether other processes follow the store.
  package init(
    _ choices: Choices, cutInterval: Int = 6, isFollowed: Bool = false,
    trace: ((String) -> Void)? = nil
  ) {
    var choices = choices
    self.trace = trace
    disk = SimulatedDisk(
      sectorByteCount: choices.once(in: 3) ? 4096 : 512, reservesBlocks: !choices.once(in: 5))
    disk.exchanges = !choices.once(in: 4)
    configuration = .simulated(clock)
    if choices.once(in: 5) { configuration.mapsFiles = false }
    if choices.once(in: 3) { configuration.durability = .durable }
    if choices.once(in: 2) {
      // Keeps background compaction busy.
      configuration.spaceBound = 1.1
      configuration.deadByteFloor = 0
    }
    if choices.once(in: 3) { configuration.checkpointRecordThreshold = 16 }
    if choices.once(in: 4) {
      configuration.countLimit = 2 + choices.below(8)
      generator.mayExpire = false
    } else if choices.once(in: 6) {
      // More than any one record takes.
      configuration.byteLimit = 24_000 + choices.below(30_000)
      generator.mayExpire = false
      generator.mayBeLarge = false
    }
    if choices.once(in: 4) {
      configuration.scrubBytesPerSecond = 4 << 20
      configuration.damageObserver = { [damage] in damage.note($0) }
    }
    generator.setsLifetimesOften = generator.mayExpire && choices.once(in: 3)
    self.cutInterval = cutInterval
    if isFollowed {
      disk.leastMappedByteCount = 64 << 20
      followers = SimulatedFollowers(
        FuzzRandom(seed: UInt64(choices.below(1 << 30))), configuration,
        areToldOfWrites: configuration.mapsFiles && disk.reservesBlocks)
    }
    process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    if isFollowed { process.tellFollowers() }
    self.choices = choices
  }

  /// Runs this many operations, or as many as there are decisions for.
  package func run(operationCount: Int) throws {
    defer {
      process.kill()
      followers?.end()
    }
    try reopen()
    for _ in 0..<operationCount where !choices.isAtEnd {
      try perform(generator.next(&choices, now: clock.now()))
      // Images are checked not only at the end, because each holds a disk.
      if images.count >= 8 { try checkImages() }
    }
    if choices.once(in: 2) {
      try crash()
    } else {
      try checkSnapshot()
      try followers?.finishReads()
      try process.close()
    }
    if let followers { tally.add(followers.tally) }
    process.kill()
    try checkImages()
  }

  // MARK: Operations

  /// Performs one operation, during which the process may die.
  private func perform(_ operation: Operation) throws {
    // A kill interrupts one operation in thirty.
    var callsToDeath = choices.once(in: 30) ? choices.below(30) : -1
    var untilCut = 1 + choices.below(2 * cutInterval)
    var fails = choices.once(in: 25)
    hasFailedSync = false
    var isAlone = choices.once(in: 2) || configuration.byteLimit != nil
    // How far these operations got is known only once they are done.
    switch operation {
    case .trimBytes, .trimOlder(_, .access, _): isAlone = true
    default: break
    }
    var diesAfterSwitch = choices.once(in: 60)
    var hasSwitched = false
    let isRemovalOfAll = if case .removeAll = operation { true } else { false }
    process.fileSystem.intervene = { [unowned self] call in
      trace?("    \(call.rawValue)")
      lookAsFollowers(in: operation)
      if call == .synchronizeData {
        if fails {
          fails = false
          hasFailedSync = true
          return .fail(SystemError.inputOutput)
        }
        if !isAlone { writeMeanwhile(during: operation) }
      }
      // Before a compaction checks which of the records that it reads are live.
      if call == .read, !isAlone, operation.isCompaction, process.fileSystem.isAtSealedSegment,
        choices.once(in: 3)
      {
        writeMeanwhile(during: operation)
      }
      // A removal of all waits for the names that it exchanged: writes come after it.
      if call == .synchronize, isRemovalOfAll, !isAlone,
        model.current.values.contains(where: { !$0.hasExpired(clock.now()) }),
        (try? process.store?.count()) == 0
      {
        writeMeanwhile(during: operation)
      }
      if call == .synchronize, !isRemovalOfAll, !isAlone, !operation.writesAside,
        process.fileSystem.isAtOutputOfCompaction
      {
        for _ in 0..<(1 + choices.below(3)) { writeMeanwhile(during: operation, removes: true) }
        // Between a compaction's copying and its switch.
        if choices.once(in: 3) { checkpointMeanwhile(during: operation) }
      }
      untilCut -= 1
      if untilCut == 0 {
        untilCut = 1 + choices.below(2 * cutInterval)
        takeImage(before: call, in: operation, model)
      }
      // The store records a failed sync with its next call. A kill in between is a known gap.
      if hasFailedSync { return nil }
      // The new manifest has replaced the old one, but this is not durable yet.
      if hasSwitched, diesAfterSwitch {
        diesAfterSwitch = false
        return .die
      }
      hasSwitched = call == .exchange || call == .rename
      defer { callsToDeath -= 1 }
      return callsToDeath == 0 ? .die : nil
    }
    trace?(operation.name)
    let limits = ModelLimits(configuration)
    let steps = operation.steps(from: model.current, now: clock.now(), limits: limits)
    model.candidates = steps
    let result = Result { try apply(operation) }
    if let failureMeanwhile { throw failureMeanwhile }
    do {
      let versions = try result.get()
      process.fileSystem.intervene = nil
      if process.fileSystem.isDead { return try crash(afterFailedSync: hasFailedSync) }
      // No caller gets the result of background work.
      if hasFailedSync { return try crash(afterFailedSync: true) }
      let taken =
        if let store = process.store {
          try operation.taken(
            of: steps, from: model.current, in: store, limits: limits, now: clock.now())
        } else { steps }
      acknowledge(taken, versions, operation)
      try note(versions)
    } catch {
      // If the process has died meanwhile, no caller gets the result.
      if process.fileSystem.isDead { return try crash(afterFailedSync: hasFailedSync) }
      // After a failed sync, it is unknown what is on disk, whatever the page cache shows.
      switch error as? StoreError {
      case .durabilityUnknown, .poisoned:
        if choices.once(in: 2) { try checkPoisoned(by: operation) }
        return try crash(afterFailedSync: true)
      default: throw FuzzFailure("\(operation.name) failed: \(error)")
      }
    }
    if choices.once(in: 8) { process.queue.runAll(dueAfter: .zero) }
    noteCheckpoint()
    if choices.once(in: generator.setsLifetimesOften ? 15 : 60) { try crash() }
  }

  /// Performs the operation, and returns the versions of the put values.
  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    if case .reopen = operation {
      // Without a write, there is no new checkpoint, and reads since the last one are forgotten.
      try followers?.finishReads()
      let isKept = hasWritten && configuration.checkpointRecordThreshold == 0
      let order = isKept ? model.current.keysByRecency(now: clock.now()) : nil
      if choices.once(in: 2) { try checkSnapshot() }
      try process.close { try checkSnapshot() }
      model.settle()
      model.candidates = []
      try reopen(keysByRecency: order)
      return [:]
    }
    guard let store = process.store else { preconditionFailure("no store is open") }
    let lastVersion = try store.statistics().lastVersion
    let before = model.current
    let versions = try operation.perform(
      on: store, holding: model.current, now: clock.now(),
      storeDurability: configuration.durability)
    switch operation {
    case .compact where !process.fileSystem.isDead:
      tally["compactions"] += 1
      let statistics = try store.statistics()
      // Each rolled segment ends with a record that counts as dead.
      if statistics.lastVersion == lastVersion,
        statistics.deadByteCount > statistics.segmentCount * RecordHeader.rollByteCount
      {
        throw FuzzFailure(
          "a compaction leaves \(statistics.deadByteCount) dead bytes: \(statistics.segments)")
      }
    case .trimOlder(_, let basis, _):
      if !model.candidates.isEmpty { tally["trims by \(basis)"] += 1 }
    case .trimBytes: tally["trims to bytes"] += 1
    case .sync, .checkpoint: if !process.fileSystem.isDead { model.settle() }
    case .snapshot:
      try checkSnapshot()
      held = (try store.snapshot(), before, clock.now())
    case .backup(let path):
      if process.fileSystem.isDead { break }
      tally["backups"] += 1
      try checkBackup(path, on: process.environment, legal: [before])
      disk.setContents(nil, of: path)
    case .wait(let duration):
      try followers?.finishReads()
      clock.advance(by: duration)
      process.queue.runAll(dueAfter: duration)
      if !process.fileSystem.isDead, !hasFailedSync { model.settle(at: clock.now()) }
    case .runJobs:
      process.queue.runAll(dueAfter: .zero)
      if configuration.scrubBytesPerSecond != nil { try scrub(store) }
    case .get(let key): model.noteRead(of: key, now: clock.now())
    default: break
    }
    return versions
  }

  /// Reads the whole log, which is sound, and checks what maintenance has found in it.
  private func scrub(_ store: Store) throws {
    let report = try store.scrub()
    if let damage = damage.first {
      throw FuzzFailure("a scrub finds damage where there is none: \(damage)")
    }
    if !report.isComplete { throw FuzzFailure("a scrub did not finish") }
    tally["scrubs"] += 1
  }

  private func acknowledge(
    _ steps: [ModelState], _ versions: [[UInt8]: UInt64], _ operation: Operation
  ) {
    if !steps.isEmpty { hasWritten = true }
    for step in steps.dropLast() { model.acknowledge(step) }
    if let next = steps.last {
      model.acknowledge(next, versions, operation, now: clock.now())
    } else if operation.makesAbsenceDurable {
      model.settle()
    }
    if model.acknowledgedCandidateCount > 0 {
      for state in model.candidates.dropFirst(steps.count) { model.acknowledge(state) }
    }
    model.acknowledgedCandidateCount = 0
    followers?.noteEnd()
    model.candidates = []
  }

  /// Remembers the file of the newest checkpoint.
  private func noteCheckpoint() {
    guard let bytes = disk.listedCheckpoint?.bytes, bytes != checkpoints.last else { return }
    hasWritten = false
    checkpoints.append(bytes)
    if checkpoints.count > 3 { checkpoints.removeFirst() }
  }
}
