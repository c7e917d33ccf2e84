import FuzzSupport
import Testing

@Suite("Both tiers against a model", .timeLimit(.minutes(10)))
struct TieredModelTests {
  @Test(
    "Any sequence of calls to either tier gives what the model gives, to the millisecond",
    arguments: 0..<20)
  func model(run: Int) throws {
    let tally = try TieredModelRun.run(seed: TestSeed.current &+ UInt64(run))
    #expect(tally["runs"] == 1)
  }

  @Test(
    "Values loaded with a policy are returned as the model says, and the origin is asked as it says",
    arguments: 0..<20)
  func loads(run: Int) async throws {
    let tally = try await LoadModelRun.run(seed: TestSeed.current &+ UInt64(run))
    #expect(tally["runs"] == 1)
  }
}
