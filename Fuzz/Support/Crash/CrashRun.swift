import CairnStore

/// A workload on a simulated disk, with power cuts and deaths of the process at any call.
///
/// While it runs, images are taken of what a power cut at that very moment would leave; each is
/// recovered and compared with the model. Now and then the crash is real for the run itself, which
/// goes on with what was recovered.
package final class CrashRun<Choices: ChoiceSource> {
  private var choices: Choices
  private var generator = OperationGenerator()
  private let clock = ManualClock()
  private var configuration: StoreConfiguration
  private var disk: SimulatedDisk
  private var process: SimulatedProcess
  private var model = ModelStore()
  /// What a power cut would have left, what may be found then, and when that was.
  private var images:
    [(disk: SimulatedDisk, model: ModelStore, call: SimulatedFileSystem.Call, Operation)] = []
  /// Whether a sync failed in the operation that is under way.
  private var hasFailedSync = false
  package private(set) var tally = Tally()

  /// One call in so many is looked at, in the mean.
  private let cutInterval: Int

  /// Told of each step, for a person who looks at a failure.
  private let trace: ((String) -> Void)?

  package init(_ choices: Choices, cutInterval: Int = 6, trace: ((String) -> Void)? = nil) {
    var choices = choices
    self.trace = trace
    disk = SimulatedDisk(
      sectorByteCount: choices.once(in: 3) ? 4096 : 512, reservesBlocks: !choices.once(in: 5))
    disk.exchanges = !choices.once(in: 4)
    configuration = .simulated(clock)
    if choices.once(in: 5) { configuration.access = .systemCalls }
    if choices.once(in: 3) { configuration.durability = .durable }
    self.cutInterval = cutInterval
    process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    self.choices = choices
  }

  /// Runs so many operations, or as many as there are decisions for.
  package func run(operationCount: Int) throws {
    defer { process.kill() }
    try reopen()
    for _ in 0..<operationCount where !choices.isAtEnd {
      try perform(generator.next(&choices, now: clock.now()))
    }
    if choices.once(in: 2) { try crash() } else { try process.close() }
    process.kill()
    try checkImages()
  }

  // MARK: Operations

  /// Performs one operation, in the course of which the process may die.
  private func perform(_ operation: Operation) throws {
    // Death comes to one operation in thirty.
    var callsToDeath = choices.once(in: 30) ? choices.below(30) : -1
    var untilCut = 1 + choices.below(2 * cutInterval)
    var fails = choices.once(in: 40)
    hasFailedSync = false
    var isAlone = choices.once(in: 2)
    process.fileSystem.intervene = { [unowned self] call in
      trace?("    \(call.rawValue)")
      if call == .synchronizeData {
        if fails {
          fails = false
          hasFailedSync = true
          return .fail(SystemError.inputOutput)
        }
        if !isAlone {
          isAlone = true
          writeMeanwhile()
        }
      }
      untilCut -= 1
      if untilCut == 0 {
        untilCut = 1 + choices.below(2 * cutInterval)
        takeImage(before: call, in: operation)
      }
      // The store notes a failed sync with its next call; a death in between is a gap that is known.
      if hasFailedSync { return nil }
      defer { callsToDeath -= 1 }
      return callsToDeath == 0 ? .die : nil
    }
    trace?(operation.name)
    let next = operation.applied(to: model.current, now: clock.now())
    model.candidates = next.map { [$0] } ?? []
    do {
      let versions = try apply(operation)
      process.fileSystem.intervene = nil
      if process.fileSystem.isDead { return try crash(afterFailedSync: hasFailedSync) }
      // In the background nobody is told.
      if hasFailedSync { return try crash(afterFailedSync: true) }
      acknowledge(next, versions, operation)
    } catch {
      if process.fileSystem.isDead { return try crash(afterFailedSync: hasFailedSync) }
      // After a failed sync it is open what is on disk, whatever the cache shows.
      switch error as? StoreError {
      case .durabilityUnknown, .poisoned: return try crash(afterFailedSync: true)
      default: throw FuzzFailure("\(operation.name) failed: \(error)")
      }
    }
    if choices.once(in: 8) { process.queue.runAll(dueAfter: .zero) }
    if choices.once(in: 60) { try crash() }
  }

  /// Does it, and returns the versions of what was put.
  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    if case .reopen = operation {
      try process.close()
      model.settle()
      model.candidates = []
      try reopen()
      return [:]
    }
    guard let store = process.store else { preconditionFailure("no store is open") }
    let versions = try operation.perform(on: store, holding: model.current, now: clock.now())
    switch operation {
    case .sync: if !process.fileSystem.isDead { model.settle() }
    case .wait(let duration):
      clock.advance(by: duration)
      process.queue.runAll(dueAfter: duration)
      if !process.fileSystem.isDead, !hasFailedSync { model.settle(at: clock.now()) }
    case .runJobs: process.queue.runAll(dueAfter: .zero)
    default: break
    }
    return versions
  }

  /// Another thread writes while a sync runs, and is done before it.
  private func writeMeanwhile() {
    guard let store = process.store else { return }
    let key = choices.element(of: OperationGenerator.keys)
    let entry = generator.entry(&choices, now: clock.now(), mayBeLarge: false)
    var next = model.candidates.last ?? model.current
    next[key] = entry
    trace?("    meanwhile a put")
    model.candidates.append(next)
    do {
      _ = try Operation.put(key: key, entry, .process)
        .perform(on: store, holding: model.current, now: clock.now())
      if !process.fileSystem.isDead { model.isLastCandidateAcknowledged = true }
    } catch {
      // Closed by now, or dead.
      if !process.fileSystem.isDead { model.candidates.removeLast() }
    }
  }

  private func acknowledge(
    _ next: ModelState?, _ versions: [[UInt8]: UInt64], _ operation: Operation
  ) {
    if let next { model.acknowledge(next, versions, operation, now: clock.now()) }
    if model.isLastCandidateAcknowledged, let last = model.candidates.last {
      model.acknowledge(last)
    }
    model.isLastCandidateAcknowledged = false
    model.candidates = []
  }

  // MARK: Crashes

  private func takeImage(before call: SimulatedFileSystem.Call, in operation: Operation) {
    trace?("    image \(images.count), \(model.states.count) states")
    var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
    images.append((disk.afterPowerCut(&cut), model, call, operation))
    tally["cuts"] += 1
  }

  /// The process dies, and perhaps the power goes with it; the run goes on with what is found.
  private func crash(afterFailedSync: Bool = false) throws {
    let losesPower = choices.once(in: 2)
    trace?("  crash, \(losesPower ? "power lost" : "process killed")")
    process.fileSystem.intervene = nil
    process.kill()
    var legal = afterFailedSync ? model.afterPowerCut : model.afterDeath
    if losesPower {
      var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
      disk = disk.afterPowerCut(&cut)
      legal = model.afterPowerCut
      tally["cuts"] += 1
    } else {
      tally["kills"] += 1
    }
    if afterFailedSync { tally["failed syncs"] += 1 }
    try reopen(legal)
  }

  /// Opens the store in a new process, checks it, and starts the model anew from what is there.
  private func reopen(_ legal: [ModelState]? = nil) throws {
    process.kill()
    process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    do {
      let store = try process.open(configuration)
      model = ModelStore(
        try RecoveryCheck.match(
          store, legal ?? [model.current], now: clock.now(), "in the course of a run"))
    } catch let error as StoreError {
      throw FuzzFailure("the store does not open: \(error)")
    }
  }

  private func checkImages() throws {
    for (index, (image, model, call, operation)) in images.enumerated() {
      var check = RecoveryCheck(configuration: configuration, now: clock.now())
      do {
        try check.check(image, legal: model.afterPowerCut, &choices)
      } catch {
        throw FuzzFailure(
          "after a power cut at a \(call.rawValue) of \(operation.name), image \(index): \(error)")
      }
      tally.add(check.tally)
    }
    images = []
  }
}
