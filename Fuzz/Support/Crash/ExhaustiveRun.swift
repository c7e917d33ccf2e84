import CairnStore

/// All short workloads on a tiny store, on two disks. The power is cut and the process killed at
/// every call of the last operation. The power is also cut at every call of the recoveries that
/// follow. Within a bound, the search tries everything that such a cut may leave.
///
/// If the last operation syncs the log of a store whose segment is nearly full, another thread may
/// write or remove everything just before each sync, too late to be part of it. Such stores are on
/// only one of the disks.
///
/// The bound of a cut: it decides separately which names, lengths and versions of sectors exist.
/// The free decisions follow each other in the order of `EnumeratedCut` and begin anywhere. The
/// search tries every combination of them, and of any two decisions anywhere. The other decisions
/// are first all as old as possible, then all as new as possible. If a moment has only free
/// decisions, this covers every possible subset.
///
/// The bound after a crash: after a kill, the recovery is cut at every call, as above. After a
/// power cut, the recovery is cut if the first cut left everything as old as possible, as new as
/// possible, or alternating, either first. What these cuts leave is opened, and not cut again. The
/// recoveries of every eighth workload of three operations are cut. The recoveries of the other
/// workloads are only examined.
package struct ExhaustiveRun {
  /// The store at the start of a workload.
  enum Base: CaseIterable {
    /// No store: the workload creates it.
    case nothing
    /// Two keys, closed.
    case closed
    /// Two keys, and a segment so full that the next write rolls.
    case fullSegment
    /// Two keys, and a segment with room only for small writes. A large write rolls the segment
    /// while part of it is not synced.
    case nearlyFullSegment
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
    .put(key: keys[0], entry(1, byteCount: 20, lifetime: .seconds(50)), .process),
    .setLifetime(key: keys[0], .seconds(100), .process),
    .put(key: keys[0], entry(2, byteCount: 20), .durable),
    .put(key: keys[1], entry(3, byteCount: 1200), .process),
    .remove(key: keys[0], .process),
    .remove(key: keys[0], .durable),
    .batch([(keys[0], nil), (keys[1], entry(4, byteCount: 30))], .process),
    .batch([(keys[0], entry(5, byteCount: 30)), (keys[1], entry(6, byteCount: 500))], .durable),
    .compareAndSet(key: keys[1], entry(7, byteCount: 20), isRight: true, .process),
    .removeAll,
    .compact,
    .sync,
    .runJobs,
    .reopen,
  ]

  private static func entry(
    _ number: UInt8, byteCount: Int, lifetime: Duration? = nil
  ) -> ModelEntry {
    var entry = ModelEntry(value: [UInt8](repeating: number, count: byteCount))
    entry.expires = lifetime.map { ManualClock.start.advanced(by: $0) }
    return entry
  }

  /// What another thread does while the last operation syncs the log, if anything.
  private static let meanwhile: [Operation] = [
    .put(key: keys[0], entry(8, byteCount: 20), .process),
    .removeAll,
  ]

  struct Workload {
    var base: Base
    var disk: Disk
    var operations: [Operation]
    var meanwhile: Operation?
    /// Whether the power is cut in the recoveries too.
    var cutsRecoveries = true
  }

  private let freeDecisionCount: Int
  private let workloads: [Workload]
  private let memory = CutSearch.Memory()
  package var workloadCount: Int { workloads.count }

  /// All workloads of up to this many operations.
  package init(operationCount: Int, freeDecisionCount: Int) {
    self.freeDecisionCount = freeDecisionCount
    var sequences: [[Operation]] = [[]]
    var last = sequences
    for _ in 0..<operationCount {
      last = last.flatMap { sequence in Self.operations.map { sequence + [$0] } }
      sequences += last
    }
    workloads = Base.allCases.flatMap { base in
      sequences.flatMap { Self.workloads(base, $0) }
    }
  }

  private static func workloads(_ base: Base, _ operations: [Operation]) -> [Workload] {
    if base != .nearlyFullSegment {
      return Disk.allCases.map { Workload(base: base, disk: $0, operations: operations) }
    }
    let others: [Operation?] = operations.last?.syncs == true ? meanwhile : []
    return ([nil] + others).map {
      Workload(base: base, disk: .usual, operations: operations, meanwhile: $0)
    }
  }

  /// Runs the workload with this number.
  package func run(_ number: Int) throws -> Tally {
    var workload = workloads[number]
    workload.cutsRecoveries = workload.operations.count < 3 || number.isMultiple(of: 8)
    let clock = ManualClock()
    let search = CutSearch(
      .simulated(clock), now: clock.now(), freeDecisionCount: freeDecisionCount, memory: memory)
    do {
      try ExhaustiveWorkload(workload, on: workload.disk.make(), search: search).run()
    } catch {
      let names = workload.operations.map(\.name).joined(separator: ", ")
      let meanwhile = workload.meanwhile.map { ", meanwhile \($0.name)" } ?? ""
      throw FuzzFailure(
        "disk \(workload.disk), base \(workload.base), workload [\(names)\(meanwhile)]: \(error)")
    }
    return search.tally
  }
}

extension Operation {
  /// Whether the operation may sync the log, and another thread may write meanwhile.
  fileprivate var syncs: Bool {
    switch self {
    case .sync, .compact, .runJobs: true
    default: durability == .durable
    }
  }
}
