import CairnStore

/// All faults at all calls of one workload, as numbered cases.
package struct FaultSweep {
  /// One run of the workload.
  package struct Case: Sendable, CustomStringConvertible {
    var workload: Int
    var fault: Fault?
    var ending: FaultRun.Ending
    var room: (step: Int, byteCount: Int)?
    var call: SimulatedFileSystem.Call?

    package var description: String {
      let room = room.map { "full from step \($0.step) on but for \($0.byteCount) bytes" }
      let what = fault.map { "\(call?.rawValue ?? "") \($0)" } ?? room ?? "nothing"
      return "workload \(workload), \(what), the process \(ending)"
    }
  }

  private let workloads: [FaultWorkload]
  package private(set) var cases: [Case] = []
  /// The cases of each call that can fail, of each call of a recovery after a failed sync, and of
  /// each step from which a disk may be full.
  package private(set) var places: [Range<Int>] = []
  /// How many calls of the workloads can fail.
  package private(set) var callCount = 0

  /// The sweep over the scripted workloads, with each way of reading and writing.
  ///
  /// - Parameter failedSyncCount: for how many syncs of each workload to try failures during the
  ///   recovery from a failed sync.
  package static func scripted(failedSyncCount: Int = .max) throws -> FaultSweep {
    var unreserved = [FaultWorkload.scripted(mapsFiles: false), .lists(mapsFiles: false)]
    for index in unreserved.indices {
      unreserved[index].reservesBlocks = false
      unreserved[index].exchanges = false
    }
    return try FaultSweep(
      [.scripted(), unreserved[0], .lists(), unreserved[1], .evictions()],
      failedSyncCount: failedSyncCount)
  }

  package init(_ workloads: [FaultWorkload], failedSyncCount: Int = .max) throws {
    self.workloads = workloads
    for (number, workload) in workloads.enumerated() {
      let run = FaultRun(workload, fault: nil)
      try run.run()
      let calls = run.calls
      callCount += calls.count { $0 != .mappedWrite }
      for (index, faults) in Fault.all(of: calls) {
        add(
          faults.flatMap { fault in
            // A permanent fault still exists at the end, so one ending is enough.
            let endings = fault.extent == .once ? [FaultRun.Ending.dies, .goesOn] : [.goesOn]
            return endings.map {
              Case(workload: number, fault: fault, ending: $0, call: calls[index])
            }
          })
      }
      let syncs = calls.indices.filter { calls[$0] == .synchronizeData }
      for index in syncs.prefix(failedSyncCount) {
        try addSeconds(after: index, workload: number)
      }
      for step in workload.steps.indices {
        let rooms = [0, 4096, 8192, 16 << 10, 32 << 10, 72 << 10, 100 << 10, 160 << 10]
        add(rooms.map { Case(workload: number, ending: .goesOn, room: (step, $0)) })
      }
    }
  }

  /// The cases of one place.
  private mutating func add(_ new: [Case]) {
    places.append(cases.count..<(cases.count + new.count))
    cases += new
  }

  /// A sync that fails, and then a failure in the recovery.
  private mutating func addSeconds(after index: Int, workload: Int) throws {
    let first = Fault(index: index, effect: .error(SystemError.inputOutput), extent: .once)
    let run = FaultRun(workloads[workload], fault: first, ending: .diesAndReopens)
    do { try run.run() } catch {
      throw FuzzFailure("workload \(workload), \(first), and an open: \(error)")
    }
    for faults in Fault.seconds(after: index, calls: run.recoveryCalls) {
      add(
        faults.map {
          Case(workload: workload, fault: $0, ending: .diesAndReopens, call: .synchronizeData)
        })
    }
  }

  /// The case that a seed chooses. Consecutive seeds go from place to place, so as many seeds as
  /// places visit every place.
  package func sampledCase(seed: UInt64) -> Int {
    let place = places[Int(seed % UInt64(places.count))]
    var random = FuzzRandom(seed: seed)
    return place.lowerBound + random.below(place.count)
  }

  package func run(_ number: Int, trace: ((String) -> Void)? = nil) throws -> Tally {
    let one = cases[number]
    let run = FaultRun(
      workloads[one.workload], fault: one.fault, ending: one.ending, seed: UInt64(number),
      trace: trace)
    run.room = one.room
    do { try run.run() } catch { throw FuzzFailure("\(one): \(error)") }
    var tally = run.tally
    tally["runs"] += 1
    return tally
  }

  /// One random workload, with some of the faults that it can meet.
  package static func random(
    seed: UInt64, faultCount: Int = 30, trace: ((String) -> Void)? = nil
  ) throws -> Tally {
    var choices = FuzzRandom(seed: seed)
    let sweep = try FaultSweep([.random(&choices, operationCount: 25)])
    var tally = Tally()
    for _ in 0..<faultCount {
      tally.add(try sweep.run(choices.below(sweep.cases.count), trace: trace))
    }
    return tally
  }
}
