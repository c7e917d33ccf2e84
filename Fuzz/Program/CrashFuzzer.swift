import FuzzSupport

/// Workloads with power cuts and kills at any call, in recoveries too, compared with a model.
enum CrashFuzzer {
  static func run() -> Never {
    let fuzzer = Fuzzer(name: "CrashFuzzer", iterations: 1000, options: ["--trace"])
    let trace: ((String) -> Void)? = fuzzer.arguments.isEmpty ? nil : { print($0) }
    fuzzer.run { seed in
      let run = CrashRun(FuzzRandom(seed: seed), trace: trace)
      try run.run(operationCount: 40)
      return run.tally
    }
  }
}
