import CairnStore
import FuzzSupport
import Testing

@Suite("The fuzzer of the format")
struct FormatFuzzTests {
  @Test("A short run finds nothing", arguments: 0..<4 as Range<UInt64>)
  func run(part: UInt64) throws {
    var tally = Tally()
    for seed in (part * 400)..<((part + 1) * 400) {
      tally.add(try FormatFuzz.iteration(seed: seed))
    }
    for name in ["manifest", "segment-header", "record", "segment", "checkpoint"].flatMap({
      ["\($0)s", "\($0)s accepted"]
    }) {
      #expect(tally[name] > 0, "\(name)")
    }
  }

  @Test("The same seed makes the same run")
  func replay() throws {
    for seed in 0..<20 as Range<UInt64> {
      let first = try FormatFuzz.iteration(seed: seed)
      #expect(try FormatFuzz.iteration(seed: seed).description == first.description)
    }
  }

  @Test("Memory beyond the input and the allowance is a failure")
  func memory() throws {
    try FormatFuzz.checkMemory(before: 1 << 20, after: 17 << 20, input: 0)
    #expect(throws: FuzzFailure.self) {
      try FormatFuzz.checkMemory(before: 1 << 20, after: 17 << 20 + 4097, input: 4096)
    }
  }

  @Test("Repair makes any mutated manifest pass its checksum")
  func repairedManifest() {
    var generator = EncodingGenerator(random: FuzzRandom(seed: 1))
    var bytes = generator.manifest().encoding.bytes
    bytes[112] ^= 1
    #expect(ManifestCheck.outcome(of: bytes) == .corrupt(.badChecksum))
    ChecksumRepair.manifest(&bytes, size: true)
    #expect(ManifestCheck.outcome(of: bytes) != .corrupt(.badChecksum))
  }
}
