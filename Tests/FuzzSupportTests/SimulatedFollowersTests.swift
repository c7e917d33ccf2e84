import FuzzSupport
import Testing

@Suite("Followers of a simulated disk")
struct SimulatedFollowersTests {
  @Test("Followers of random workloads with crashes see nothing wrong")
  func random() throws {
    var tally = Tally()
    for seed in 0..<2 as Range<UInt64> {
      let run = CrashRun(FuzzRandom(seed: seed), cutInterval: 200, isFollowed: true)
      try run.run(operationCount: 20)
      tally.add(run.tally)
    }
    #expect(tally["looks of followers"] > 100 && tally["slow looks"] > 0)
  }
}
