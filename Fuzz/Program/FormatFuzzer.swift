import FuzzSupport

/// Bytes that no store wrote, or that another store wrote. With `--metadata`: sound records that no
/// cache wrote.
enum FormatFuzzer {
  static func run() -> Never {
    let fuzzer = Fuzzer(name: "FormatFuzzer", iterations: 100_000, options: ["--metadata"])
    switch fuzzer.arguments {
    case []: fuzzer.run { try FormatFuzz.iteration(seed: $0, measuresMemory: true) }
    case ["--metadata"]: fuzzer.run { try CacheRecordFuzz.iteration(seed: $0) }
    default: Fuzzer.end(with: 2, "FormatFuzzer: --metadata, once")
    }
  }
}
