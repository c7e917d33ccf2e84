import CairnStore

/// A store on a small disk, filled completely, more than once.
///
/// The conditions: without room, a write throws `noSpace` and has no effect, and nothing else ever
/// fails. Reads continue. Earlier writes survive any end of the process, and there is always room
/// for a reopen. After the first write, there is room for removals, and for the removal of all if
/// two names can be exchanged. Once there is room again, everything works.
package struct FullDiskRun {
  package var tally = Tally()
  private var choices: FuzzRandom
  private let clock = ManualClock()
  private let configuration: StoreConfiguration
  private let disk: SimulatedDisk
  private var process: SimulatedProcess
  private var model = ModelStore()
  private var generator = OperationGenerator()
  /// Whether there is an active segment, with the space kept for removals.
  private var hasReserve = false
  /// How many removals the reserve must have room for.
  private static let removalCount = 50
  private let trace: ((String) -> Void)?

  package init(seed: UInt64, trace: ((String) -> Void)? = nil) {
    var choices = FuzzRandom(seed: seed)
    disk = SimulatedDisk(reservesBlocks: !choices.once(in: 6))
    disk.exchanges = !choices.once(in: 5)
    var configuration = StoreConfiguration.simulated(clock)
    if choices.once(in: 3) { configuration.mapsFiles = false }
    if choices.once(in: 2) { configuration.segmentByteLimit = 256 << 10 }
    self.configuration = configuration
    process = SimulatedProcess.start(on: disk, seed: 0)
    self.choices = choices
    self.trace = trace
  }

  package mutating func run() throws {
    defer { process.kill() }
    disk.capacity = 4096 * (1 + choices.below(choices.once(in: 3) ? 200 : 60))
    trace?("room for \(disk.capacity ?? 0) bytes")
    if try !create() { return }
    for _ in 0..<(1 + choices.below(4)) {
      try fill()
      try remove()
      try reopen()
    }
    disk.capacity = nil
    try checkGoesOn()
    process.kill()
    var check = RecoveryCheck(configuration: configuration, now: clock.now())
    try check.check(disk, legal: model.afterDeath, afterCut: model.afterPowerCut, &choices)
    tally.add(check.tally)
  }

  /// - Returns: `false` if there is no room for an empty store.
  private mutating func create() throws -> Bool {
    do throws(StoreError) {
      _ = try process.open(configuration)
      return true
    } catch {
      try judge(error)
      tally["too small for a store"] += 1
    }
    process.kill()
    disk.capacity = nil
    process = SimulatedProcess.start(on: disk, seed: 1)
    _ = try process.open(configuration)
    try checkGoesOn()
    return false
  }

  // MARK: Filling

  /// Writes until there is no room even for small values.
  private mutating func fill() throws {
    var refusals = 0
    for _ in 0..<400 where refusals < 8 {
      var operation = generator.next(&choices, now: clock.now())
      switch operation {
      case .reopen, .removeAll, .removeMany, .trim, .trimBytes, .trimOlder, .removeExpired:
        continue
      case .remove, .compareAndRemove, .update: if !hasReserve { continue }
      default: break
      }
      if refusals > 4 {
        let entry = generator.entry(&choices, now: clock.now(), mayBeLarge: false)
        operation = .put(key: OperationGenerator.keys[choices.below(9)], entry, .process)
      }
      if try !perform(operation) { refusals += 1 }
    }
    tally["disks filled"] += refusals >= 8 ? 1 : 0
  }

  /// - Returns: whether there was room.
  @discardableResult
  private mutating func perform(_ operation: Operation, mustFit: Bool = false) throws -> Bool {
    guard let store = process.store else { preconditionFailure("no store is open") }
    trace?(operation.name)
    let steps = operation.steps(from: model.current, now: clock.now())
    do {
      let versions = try operation.perform(on: store, holding: model.current, now: clock.now())
      let taken = try operation.taken(
        of: steps, from: model.current, in: store, limits: ModelLimits(), now: clock.now())
      if let next = taken.last {
        for step in taken.dropLast() { model.acknowledge(step) }
        model.acknowledge(next, versions, operation, now: clock.now())
        hasReserve = true
      }
      if case .sync = operation { model.settle() }
      if taken.isEmpty, operation.makesAbsenceDurable { model.settle() }
      switch operation {
      case .get(let key): model.noteRead(of: key, now: clock.now())
      case .runJobs: process.queue.runAll(dueAfter: .zero)
      case .wait(let duration):
        clock.advance(by: duration)
        process.queue.runAll(dueAfter: duration)
        model.settle(at: clock.now())
      default: break
      }
      return true
    } catch let error as StoreError {
      trace?("  \(error)")
      try judge(error)
      if mustFit { throw FuzzFailure("\(operation.name) finds no room: \(error)") }
      tally["refusals"] += 1
      // The update has read the old value, but found no room for the new one.
      if case .update(let key, _, _) = operation { model.noteRead(of: key, now: clock.now()) }
      try checkReads("after a refusal of \(operation.name)")
      return false
    }
  }

  private func judge(_ error: StoreError) throws {
    // A backup is on the same disk.
    guard case .noSpace(let path, _, .disk) = error,
      path.hasPrefix(SimulatedProcess.path) || path.hasPrefix("/backup")
    else {
      throw FuzzFailure("an error other than noSpace: \(error)")
    }
  }

  private func checkReads(_ place: String) throws {
    guard let store = process.store else { return }
    let contents = try StoreContents(of: store, now: clock.now())
    if contents.match([model.current]) == nil {
      throw FuzzFailure("\(place): \(contents.differences(from: model.current))")
    }
  }

  // MARK: On the full disk

  private mutating func remove() throws {
    // If blocks are not reserved, or names cannot be exchanged, nothing is promised.
    if hasReserve, disk.reservesBlocks {
      var count = 0
      for key in OperationGenerator.keys where count < Self.removalCount && choices.once(in: 3) {
        let durability: Durability = choices.once(in: 2) ? .durable : .process
        try perform(.remove(key: key, durability), mustFit: true)
        count += 1
      }
      if choices.once(in: 2) {
        let changes: [Operation.Change] = OperationGenerator.keys.filter { _ in
          choices.once(in: 2)
        }.map { ($0, nil) }
        try perform(.batch(changes, choices.once(in: 2) ? .durable : .process), mustFit: true)
        tally["batches of removals"] += 1
      }
      if choices.once(in: 2) {
        let durability: Durability = choices.once(in: 2) ? .durable : .process
        let trim: Operation =
          choices.once(in: 3)
          ? .trimBytes(to: 50 << choices.below(11), durability)
          : .trim(toCount: choices.below(9), durability)
        try perform(trim, mustFit: true)
      }
    }
    if choices.once(in: 3) {
      try perform(.removeAll, mustFit: disk.reservesBlocks && disk.exchanges)
      hasReserve = false
      tally["removals of all"] += 1
    }
    try checkReads("after removals")
  }

  private mutating func reopen() throws {
    let closes = choices.once(in: 2)
    trace?(closes ? "close and open" : "kill and open")
    if closes {
      do {
        try process.close()
        model.settle()
      } catch let error as StoreError {
        try judge(error)
        if disk.reservesBlocks, disk.exchanges { throw FuzzFailure("a close fails: \(error)") }
        hasReserve = false
      }
    }
    process.kill()
    if !closes { hasReserve = false }
    process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    do {
      let store = try process.open(configuration)
      let state = try RecoveryCheck.match(
        store, model.afterDeath, now: clock.now(), "opened on a full disk")
      model = ModelStore(state)
      tally["opened while full"] += 1
    } catch let error as StoreError {
      try judge(error)
      if disk.reservesBlocks, disk.exchanges { throw FuzzFailure("no room to open: \(error)") }
      tally["no room to open"] += 1
      process.kill()
      let capacity = disk.capacity
      disk.capacity = nil
      process = SimulatedProcess.start(on: disk, seed: 2)
      model = ModelStore(
        try RecoveryCheck.match(
          process.open(configuration), model.afterDeath, now: clock.now(), "opened with room"))
      disk.capacity = capacity
    }
  }

  private mutating func checkGoesOn() throws {
    let entry = ModelEntry(value: Array("with room again".utf8))
    try perform(.put(key: OperationGenerator.keys[1], entry, .durable), mustFit: true)
    try checkReads("with room again")
  }
}
