import CairnStore

/// One workload of an exhaustive search.
struct ExhaustiveWorkload {
  private let operations: [Operation]
  private let search: CutSearch
  /// What it begins with: everything is there for good.
  private let disk: SimulatedDisk
  private let state: ModelState

  init(
    base: ExhaustiveRun.Base, disk: SimulatedDisk, operations: [Operation], search: CutSearch
  ) throws {
    self.operations = operations
    self.search = search
    var session = Session(on: disk, ModelStore(), search.configuration)
    defer { session.process.kill() }
    if base != .nothing {
      try session.open()
      for (number, key) in [Array("key 0".utf8), Array("key 1".utf8)].enumerated() {
        let entry = ModelEntry(value: [UInt8](repeating: 0xB0 + UInt8(number), count: 25))
        try session.perform(.put(key: key, entry, .durable))
      }
      if base == .fullSegment {
        let filler = ModelEntry(value: [UInt8](repeating: 0xF1, count: 64_600))
        try session.perform(.put(key: Array("key 2".utf8), filler, .durable))
      }
      try session.process.close()
    }
    self.disk = disk.settled()
    state = session.model.current
  }

  func run() throws {
    let kills = try cutPower()
    for kill in kills { try self.kill(atCall: kill) }
  }

  /// What is cut: the last operation, or the opening where there is none.
  private var name: String { operations.last?.name ?? "an open" }

  /// All but the last operation, in a new process on a new disk.
  ///
  /// Processes of workloads that begin alike do the same, so that what they leave is looked at once.
  private func begin() throws -> Session {
    var session = Session(on: disk.settled(), ModelStore(state), search.configuration)
    if operations.isEmpty { return session }
    try session.open()
    for operation in operations.dropLast() { try session.perform(operation) }
    session.announce(operations[operations.count - 1])
    return session
  }

  private func finish(_ session: inout Session) throws {
    if let last = operations.last { try session.finish(last) } else { try session.open() }
  }

  // MARK: Crashes

  /// Cuts the power at each call of the last operation, and after it.
  ///
  /// - Returns: the calls at which a process may leave something else behind than at the one before.
  private func cutPower() throws -> [Int?] {
    var session = try begin()
    defer { session.process.kill() }
    let disk = session.process.fileSystem.disk
    let legal = session.model.afterPowerCut
    var kills: [Int?] = []
    let place = "of \(name)"
    try search.watching(session.process) { [search] call, number, isNew in
      // A process may also die in the middle of a write into a mapping.
      if isNew || call == .mappedWrite { kills.append(number) }
      guard isNew else { return }
      let place = "at a \(call.rawValue) \(place)"
      try search.checkCuts(disk, legal: legal, place)
      try search.checkCutsInRecovery(disk, legal: legal, place)
    } while: {
      try finish(&session)
    }
    try search.checkCuts(disk, legal: session.model.afterPowerCut, "after \(name)")
    try search.checkCutsInRecovery(disk, legal: session.model.afterPowerCut, "after \(name)")
    return kills + [nil]
  }

  /// Ends the process at a call of the last operation, or after it, and cuts the power in the course
  /// of the recovery from that.
  private func kill(atCall number: Int?) throws {
    var session = try begin()
    var call = 0
    var place = "after \(name)"
    session.process.fileSystem.intervene = { [name] kind in
      defer { call += 1 }
      guard call == number else { return nil }
      place = "at a \(kind.rawValue) of \(name)"
      return .die
    }
    do { try finish(&session) } catch {
      guard session.process.fileSystem.isDead else { throw error }
    }
    guard session.process.fileSystem.isDead == (number != nil) else {
      throw FuzzFailure("a workload makes other calls when it is done again")
    }
    session.process.kill()
    search.countKill()
    try search.checkRecovery(
      on: session.process.fileSystem.disk, legal: session.model.afterDeath,
      cutLegal: session.model.afterPowerCut, as: "cuts in recovery after a kill",
      "from a death of the process \(place)")
  }
}

/// A process that does a workload, and the model that goes with it.
private struct Session {
  let process: SimulatedProcess
  private(set) var model: ModelStore
  private let configuration: StoreConfiguration

  init(on disk: SimulatedDisk, _ model: ModelStore, _ configuration: StoreConfiguration) {
    process = SimulatedProcess.start(on: disk, seed: 1)
    self.model = model
    self.configuration = configuration
  }

  func open() throws { _ = try process.open(configuration) }

  mutating func perform(_ operation: Operation) throws {
    announce(operation)
    try finish(operation)
  }

  /// The operation begins: from now on a crash may leave what it leads to.
  mutating func announce(_ operation: Operation) {
    model.candidates = operation.steps(from: model.current, now: configuration.clock.now())
  }

  /// Does it. What a process that dies was told nobody knows.
  mutating func finish(_ operation: Operation) throws {
    let versions = try apply(operation)
    if process.fileSystem.isDead { return }
    if let next = model.candidates.last {
      for step in model.candidates.dropLast() { model.acknowledge(step) }
      model.acknowledge(next, versions, operation, now: configuration.clock.now())
    }
    model.candidates = []
    switch operation {
    case .sync, .reopen: model.settle()
    default: break
    }
  }

  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    guard let store = process.store else { preconditionFailure("no store is open") }
    switch operation {
    case .reopen:
      try store.close()
      process.queue.runAll()
      try open()
    case .runJobs: process.queue.runAll()
    default:
      return try operation.perform(
        on: store, holding: model.current, now: configuration.clock.now())
    }
    return [:]
  }
}
