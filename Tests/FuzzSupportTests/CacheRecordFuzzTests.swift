import FuzzSupport
import Testing

@Suite("The fuzzer of records that caches find")
struct CacheRecordFuzzTests {
  @Test("A short run finds nothing, and meets every outcome", arguments: 0..<4 as Range<UInt64>)
  func run(part: UInt64) throws {
    var tally = Tally()
    for seed in (part * 100)..<((part + 1) * 100) {
      tally.add(try CacheRecordFuzz.iteration(seed: seed))
    }
    for outcome in ["read", "undecodable", "changed", "other"] {
      #expect(tally["records \(outcome)"] > 3, "\(outcome)")
    }
  }

  @Test("Any bytes are an input, and an input is decoded as it was encoded")
  func inputs() throws {
    for bytes in [[], [0x77], [0x03, 1, 255, 255, 1, 2], [UInt8](repeating: 0xFF, count: 40)] {
      try CacheRecordCheck.check(bytes)
    }
    let bytes: [UInt8] = [0x21, 1, 2, 3, 9, 8, 7, 6, 5, 4, 3]
    #expect(CacheRecordInput(bytes).encoded == bytes)
  }
}
