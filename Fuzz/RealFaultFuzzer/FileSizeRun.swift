import CairnLibC
import CairnStore
import FuzzSupport

/// A process with a file-size limit (`RLIMIT_FSIZE`): no signal ends it, each refusal is `noSpace`
/// for that limit, and a process without the limit finds every acknowledged write.
enum FileSizeRun {
  /// Both processes derive the plan from the seed.
  struct Plan {
    var byteLimit: Int
    var ignoresSignal: Bool
    var configuration = StoreConfiguration()
    var values: [[UInt8]] = []

    init(seed: UInt64) {
      var random = FuzzRandom(seed: seed)
      byteLimit = (65_536 << random.below(7)) + random.below(65_536)
      ignoresSignal = random.once(in: 2)
      configuration.log = .silent
      configuration.segmentByteLimit = 65_536 << random.below(7)
      if random.once(in: 2) { configuration.durability = .process }
      let mean = random.element(of: [100, 1000, 20_000])
      for _ in 0..<min(1000, 4 * byteLimit / mean) {
        values.append(random.bytes(count: 1 + random.below(2 * mean)))
      }
    }
  }

  static func run(seed: UInt64) throws -> Tally {
    let directory = try RunDirectory(onDisk: false)
    let plan = Plan(seed: seed)
    var tally = Tally()
    let worker = try Worker("file-size", store: directory.store, ["\(seed)"])
    let status = worker.waitForEnd()
    let lines = worker.lines()
    guard status == 0 else { throw FuzzFailure("the worker ended with \(status): \(lines)") }
    let written = Set(lines.compactMap(Int.init))
    tally["writes"] += written.count
    tally["refusals"] += lines.count - written.count

    let store = try Store(path: directory.store, configuration: plan.configuration)
    var values: [Int: [UInt8]] = [:]
    for number in written { values[number] = plan.values[number] }
    try check(store, holds: values) { "\($0)" }
    for (number, value) in plan.values.enumerated() {
      try store.setValue(value, forKey: "\(number)")
      values[number] = value
    }
    try check(store, holds: values) { "\($0)" }
    try store.close()
    try checkFiles(of: directory.store)
    return tally
  }

  /// In the worker: writes everything. Prints the number of each accepted write, and a dash for
  /// each refusal.
  static func work(store path: String, seed: UInt64) throws {
    let plan = Plan(seed: seed)
    if plan.ignoresSignal { signal(SIGXFSZ, SIG_IGN) }
    var limit = rlimit(rlim_cur: rlim_t(plan.byteLimit), rlim_max: .max)
    // SAFETY: the structure lives across the call.
    guard unsafe setrlimit(resourceNumber(RLIMIT_FSIZE), &limit) == 0 else {
      throw FuzzFailure("setrlimit: \(errno)")
    }
    func isRefusal(_ body: () throws -> Void) throws -> Bool {
      guard let error = try storeError(body) else { return false }
      guard case .noSpace(_, _, .fileSize) = error else { throw error }
      return true
    }
    var opened: Store?
    let isRefused = try isRefusal {
      opened = try Store(path: path, configuration: plan.configuration)
    }
    guard !isRefused, let store = opened else { return Worker.say("-") }
    for (number, value) in plan.values.enumerated() {
      let isRefused = try isRefusal { try store.setValue(value, forKey: "\(number)") }
      Worker.say(isRefused ? "-" : "\(number)")
    }
    if try isRefusal({ try store.close() }) { Worker.say("-") }
  }
}
