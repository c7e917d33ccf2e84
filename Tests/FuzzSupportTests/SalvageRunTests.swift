import FuzzSupport
import Testing

@Suite("The fuzzer of salvage")
struct SalvageRunTests {
  @Test("Random damage finds nothing, and everything is tried")
  func random() throws {
    var tally = Tally()
    for seed in 200..<212 as Range<UInt64> {
      var run = SalvageRun(FuzzRandom(seed: seed))
      try run.run()
      tally.add(run.tally)
    }
    let names = [
      "salvages", "entries", "openable", "unfinished copies", "finished copies",
      "with numbers out of order", "with unlisted segments",
      "without a manifest, beside unlisted segments",
    ]
    for name in names { #expect(tally[name] > 0, "\(name)") }
  }

  /// A kill had cut short the value of a copy that a compaction was making.
  @Test("It asks for no value that never got to the disk")
  func unwrittenValue() throws {
    var run = SalvageRun(FuzzRandom(seed: 5_000_000_777))
    try run.run()
  }

  /// The file before it was lost, and the batch itself is damaged in the middle.
  @Test("A salvage keeps a written batch behind a lost segment")
  func batchBehindLostSegment() throws {
    var run = SalvageRun(FuzzRandom(seed: 79731))
    try run.run()
  }
}
