import FuzzSupport

/// Damaged stores: random damage by seed, or with `--all-bits` every bit of small stores, with
/// `--tail` the last 64 KiB of a log cut off, zeroed or filled with garbage from every byte on.
@main
enum DamageFuzzer {
  static func main() throws {
    var fuzzer = Fuzzer(
      name: "DamageFuzzer", iterations: 20_000, options: ["--all-bits", "--tail"])
    var sweep: DamageSweep
    switch fuzzer.arguments {
    case ["--all-bits"]: sweep = try .allBits()
    case ["--tail"]: sweep = try .tails()
    case []:
      let damage = try RandomDamage()
      fuzzer.run { try damage.run(seed: $0) }
    default: Fuzzer.end(with: 2, "DamageFuzzer: one of --all-bits and --tail at a time")
    }
    print(sweep.description)
    fuzzer.enumerate(sweep.caseCount)
    fuzzer.run { try sweep.run(Int($0)) }
  }
}
