import FuzzSupport

@main
enum CrashFuzzer {
  static func main() {
    Fuzzer(name: "CrashFuzzer", iterations: 100).run { _ in Tally() }
  }
}
