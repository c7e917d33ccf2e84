import FuzzSupport

/// Bytes that are no store's, or not this one's. With `--metadata`: records that are sound, and no cache's.
enum FormatFuzzer {
  static func run() -> Never {
    let fuzzer = Fuzzer(name: "FormatFuzzer", iterations: 100_000, options: ["--metadata"])
    switch fuzzer.arguments {
    case []: fuzzer.run { try FormatFuzz.iteration(seed: $0) }
    case ["--metadata"]: fuzzer.run { try CacheRecordFuzz.iteration(seed: $0) }
    default: Fuzzer.end(with: 2, "FormatFuzzer: --metadata, once")
    }
  }
}
