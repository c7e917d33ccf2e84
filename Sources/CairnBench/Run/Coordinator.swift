import CairnLibC
import CommandText

/// Runs a plan, with a worker process for each store of a section. In each round of each row, the
/// stores take turns, so that disturbances of the machine affect all of them.
struct Coordinator {
  let plan: Plan
  let seed: UInt64
  let directory: String
  var progress = ProgressLine()

  private let begin = monotonicNanoseconds()

  /// Runs a section and returns its results, ordered by workload, then by store.
  mutating func run(_ section: Plan.Section) throws -> [BenchResult] {
    var stores = try section.stores.map { try StoreRun(kind: $0, worker: startWorker($0, section)) }
    var results: [BenchResult] = []
    for workload in Workload.runOrder where section.workloads.contains(workload) {
      for index in stores.indices { stores[index].beginRow() }
      for round in 0..<section.roundCount(of: workload) where round == 0 || mayRepeat {
        // Every other round runs in reverse: no store always follows the same neighbour.
        let order = round.isMultiple(of: 2) ? Array(stores.indices) : stores.indices.reversed()
        for index in order
        where !stores[index].isRowDone && section.includes(workload, of: stores[index].kind) {
          progress.show("\(section.title): \(workload.rawValue), \(stores[index].kind.rawValue) …")
          try runRound(workload, round, section, &stores[index])
        }
      }
      for store in stores where !store.rounds.isEmpty {
        if workload.changesMain { _ = try store.worker.ask(.check(workload)) }
        results.append(
          BenchResult(store: store.kind, workload: workload, section, rounds: store.rounds))
      }
    }
    progress.clear()
    for store in stores { try store.worker.finish() }
    for store in stores { DirectoryTree.remove(store.worker.configuration.directory) }
    let order = Workload.allCases
    return results.enumerated().sorted { left, right in
      let leftRank = order.firstIndex(of: left.element.workload) ?? 0
      let rightRank = order.firstIndex(of: right.element.workload) ?? 0
      return (leftRank, left.offset) < (rightRank, right.offset)
    }.map(\.element)
  }

  private var mayRepeat: Bool {
    guard let limit = plan.repeatingSeconds else { return true }
    return Double(monotonicNanoseconds() - begin) < limit * 1e9
  }

  private func runRound(
    _ workload: Workload, _ round: Int, _ section: Plan.Section, _ store: inout StoreRun
  ) throws {
    let begin = monotonicNanoseconds()
    if workload.needsFilledStore {
      // A store that was opened after a kill is killed again only after new writes.
      let refills = workload == .openKilled && round > 0
      _ = try store.worker.ask(refills ? .refill : .prepare)
    }
    if workload == .openKilled {
      _ = try store.worker.ask(.rewrite)
      store.worker.kill()
      store.worker = try WorkerProcess(store.worker.configuration)
    }
    let limit = workload.millisecondLimit(section) ?? 3_600_000
    guard
      let result = try store.worker.ask(.run(workload, round: round, milliseconds: limit))
    else { throw BenchFailure.worker("no result for \(workload.rawValue)") }
    // Every kill may lose data, so check after each one; other rows are checked at their end.
    if workload == .openKilled { _ = try store.worker.ask(.check(workload)) }
    store.rounds.append(result)
    let seconds = Double(monotonicNanoseconds() - begin) / 1e9
    if workload == .fill { store.fillSeconds = seconds }
    let cost = workload.refillsEveryRound ? max(seconds, store.fillSeconds) : seconds
    if cost > plan.repeatableSeconds { store.isRowDone = true }
  }

  private func startWorker(_ kind: StoreKind, _ section: Plan.Section) throws -> WorkerProcess {
    let path = "\(directory)/\(kind.rawValue)-\(section.valueByteCount)-\(section.keyCount)"
    // SAFETY: the path is passed as a string that outlives the call.
    if unsafe mkdir(path, 0o700) != 0 { throw BenchFailure.lastSystemError("mkdir", path) }
    return try WorkerProcess(
      WorkerConfiguration(
        store: kind, directory: path, keyCount: section.keyCount,
        valueByteCount: section.valueByteCount, areImages: section.areImages, seed: seed,
        settles: section.roundCount > 1, threadCount: section.threadCount,
        // Three seconds at 200 ms a round: a shorter round would often include no sync.
        leastMilliseconds: kind.isSyncedEachSecond ? 15 * section.milliseconds : 0))
  }
}

/// The state of a store during a section.
private struct StoreRun {
  let kind: StoreKind
  var worker: WorkerProcess
  /// The rounds of the current row.
  var rounds: [RoundResult] = []
  var isRowDone = false
  var fillSeconds = 0.0

  init(kind: StoreKind, worker: WorkerProcess) {
    self.kind = kind
    self.worker = worker
  }

  mutating func beginRow() {
    rounds = []
    isRowDone = false
  }
}
