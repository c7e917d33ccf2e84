import FuzzSupport

@main
enum FormatFuzzer {
  static func main() {
    Fuzzer(name: "FormatFuzzer", iterations: 100_000).run { try FormatFuzz.iteration(seed: $0) }
  }
}
