import CairnStore

/// All short workloads on a tiny store, with a power cut at every call of their last operation and,
/// within a bound, with everything that such a cut may leave.
///
/// The bound: a cut decides for itself which names, lengths and versions of sectors are there. So
/// many decisions as are free, which follow each other in the order of `EnumeratedCut` and begin
/// anywhere, are made in every combination, and so are any two, wherever they are; the others are
/// then all as old as can be, and after that all as new. Where a moment has no more decisions than
/// are free, that is every subset there is.
package struct ExhaustiveRun {
  /// What a workload begins with.
  enum Base: CaseIterable {
    /// No store: the workload makes it.
    case nothing
    /// Two keys, closed.
    case closed
    /// Two keys, and a segment so full that the next write rolls.
    case fullSegment
  }

  private static let keys: [[UInt8]] = [Array("key 0".utf8), Array("key 1".utf8)]
  private static let operations: [Operation] = [
    .put(key: keys[0], entry(1, byteCount: 20), .process),
    .put(key: keys[0], entry(2, byteCount: 20), .durable),
    .put(key: keys[1], entry(3, byteCount: 1200), .process),
    .remove(key: keys[0], .process),
    .remove(key: keys[0], .durable),
    .batch([(keys[0], nil), (keys[1], entry(4, byteCount: 30))], .process),
    .batch([(keys[0], entry(5, byteCount: 30)), (keys[1], entry(6, byteCount: 500))], .durable),
    .compareAndSet(key: keys[1], entry(7, byteCount: 20), isRight: true, .process),
    .removeAll,
    .sync,
    .runJobs,
    .reopen,
  ]

  private static func entry(_ number: UInt8, byteCount: Int) -> ModelEntry {
    ModelEntry(value: [UInt8](repeating: number, count: byteCount))
  }

  private let freeDecisionCount: Int
  private let workloads: [(base: Base, operations: [Operation])]
  package var workloadCount: Int { workloads.count }

  /// All workloads of up to so many operations.
  package init(operationCount: Int, freeDecisionCount: Int) {
    self.freeDecisionCount = freeDecisionCount
    var sequences: [[Operation]] = [[]]
    var last = sequences
    for _ in 0..<operationCount {
      last = last.flatMap { sequence in Self.operations.map { sequence + [$0] } }
      sequences += last
    }
    workloads = Base.allCases.flatMap { base in sequences.map { (base, $0) } }
  }

  /// Runs the workload of this number.
  package func run(_ number: Int) throws -> Tally {
    let workload = workloads[number]
    var one = ExhaustiveWorkload(
      base: workload.base, freeDecisionCount: freeDecisionCount, seed: UInt64(number))
    do {
      try one.run(workload.operations)
    } catch let failure as FuzzFailure {
      let names = workload.operations.map(\.name).joined(separator: ", ")
      throw FuzzFailure("base \(workload.base), workload [\(names)]: \(failure)")
    }
    return one.tally
  }
}

/// One workload of an exhaustive search.
private struct ExhaustiveWorkload {
  private(set) var tally = Tally()
  private let base: ExhaustiveRun.Base
  private let freeDecisionCount: Int
  private let clock = ManualClock()
  private let configuration: StoreConfiguration
  private var model = ModelStore()
  private var process: SimulatedProcess
  private var choices: FuzzRandom

  init(base: ExhaustiveRun.Base, freeDecisionCount: Int, seed: UInt64) {
    self.base = base
    self.freeDecisionCount = freeDecisionCount
    configuration = .simulated(clock)
    choices = FuzzRandom(seed: seed)
    process = SimulatedProcess.start(on: SimulatedDisk(), seed: seed)
  }

  mutating func run(_ operations: [Operation]) throws {
    defer { process.kill() }
    try makeBase()
    // Without an operation it is the opening that is cut.
    if operations.isEmpty {
      _ = try cutting("an open") { [configuration, process] in try process.open(configuration) }
      return
    }
    _ = try process.open(configuration)
    for operation in operations.dropLast() { try perform(operation) }
    try performLast(operations[operations.count - 1])
  }

  private mutating func makeBase() throws {
    if base == .nothing { return }
    _ = try process.open(configuration)
    for (number, key) in [Array("key 0".utf8), Array("key 1".utf8)].enumerated() {
      let entry = ModelEntry(value: [UInt8](repeating: 0xB0 + UInt8(number), count: 25))
      try perform(.put(key: key, entry, .durable))
    }
    if base == .fullSegment {
      let filler = ModelEntry(value: [UInt8](repeating: 0xF1, count: 64_600))
      try perform(.put(key: Array("key 2".utf8), filler, .durable))
    }
    try process.close()
    process = SimulatedProcess.start(on: process.fileSystem.disk.settled(), seed: 1)
  }

  private mutating func perform(_ operation: Operation) throws {
    let next = operation.applied(to: model.current, now: clock.now())
    model.candidates = next.map { [$0] } ?? []
    let versions = try apply(operation)
    if let next { model.acknowledge(next, versions, operation, now: clock.now()) }
    model.candidates = []
    switch operation {
    case .sync, .reopen: model.settle()
    default: break
    }
  }

  private mutating func performLast(_ operation: Operation) throws {
    let next = operation.applied(to: model.current, now: clock.now())
    model.candidates = next.map { [$0] } ?? []
    let copy = self
    let versions = try cutting(operation.name) { try copy.apply(operation) }
    if let next { model.acknowledge(next, versions, operation, now: clock.now()) }
    model.candidates = []
    switch operation {
    case .sync, .reopen: model.settle()
    default: break
    }
    try checkCuts("after \(operation.name)")
  }

  private func apply(_ operation: Operation) throws -> [[UInt8]: UInt64] {
    guard let store = process.store else { preconditionFailure("no store is open") }
    switch operation {
    case .reopen:
      try store.close()
      process.queue.runAll()
      _ = try process.open(configuration)
    case .runJobs: process.queue.runAll()
    default:
      return try operation.perform(on: store, holding: model.current, now: clock.now())
    }
    return [:]
  }

  // MARK: Cuts

  /// Does something, and checks the cuts at each of its calls.
  private mutating func cutting<Result>(
    _ name: String, _ body: () throws -> Result
  ) throws -> Result {
    var cuts = self
    var failure: (any Error)?
    var hasChanged = true
    let fileSystem = process.fileSystem
    fileSystem.intervene = { call in
      if failure != nil { return nil }
      if call == .mappedWrite { hasChanged = true }
      if hasChanged {
        do { try cuts.checkCuts("at a \(call.rawValue) of \(name)") } catch { failure = error }
      }
      hasChanged = call.changesDisk
      return nil
    }
    let result = try body()
    fileSystem.intervene = nil
    tally = cuts.tally
    choices = cuts.choices
    if let failure { throw failure }
    return result
  }

  /// Checks what a cut at this moment may leave.
  private mutating func checkCuts(_ place: String) throws {
    tally["moments"] += 1
    let limit = freeDecisionCount
    // How many decisions there are may depend on the decisions; the most are taken for all.
    var decisionCount = 0
    for rest in EnumeratedCut.Rest.allCases {
      var cut = EnumeratedCut(free: [], rest: rest)
      _ = process.fileSystem.disk.afterPowerCut(&cut)
      decisionCount = max(decisionCount, cut.decisionCount)
    }
    tally["whole moments"] += decisionCount <= limit ? 1 : 0
    if decisionCount <= limit {
      return try check(EnumeratedCut(free: Array(0..<limit), rest: .oldest), place)
    }
    for rest in EnumeratedCut.Rest.allCases {
      for first in 0...(decisionCount - limit) {
        try check(EnumeratedCut(free: Array(first..<(first + limit)), rest: rest), place)
        // Any two that no window has both of.
        for second in min(first + limit, decisionCount)..<decisionCount {
          try check(EnumeratedCut(free: [first, second], rest: rest), place)
        }
      }
    }
  }

  private mutating func check(_ cut: EnumeratedCut, _ place: String) throws {
    var cut = cut
    repeat {
      let image = process.fileSystem.disk.afterPowerCut(&cut)
      tally["cuts"] += 1
      var check = RecoveryCheck(configuration: configuration, now: clock.now())
      check.depthLimit = 0
      do {
        try check.check(image, legal: model.afterPowerCut, &choices)
      } catch {
        throw FuzzFailure("after a power cut \(place) that left \(cut): \(error)")
      }
    } while cut.advance()
  }
}

extension SimulatedFileSystem.Call {
  /// Whether the disk may hold something else after it, not only less of what it may hold.
  fileprivate var changesDisk: Bool {
    switch self {
    case .makeDirectory, .open, .rename, .exchange, .unlink, .write, .allocate, .truncate,
      .mappedWrite:
      true
    default: false
    }
  }
}
