import FuzzSupport

/// The fuzzers that run in a single process:
///
///     Fuzz NAME [--seed S] [--iterations N] [--seconds T] [options of that fuzzer]
@main
enum Fuzz {
  static func main() throws {
    switch CommandLine.arguments.dropFirst().first {
    case "CrashFuzzer": CrashFuzzer.run()
    case "DamageFuzzer": try DamageFuzzer.run()
    case "ExhaustiveFuzzer": ExhaustiveFuzzer.run()
    case "FaultFuzzer": FaultFuzzer.run()
    case "FormatFuzzer": FormatFuzzer.run()
    case "SalvageFuzzer": SalvageFuzzer.run()
    default:
      Fuzzer.end(
        with: 2,
        "Fuzz NAME …, where NAME is CrashFuzzer, DamageFuzzer, ExhaustiveFuzzer, FaultFuzzer, "
          + "FormatFuzzer or SalvageFuzzer")
    }
  }
}
