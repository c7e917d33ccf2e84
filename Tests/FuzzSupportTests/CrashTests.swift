import CairnStore
import FuzzSupport
import Testing

@Suite("The fuzzers of crashes")
struct CrashTests {
  /// The command demands that 200 runs try everything.
  @Test("Random workloads with crashes find nothing")
  func random() throws {
    var tally = Tally()
    for seed in 0..<3 as Range<UInt64> {
      let run = CrashRun(FuzzRandom(seed: seed))
      try run.run(operationCount: 20)
      tally.add(run.tally)
    }
    for name in ["cuts", "kills"] { #expect(tally[name] > 0, "\(name)") }
  }

  @Test("The same seed gives the same run")
  func deterministic() throws {
    func tally() throws -> String {
      let run = CrashRun(FuzzRandom(seed: 7))
      try run.run(operationCount: 15)
      return run.tally.description
    }
    #expect(try tally() == tally())
  }

  @Test("Some of all short workloads find nothing")
  func exhaustive() throws {
    let exhaustive = ExhaustiveRun(operationCount: 1, freeDecisionCount: 4)
    #expect(exhaustive.workloadCount > 40)
    var tally = Tally()
    for number in stride(from: 0, to: exhaustive.workloadCount, by: 240) {
      tally.add(try exhaustive.run(number))
    }
    #expect(tally["cuts"] > 0)
  }

  @Test("A state that never existed is noticed, and one that did is not")
  func oracle() throws {
    let clock = ManualClock()
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: 1)
    let store = try process.open(.simulated(clock))
    try store.setValue("1", forKey: "a")
    try store.setValue("2", forKey: "b")
    let (a, b) = (Array("a".utf8), Array("b".utf8))
    func state(_ values: [[UInt8]: String]) -> ModelState {
      values.mapValues { ModelEntry(value: Array($0.utf8)) }
    }
    let contents = try StoreContents(of: store, now: clock.now())
    #expect(contents.match([state([a: "1"]), state([a: "1", b: "2"])]) != nil)
    // Lost, never written, another value, and back from the dead.
    for wrong in [[a: "1", b: "2", [0]: "3"], [a: "1"], [a: "1", b: "3"], [:]] {
      #expect(contents.match([state(wrong)]) == nil)
    }
    process.kill()
  }
}
