import FuzzSupport
import Testing

@Suite("The fuzzer of salvage")
struct SalvageRunTests {
  @Test("Random damage finds nothing, and all is tried")
  func random() throws {
    var tally = Tally()
    for seed in 0..<6 as Range<UInt64> {
      var run = SalvageRun(FuzzRandom(seed: seed))
      try run.run()
      tally.add(run.tally)
    }
    for name in ["salvages", "entries", "openable", "unfinished copies", "finished copies"] {
      #expect(tally[name] > 0, "\(name)")
    }
  }
}
