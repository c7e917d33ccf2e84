import FuzzSupport

/// Failing calls and full disks: random workloads with some faults each. With `--sweep`, every
/// fault at every call of scripted workloads, also in pairs: a sync that fails, and then a call of
/// the recovery. With `--sampled`, one fault for each call, chosen by the seed. With `--full-disk`,
/// stores that fill a small disk.
enum FaultFuzzer {
  static func run() -> Never {
    var fuzzer = Fuzzer(
      name: "FaultFuzzer", iterations: 200,
      options: ["--sweep", "--sampled", "--full-disk", "--trace"])
    let options = Set(fuzzer.arguments)
    let trace: ((String) -> Void)? = options.contains("--trace") ? { print($0) } : nil
    switch options.subtracting(["--trace"]) {
    case []: fuzzer.run { try FaultSweep.random(seed: $0, trace: trace) }
    case ["--full-disk"]:
      fuzzer.run { seed in
        var run = FullDiskRun(seed: seed, trace: trace)
        try run.run()
        var trims = FullDiskTrimRun(seed: seed, trace: trace)
        try trims.run()
        run.tally.add(trims.tally)
        return run.tally
      }
    case ["--sweep"]:
      let sweep = scripted()
      fuzzer.enumerate(sweep.cases.count)
      fuzzer.run { try sweep.run(Int($0), trace: trace) }
    case ["--sweep", "--sampled"]:
      let sweep = scripted()
      fuzzer.sample(sweep.places.count)
      fuzzer.run { try sweep.run(sweep.sampledCase(seed: $0), trace: trace) }
    default: Fuzzer.end(with: 2, "FaultFuzzer: --sweep [--sampled] or --full-disk")
    }
  }

  private static func scripted() -> FaultSweep {
    do {
      let sweep = try FaultSweep.scripted()
      print("FaultFuzzer: \(sweep.cases.count) cases at \(sweep.callCount) calls")
      return sweep
    } catch { Fuzzer.end(with: 1, "FaultFuzzer: FAILED without a fault: \(error)") }
  }
}
