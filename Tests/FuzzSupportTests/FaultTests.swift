import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("The fuzzer of faults")
struct FaultTests {
  @Test("A sample of faults at calls throughout the scripted workloads finds nothing")
  func sweep() throws {
    let sweep = try FaultSweep.scripted(failedSyncCount: 1)
    #expect(sweep.callCount > 1000)
    #expect(sweep.cases.count > 20 * sweep.callCount)
    var tally = Tally()
    let sampleCount = 12
    for seed in 0..<UInt64(sampleCount) {
      // Places throughout the sweep.
      let place = seed * UInt64(sweep.places.count) / UInt64(sampleCount)
      tally.add(try sweep.run(sweep.sampledCase(seed: place)))
    }
    #expect(tally["runs"] == sampleCount)
    for name in ["errors", "recoveries", "salvages", "snapshots", "backups"] {
      #expect(tally[name] > 0, "\(name)")
    }
  }

  /// A checkpoint kept counting the bytes of such a record as live, and the fuzzer blamed the next
  /// open. `FaultFuzzer --sweep --sampled --seed 3807`.
  @Test("Unreadable records that are overwritten")
  func unreadableRecords() throws {
    let workload = FaultWorkload.scripted(mapsFiles: false)
    let plain = FaultRun(workload, fault: nil)
    try plain.run()
    let reads = plain.calls.indices.filter { plain.calls[$0] == .read }
    // The first few are those of the first writes to an existing key.
    for index in reads.prefix(5) {
      let fault = Fault(index: index, effect: .error(SystemError.interrupted), extent: .kind)
      try FaultRun(workload, fault: fault).run()
    }
  }

  /// An open on a full disk forgot a file that it had failed to unlink, so the next one set the
  /// file aside. `FaultFuzzer --sweep --sampled --seed 2743`.
  @Test("A file that cannot be unlinked on a full disk")
  func unlinkOnFullDisk() throws {
    let sweep = try FaultSweep.scripted(failedSyncCount: 1)
    #expect(try sweep.run(sweep.sampledCase(seed: 2743))["runs"] == 1)
  }

  @Test("Random workloads with faults find nothing")
  func random() throws {
    var tally = Tally()
    for seed in 0..<2 as Range<UInt64> {
      tally.add(try FaultSweep.random(seed: seed, faultCount: 6))
    }
    #expect(tally["errors"] > 0)
    #expect(tally["recoveries"] > 12)
  }

  @Test("Stores that fill a small disk can be trimmed")
  func fullDiskTrims() throws {
    var tally = Tally()
    for seed in 0..<6 as Range<UInt64> {
      var run = FullDiskTrimRun(seed: seed)
      try run.run()
      tally.add(run.tally)
    }
    #expect(tally["opened while full"] > 0)
    #expect(tally["trims"] > 6)
  }

  @Test("Stores that fill a small disk")
  func fullDisk() throws {
    var tally = Tally()
    for seed in 0..<10 as Range<UInt64> {
      var run = FullDiskRun(seed: seed)
      try run.run()
      tally.add(run.tally)
    }
    for name in ["refusals", "disks filled", "opened while full", "removals of all", "recoveries"] {
      #expect(tally[name] > 0, "\(name)")
    }
  }

  @Test("A sample of a sweep visits every call")
  func sampledPlaces() throws {
    let sweep = try FaultSweep.scripted(failedSyncCount: 1)
    #expect(sweep.places.count > sweep.callCount)
    #expect(sweep.places.first?.lowerBound == 0)
    #expect(sweep.places.last?.upperBound == sweep.cases.count)
    #expect(
      zip(sweep.places, sweep.places.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
    var visits = [Int](repeating: 0, count: sweep.places.count)
    for seed in 5..<(5 + 2 * UInt64(sweep.places.count)) {
      let place = Int(seed % UInt64(sweep.places.count))
      #expect(sweep.places[place].contains(sweep.sampledCase(seed: seed)))
      visits[place] += 1
    }
    #expect(visits.allSatisfy { $0 == 2 })
  }

  @Test("An error with a wrong number or path is noticed, and so is a silent one")
  func wrongErrors() throws {
    let fault = Fault(index: 0, effect: .error(SystemError.inputOutput), extent: .once)
    let run = FaultRun(.scripted(), fault: fault)
    // The run's first call, which creates the directory, fails.
    try run.run()
    let path = SimulatedProcess.path
    let noSpace = SystemError.noSpace
    func failure(_ number: Int32, _ path: String) -> SystemFailure {
      SystemFailure(call: "mkdir", path: path, errorNumber: number, reason: "")
    }
    run.injector.forgetFailures()
    try run.judge(.system(failure(SystemError.inputOutput, path)), since: 0, wasPoisoned: false)
    let wrong: [StoreError] = [
      .system(failure(SystemError.noMemory, path)), .system(failure(noSpace, path)),
      .system(failure(SystemError.inputOutput, "/")),
      .system(failure(SystemError.inputOutput, "\(path)/LOCK")),
      .noSpace(path: path, neededByteCount: 1, limit: .disk),
      .poisoned(cause: failure(SystemError.inputOutput, path)),
    ]
    for error in wrong {
      #expect(throws: FuzzFailure.self, "\(error)") {
        try run.judge(error, since: 0, wasPoisoned: false)
      }
    }
    #expect(throws: FuzzFailure.self) { try run.checkHidden(since: 0) }
    #expect(throws: FuzzFailure.self) {
      try run.checkVerified(CheckReport(), since: 0)
    }
  }

  @Test("A sample has one case of each part, whatever the seed")
  func samples() {
    for first in [0, 12_345] as [UInt64] {
      var parts: Set<Int> = []
      for seed in first..<(first + 100) {
        let number = Fuzzer.sampledCase(seed: seed, sampleCount: 100, caseCount: 1000)
        parts.insert(number / 10)
      }
      #expect(parts.count == 100)
    }
  }

  @Test("Damage that no fault explains is noticed", arguments: [0, 1])
  func tamperedDisk(what: Int) throws {
    let run = FaultRun(.scripted(), fault: nil)
    run.tamper = { disk in
      let path = SimulatedProcess.path
      switch what {
      case 0:
        // An acknowledged write is missing.
        let name = disk.names(at: path).last { $0.hasPrefix("seg-") } ?? ""
        if let bytes = disk.contents(of: "\(path)/\(name)") {
          disk.setContents(Array(bytes.prefix(256)), of: "\(path)/\(name)")
        }
      default:
        for name in disk.names(at: path) { disk.setContents(nil, of: "\(path)/\(name)") }
      }
    }
    #expect(throws: FuzzFailure.self) { try run.run() }
  }
}
