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
      return "workload \(workload), \(what), the process \(ending == .dies ? "dies" : "goes on")"
    }
  }

  private let workloads: [FaultWorkload]
  package private(set) var cases: [Case] = []
  /// How many calls the workloads make that can fail.
  package private(set) var callCount = 0

  /// The sweep over the scripted workload, with each way of reading and writing.
  package static func scripted() throws -> FaultSweep {
    var unreserved = FaultWorkload.scripted(access: .systemCalls)
    unreserved.reservesBlocks = false
    unreserved.exchanges = false
    return try FaultSweep([.scripted(), unreserved])
  }

  package init(_ workloads: [FaultWorkload]) throws {
    self.workloads = workloads
    for (number, workload) in workloads.enumerated() {
      let run = FaultRun(workload, fault: nil)
      try run.run()
      let calls = run.calls
      callCount += calls.count { $0 != .mappedWrite }
      for fault in Fault.all(of: calls) {
        // What lasts is there at the end as well, so that one ending tells enough.
        for ending in FaultRun.Ending.allCases where ending == .goesOn || fault.extent == .once {
          cases.append(
            Case(workload: number, fault: fault, ending: ending, call: calls[fault.index]))
        }
      }
      for step in workload.steps.indices {
        for byteCount in [0, 4096, 8192, 16 << 10, 32 << 10, 72 << 10, 100 << 10, 160 << 10] {
          cases.append(Case(workload: number, ending: .goesOn, room: (step, byteCount)))
        }
      }
    }
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
