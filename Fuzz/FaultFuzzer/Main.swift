import FuzzSupport

/// Calls that fail, disks that are full: random workloads with some faults each, or with `--sweep`
/// every fault at every call of a scripted workload.
@main
enum FaultFuzzer {
  static func main() throws {
    var fuzzer = Fuzzer(name: "FaultFuzzer", iterations: 200, options: ["--sweep", "--trace"])
    let trace: ((String) -> Void)? = fuzzer.arguments.contains("--trace") ? { print($0) } : nil
    guard fuzzer.arguments.contains("--sweep") else {
      fuzzer.run { try FaultSweep.random(seed: $0, trace: trace) }
    }
    let sweep = try FaultSweep.scripted()
    print("FaultFuzzer: \(sweep.cases.count) cases at \(sweep.callCount) calls")
    fuzzer.enumerate(sweep.cases.count)
    fuzzer.run { try sweep.run(Int($0), trace: trace) }
  }
}
