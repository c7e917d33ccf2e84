import FuzzSupport
import Testing

@Suite("Salvage of random damage")
struct SalvageDamageTests {
  @Test("A copy has what the damaged bytes leave of the history, as an open returns it")
  func random() throws {
    var generator = Seed.generator()
    for _ in 0..<40 {
      var run = SalvageRun(generator.split())
      do { try run.run() } catch { Issue.record("\(error); \(Seed.comment)") }
    }
  }
}
