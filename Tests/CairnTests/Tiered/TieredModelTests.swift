import FuzzSupport
import Testing

@Suite("Both tiers against a model", .timeLimit(.minutes(30)))
struct TieredModelTests {
  @Test(
    "Any sequence of calls to either tier returns what the model returns, to the millisecond",
    arguments: 0..<20)
  func model(run: Int) throws {
    let tally = try TieredModelRun.run(seed: TestSeed.current &+ UInt64(run))
    #expect(tally["runs"] == 1)
  }

  @Test(
    "Loads with a policy return what the model returns, and call the origin when it says so",
    arguments: 0..<20)
  func loads(run: Int) async throws {
    let tally = try await LoadModelRun.run(seed: TestSeed.current &+ UInt64(run))
    #expect(tally["runs"] == 1)
  }
}
