import CairnStore

/// One workload of an exhaustive search.
struct ExhaustiveWorkload {
  private let operations: [Operation]
  private let meanwhile: Operation?
  private let cutsRecoveries: Bool
  private let search: CutSearch
  /// The disk at the beginning of the workload. Everything on it is durable.
  private let disk: SimulatedDisk
  private let state: ModelState

  init(
    _ workload: ExhaustiveRun.Workload, on disk: SimulatedDisk, search: CutSearch
  ) throws {
    operations = workload.operations
    meanwhile = workload.meanwhile
    cutsRecoveries = workload.cutsRecoveries
    self.search = search
    let session = Session(on: disk, ModelStore(), search.configuration)
    defer { session.process.kill() }
    if workload.base != .nothing {
      try session.open()
      for (number, key) in [Array("key 0".utf8), Array("key 1".utf8)].enumerated() {
        let entry = ModelEntry(value: [UInt8](repeating: 0xB0 + UInt8(number), count: 25))
        try session.perform(.put(key: key, entry, .durable))
      }
      let fillerByteCount: Int? =
        switch workload.base {
        case .nothing, .closed: nil
        case .fullSegment: 65_216
        case .nearlyFullSegment: 64_052
        }
      if let fillerByteCount {
        let (key, byte) = (Array("key 2".utf8), UInt8(0xF1))
        let filler = ModelEntry(value: [UInt8](repeating: byte, count: fillerByteCount))
        try session.perform(.put(key: key, filler, .durable))
        // Remove the key again: a compaction that copied it would have more sectors than can be
        // tried.
        try session.perform(.remove(key: key, .durable))
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

  /// The operation that a power cut interrupts: the last one, or the open if there is none.
  private var name: String { operations.last?.name ?? "an open" }

  /// All but the last operation, in a new process on a new disk.
  ///
  /// Workloads that begin alike leave the same disk, so it is examined once.
  private func begin() throws -> Session {
    let session = Session(on: disk.settled(), ModelStore(state), search.configuration)
    if operations.isEmpty { return session }
    try session.open()
    for operation in operations.dropLast() { try session.perform(operation) }
    session.announce(operations[operations.count - 1])
    return session
  }

  private func finish(_ session: Session) throws {
    if let last = operations.last { try session.finish(last) } else { try session.open() }
  }

  // MARK: Crashes

  /// Cuts the power at each call of the last operation, and after it.
  ///
  /// - Returns: the calls at which a process may leave something other than at the call before.
  private func cutPower() throws -> [Int?] {
    let session = try begin()
    defer { session.process.kill() }
    var kills: [Int?] = []
    func check(_ place: String) throws {
      let (disk, legal) = (session.process.fileSystem.disk, session.model.afterPowerCut)
      try search.checkCuts(disk, legal: legal, "\(place) \(name)")
      if cutsRecoveries {
        try search.checkCutsInRecovery(disk, legal: legal, "\(place) \(name)")
      }
    }
    try search.watching(session.process) { [meanwhile] call, number, isNew in
      // A process may also die in the middle of a write into a mapping.
      if isNew || call == .mappedWrite { kills.append(number) }
      if isNew { try check("at a \(call.rawValue) of") }
      if call == .synchronizeData, let meanwhile {
        try session.performMeanwhile(meanwhile)
        try check("after \(meanwhile.name) at a \(call.rawValue) of")
      }
    } while: {
      try finish(session)
    }
    try check("after")
    return kills + [nil]
  }

  /// Ends the process at a call of the last operation, or after it, and cuts the power during the
  /// recovery that follows.
  private func kill(atCall number: Int?) throws {
    let session = try begin()
    var call = 0
    var place = "after \(name)"
    var failure: (any Error)?
    session.process.fileSystem.intervene = { [name, meanwhile] kind in
      let current = call
      call += 1
      if current == number {
        place = "at a \(kind.rawValue) of \(name)"
        return .die
      }
      if kind == .synchronizeData, let meanwhile {
        do { try session.performMeanwhile(meanwhile) } catch { failure = error }
      }
      return nil
    }
    do { try finish(session) } catch {
      guard session.process.fileSystem.isDead else { throw error }
    }
    if let failure { throw failure }
    guard session.process.fileSystem.isDead == (number != nil) else {
      throw FuzzFailure("a workload makes other calls when it is repeated")
    }
    session.process.kill()
    search.countKill()
    try search.checkRecovery(
      on: session.process.fileSystem.disk, legal: session.model.afterDeath,
      cutLegal: cutsRecoveries ? session.model.afterPowerCut : nil,
      as: "cuts in recovery after a kill",
      "from a death of the process \(place)")
  }
}

/// A process that runs a workload, and the model that checks it.
private final class Session {
  let process: SimulatedProcess
  private(set) var model: ModelStore
  private let configuration: StoreConfiguration
  /// The number of the state that the last operation leads to, if other operations ran during it.
  private var stateBeforeOthers: Int?

  init(on disk: SimulatedDisk, _ model: ModelStore, _ configuration: StoreConfiguration) {
    process = SimulatedProcess.start(on: disk, seed: 1)
    self.model = model
    self.configuration = configuration
  }

  private var now: Timestamp { configuration.clock.now() }

  func open() throws { _ = try process.open(configuration) }

  func perform(_ operation: Operation) throws {
    announce(operation)
    try finish(operation)
  }

  /// The operation begins: from now on, a crash may leave its result.
  func announce(_ operation: Operation) {
    model.candidates += operation.steps(from: model.current, now: now)
  }

  /// Performs the operation. If the process dies, no caller gets the result.
  func finish(_ operation: Operation) throws {
    let versions = try apply(operation)
    if process.fileSystem.isDead { return }
    defer { model.candidates = [] }
    if let number = stateBeforeOthers {
      // The operation was acknowledged together with the others. Only earlier writes are durable.
      if operation.makesDurable { model = model.settled(through: number) }
    } else if let next = model.candidates.last {
      for step in model.candidates.dropLast() { model.acknowledge(step) }
      model.acknowledge(next, versions, operation, now: now)
    } else if operation.makesAbsenceDurable || operation.durability == nil && operation.makesDurable
    {
      model.settle()
    }
  }

  /// Another thread performs an operation, and finishes before the current one, which has already
  /// appended all its records.
  func performMeanwhile(_ operation: Operation) throws {
    guard let store = process.store else { return }
    let before = model.candidates.last ?? model.current
    let next = operation.applied(to: before, now: now) ?? before
    model.candidates.append(next)
    do {
      _ = try operation.perform(on: store, holding: before, now: now)
    } catch {
      guard process.fileSystem.isDead else { throw error }
    }
    if process.fileSystem.isDead { return }
    // The current operation's writes precede it in the log.
    for state in model.candidates.dropLast() { model.acknowledge(state) }
    if stateBeforeOthers == nil { stateBeforeOthers = model.states.count - 1 }
    model.acknowledge(next)
    model.candidates = []
  }

  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    guard let store = process.store else { preconditionFailure("no store is open") }
    switch operation {
    case .reopen:
      try store.close()
      process.queue.runAll()
      try open()
    case .runJobs: process.queue.runAll()
    default: return try operation.perform(on: store, holding: model.current, now: now)
    }
    return [:]
  }
}

extension Operation {
  /// Whether all earlier writes are durable once the operation is done.
  fileprivate var makesDurable: Bool {
    switch self {
    case .sync, .reopen: true
    default: durability == .durable
    }
  }
}

extension ModelStore {
  /// The model without the states before `number`, which is durable.
  fileprivate func settled(through number: Int) -> ModelStore {
    var model = ModelStore(states[number])
    for state in states[(number + 1)...] { model.acknowledge(state) }
    return model
  }
}
