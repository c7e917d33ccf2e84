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

  /// Runs so many operations.
  package func run(operationCount: Int) throws {
    defer { process.kill() }
    try reopen()
    for _ in 0..<operationCount {
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
    process.fileSystem.intervene = { [unowned self] call in
      trace?("    \(call.rawValue)")
      untilCut -= 1
      if untilCut == 0 {
        untilCut = 1 + choices.below(2 * cutInterval)
        takeImage(before: call, in: operation)
      }
      defer { callsToDeath -= 1 }
      return callsToDeath == 0 ? .die : nil
    }
    trace?(operation.name)
    let next = operation.applied(to: model.current, now: clock.now())
    model.candidate = next
    do {
      let versions = try apply(operation)
      process.fileSystem.intervene = nil
      if process.fileSystem.isDead { return try crash() }
      if let next { acknowledge(next, versions, operation) }
      model.candidate = nil
    } catch {
      if process.fileSystem.isDead { return try crash() }
      throw FuzzFailure("\(operation.name) failed: \(error)")
    }
    if choices.once(in: 8) { process.queue.runAll(dueAfter: .zero) }
    if choices.once(in: 60) { try crash() }
  }

  /// Does it, and returns the versions of what was put.
  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    let now = clock.now()
    if case .reopen = operation {
      try process.close()
      model.settle()
      try reopen()
      return [:]
    }
    guard let store = process.store else { preconditionFailure("no store is open") }
    switch operation {
    case .put(let key, let entry, let durability):
      return [
        key: try store.setValue(
          entry.value, forKey: key, lifetime: lifetime(entry, now), cost: entry.cost,
          metadata: entry.metadata, durability: durability)
      ]
    case .remove(let key, let durability):
      let isThere = try store.removeValue(forKey: key, durability: durability)
      if isThere != (model.candidate != nil), !process.fileSystem.isDead {
        throw FuzzFailure("a removal says \(isThere)")
      }
    case .batch(let changes, let durability):
      try store.write(durability: durability) { batch in
        for (key, entry) in changes {
          if let entry {
            try batch.setValue(
              entry.value, forKey: key, lifetime: lifetime(entry, now), cost: entry.cost,
              metadata: entry.metadata)
          } else {
            try batch.removeValue(forKey: key)
          }
        }
      }
    case .compareAndSet(let key, let entry, let isRight, let durability):
      // The versions of a batch are not told, so the store is asked.
      let current = try store.info(forKey: key)?.version
      let expected = isRight ? current : (current == nil ? 1 : nil)
      let result = try store.compareAndSet(
        entry.value, forKey: key, expecting: expected,
        attributes: EntryAttributes(
          lifetime: lifetime(entry, now), cost: entry.cost, metadata: entry.metadata),
        durability: durability)
      switch result {
      case .stored(let version) where isRight: return [key: version]
      case .mismatch(current) where !isRight: break
      default: throw FuzzFailure("a compare-and-set says \(result)")
      }
    case .removeAll: try store.removeAll()
    case .sync:
      try store.sync()
      if !process.fileSystem.isDead { model.settle() }
    case .wait(let duration):
      clock.advance(by: duration)
      process.queue.runAll(dueAfter: duration)
      if !process.fileSystem.isDead { model.settle(at: clock.now()) }
    case .runJobs: process.queue.runAll(dueAfter: .zero)
    case .get(let key):
      let entry = model.current[key].flatMap { $0.hasExpired(now) ? nil : $0 }
      guard try store.value(forKey: key) == entry?.value else {
        throw FuzzFailure("a read finds something else than was written")
      }
    case .reopen: break
    }
    return [:]
  }

  private func lifetime(_ entry: ModelEntry, _ now: Timestamp) -> Duration? {
    entry.expires.map {
      .milliseconds($0.millisecondsSinceEpoch - now.millisecondsSinceEpoch)
    }
  }

  private func acknowledge(
    _ next: ModelState, _ versions: [[UInt8]: UInt64], _ operation: Operation
  ) {
    var next = next
    for (key, version) in versions { next[key]?.version = version }
    switch operation.durability {
    case .durable:
      model.acknowledge(next)
      model.settle()
    case .interval(let interval):
      model.acknowledge(next, durableBy: clock.now().advanced(by: interval))
    case .process: model.acknowledge(next)
    case nil:
      model.acknowledge(next)
      if case .removeAll = operation { model.settle() }
    }
  }

  // MARK: Crashes

  private func takeImage(before call: SimulatedFileSystem.Call, in operation: Operation) {
    trace?("    image \(images.count), \(model.states.count) states")
    var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
    images.append((disk.afterPowerCut(&cut), model, call, operation))
    tally["cuts"] += 1
  }

  /// The process dies, and perhaps the power goes with it; the run goes on with what is found.
  private func crash() throws {
    let losesPower = choices.once(in: 2)
    trace?("  crash, \(losesPower ? "power lost" : "process killed")")
    process.fileSystem.intervene = nil
    process.kill()
    var legal = model.afterDeath
    if losesPower {
      var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
      disk = disk.afterPowerCut(&cut)
      legal = model.afterPowerCut
      tally["cuts"] += 1
    } else {
      tally["kills"] += 1
    }
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
        try check.check(image, legal: model.afterPowerCut, isSettled: true, &choices)
      } catch {
        throw FuzzFailure(
          "after a power cut at a \(call.rawValue) of \(operation.name), image \(index): \(error)")
      }
      tally.add(check.tally)
    }
    images = []
  }
}
