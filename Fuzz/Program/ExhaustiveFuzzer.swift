import FuzzSupport

/// All workloads of two operations on a tiny store, with a power cut and a kill at every call. A
/// cut has six free decisions. With `--three`, all workloads of three operations, and ten free
/// decisions. Iteration `i` is workload `i`.
enum ExhaustiveFuzzer {
  static func run() -> Never {
    var fuzzer = Fuzzer(name: "ExhaustiveFuzzer", iterations: 0, options: ["--three"])
    let isLong = !fuzzer.arguments.isEmpty
    let exhaustive = ExhaustiveRun(
      operationCount: isLong ? 3 : 2, freeDecisionCount: isLong ? 10 : 6)
    fuzzer.enumerate(exhaustive.workloadCount)
    fuzzer.run { try exhaustive.run(Int($0)) }
  }
}
