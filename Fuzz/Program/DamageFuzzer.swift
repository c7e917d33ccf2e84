import FuzzSupport

/// Damaged stores: random damage by seed; with `--all-bits`, every bit of small stores; with
/// `--tail`, the last 64 KiB of a log cut off, zeroed or filled with garbage from every byte on.
/// With `--sampled`, a sample of these cases, chosen by the seed.
enum DamageFuzzer {
  static func run() throws -> Never {
    var fuzzer = Fuzzer(
      name: "DamageFuzzer", iterations: 20_000, options: ["--all-bits", "--tail", "--sampled"])
    let options = Set(fuzzer.arguments)
    var sweep: DamageSweep
    switch options.subtracting(["--sampled"]) {
    case ["--all-bits"]: sweep = try .allBits()
    case ["--tail"]: sweep = try .tails()
    case [] where options.isEmpty:
      let damage = try RandomDamage()
      fuzzer.run { try damage.run(seed: $0) }
    default: Fuzzer.end(with: 2, "DamageFuzzer: one of --all-bits and --tail at a time")
    }
    print(sweep.description)
    guard options.contains("--sampled") else {
      fuzzer.enumerate(sweep.caseCount)
      fuzzer.run { try sweep.run(Int($0)) }
    }
    let sampleCount = 30_000
    fuzzer.sample(sampleCount)
    fuzzer.run { seed in
      try sweep.run(
        Fuzzer.sampledCase(seed: seed, sampleCount: sampleCount, caseCount: sweep.caseCount))
    }
  }
}
