import FuzzSupport

/// Bytes that are not a store's, or not this store's. With `--metadata`: sound records that are not
/// a cache's.
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
