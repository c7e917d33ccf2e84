import CairnStore

/// All short workloads on a tiny store, on two disks, with a power cut and a death of the process at
/// every call of their last operation, and with power cuts at every call of the recoveries from
/// these; within a bound, with everything that such a cut may leave.
///
/// The bound of a cut: it decides for itself which names, lengths and versions of sectors are there.
/// So many decisions as are free, which follow each other in the order of `EnumeratedCut` and begin
/// anywhere, are made in every combination, and so are any two, wherever they are; the others are
/// then all as old as can be, and after that all as new. Where a moment has no more decisions than
/// are free, that is every subset there is.
///
/// The bound of what comes after a crash: after a death of the process the recovery is cut at every
/// call, as above. After a power cut it is where that cut left all as old as can be, all as new, or
/// both in turn, beginning with either. What these cuts leave is opened, and not cut again.
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

  enum Disk: CaseIterable {
    case usual
    /// Large sectors, no mapped writes, and manifests renamed instead of exchanged.
    case plain

    fileprivate func make() -> SimulatedDisk {
      if self == .usual { return SimulatedDisk() }
      let disk = SimulatedDisk(sectorByteCount: 4096, reservesBlocks: false)
      disk.exchanges = false
      return disk
    }
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
  private let memory = CutSearch.Memory()
  /// Each workload on each disk.
  package var caseCount: Int { workloads.count * Disk.allCases.count }

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

  /// Runs the case of this number: a workload on one of the disks.
  package func run(_ number: Int) throws -> Tally {
    let (base, operations) = workloads[number / Disk.allCases.count]
    let disk = Disk.allCases[number % Disk.allCases.count]
    let clock = ManualClock()
    let search = CutSearch(
      .simulated(clock), now: clock.now(), freeDecisionCount: freeDecisionCount, memory: memory)
    do {
      let workload = try ExhaustiveWorkload(
        base: base, disk: disk.make(), operations: operations, search: search)
      try workload.run()
    } catch {
      let names = operations.map(\.name).joined(separator: ", ")
      throw FuzzFailure("disk \(disk), base \(base), workload [\(names)]: \(error)")
    }
    return search.tally
  }
}
