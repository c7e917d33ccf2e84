import CairnStore
import FuzzSupport
import Testing

/// Cases that random workloads found, each as a separate workload. Each test asserts that the run
/// finds nothing wrong and that it met its case.
@Suite("The fuzzer of faults: cases of random workloads")
struct FaultExpectationTests {
  private func put(_ key: Int, _ byteCount: Int, _ durability: Durability) -> FaultWorkload.Step {
    .operation(.put(key: OperationGenerator.keys[key], entry(byteCount), durability))
  }

  private func entry(_ byteCount: Int) -> ModelEntry {
    var random = FuzzRandom(seed: UInt64(byteCount))
    return ModelEntry(value: random.bytes(count: byteCount))
  }

  /// The calls of a workload without a fault.
  private func calls(_ workload: FaultWorkload) throws -> [SimulatedFileSystem.Call] {
    let run = FaultRun(workload, fault: nil)
    try run.run()
    return run.calls
  }

  /// In the background, the manifest that lists the next segment cannot be cut to its length. From
  /// then on, the store refuses writes and syncs nothing. So data that should be durable within an
  /// interval is not, and no caller knows yet. The fuzzer considered only some kinds of failed
  /// calls, without truncation, and took the loss for a bug of the store. `FaultFuzzer --seed 136`.
  @Test(
    "A store that is poisoned in the background makes nothing more durable",
    arguments: [SystemError.accessDenied, SystemError.tooManyOpenFiles])
  func poisonedInTheBackground(number: Int32) throws {
    let workload = FaultWorkload(steps: [
      put(0, 20, .durable), put(1, 34_000, .process), put(2, 70, .interval(.milliseconds(50))),
      .operation(.remove(key: OperationGenerator.keys[0], .process)),
      .operation(.wait(.milliseconds(100))),
    ])
    let calls = try calls(workload)
    var errors = 0
    for index in calls.indices where [.truncate, .write].contains(calls[index]) {
      let fault = Fault(index: index, effect: .error(number), extent: .once)
      for seed in 0..<8 as Range<UInt64> {
        let run = FaultRun(workload, fault: fault, seed: seed)
        try run.run()
        errors += run.tally["errors"]
      }
    }
    #expect(errors > 0)
  }

  /// The log is written by calls on a disk that reserves nothing, so the tombstones of a trim may
  /// find no room. Those of a whole group found none. Then they found room one by one, and the trim
  /// removed everything that it should. The fuzzer expected an error. `FaultFuzzer --seed 20`.
  @Test("A trim whose tombstones find room one by one has not failed")
  func trimOneByOne() throws {
    var workload = FaultWorkload(
      steps: (0..<8).map { put($0, 100 + $0, .process) } + [.operation(.trim(toCount: 2, .process))]
    )
    workload.mapsFiles = false
    workload.reservesBlocks = false
    let calls = try calls(workload)
    for index in calls.indices where calls[index] == .write {
      for number in [SystemError.noSpace, SystemError.quotaExceeded] {
        for effect in [Fault.Effect.error(number), .halfThenError(number)] {
          let fault = Fault(index: index, effect: effect, extent: .once)
          try FaultRun(workload, fault: fault).run()
        }
      }
    }
  }

  /// Only the record shows that a lifetime has ended. If it cannot be read, a removal treats the
  /// key as present. The fuzzer expected the key to be absent. `FaultFuzzer --seed 723`.
  @Test("A removal of an expired key whose record is unreadable may find it present")
  func removalOfUnreadable() throws {
    var short = entry(40)
    short.expires = ManualClock.start.advanced(by: .seconds(1))
    let key = OperationGenerator.keys[0]
    var workload = FaultWorkload(steps: [
      .operation(.put(key: key, short, .durable)), .operation(.wait(.seconds(2))),
      .operation(.remove(key: key, .durable)), put(1, 50, .durable),
    ])
    workload.mapsFiles = false
    let calls = try calls(workload)
    for index in calls.indices where calls[index] == .read {
      let fault = Fault(index: index, effect: .error(SystemError.inputOutput), extent: .kind)
      try FaultRun(workload, fault: fault).run()
    }
  }
}
