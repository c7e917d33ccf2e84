import FuzzSupport

/// Workloads with power cuts and kills at any call, even during recovery, compared with a model.
/// With `--followers`, other processes follow the store and read it at each call.
enum CrashFuzzer {
  static func run() -> Never {
    let fuzzer = Fuzzer(
      name: "CrashFuzzer", iterations: 1000, options: ["--followers", "--trace"])
    let trace: ((String) -> Void)? = fuzzer.arguments.contains("--trace") ? { print($0) } : nil
    let isFollowed = fuzzer.arguments.contains("--followers")
    let rare = [
      "cuts", "kills", "nested cuts", "nested kills", "failed syncs", "kills in a recovery",
      "cuts in a recovery from a kill", "writes meanwhile", "checkpoints meanwhile", "snapshots",
      "backups",
    ]
    fuzzer.run(trying: isFollowed ? [] : rare) { seed in
      // Fewer cuts if the run tests what followers see.
      let run = CrashRun(
        FuzzRandom(seed: seed), cutInterval: isFollowed ? 40 : 6, isFollowed: isFollowed,
        trace: trace)
      try run.run(operationCount: 40)
      return run.tally
    }
  }
}
