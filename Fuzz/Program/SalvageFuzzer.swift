import FuzzSupport

/// Random damage to random stores, which are then salvaged and compared with the known history of
/// writes.
enum SalvageFuzzer {
  static func run() -> Never {
    Fuzzer(name: "SalvageFuzzer", iterations: 1000).run { seed in
      var run = SalvageRun(FuzzRandom(seed: seed))
      try run.run()
      return run.tally
    }
  }
}
