import CairnLibC
import CairnStore
import FuzzSupport

/// Processes that open one store at the same time. One gets it, and the others get an error. When
/// the owner ends, by itself or by a kill, one of the others gets the store with everything that
/// was written.
enum LockRun {
  static func run(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let directory = try RunDirectory(onDisk: false)
    var tally = Tally()
    var owner = "nobody"
    for _ in 0..<5 {
      let workers = try (0..<2 + random.below(4)).map { _ in
        try Worker("lock", store: directory.store, [])
      }
      let answers = workers.map { $0.line() }
      let winners = answers.indices.filter { answers[$0] != "locked" }
      guard winners.count == 1, let winner = winners.first else {
        throw FuzzFailure("\(winners.count) of \(workers.count) have the store: \(answers)")
      }
      guard answers[winner] == "after \(owner)" else {
        throw FuzzFailure("\(answers[winner]) instead of after \(owner)")
      }
      owner = "\(workers[winner].identifier)"
      let error = try storeError { _ = try Store(path: directory.store) }
      guard case .locked(directory.store, false, _, _) = error else {
        throw FuzzFailure("this process got \(String(describing: error)) beside the owner")
      }
      let isKilled = random.once(in: 2)
      for (number, worker) in workers.enumerated() {
        if number == winner, isKilled { worker.kill() } else { worker.letGo() }
        let status = worker.waitForEnd()
        let expected = number == winner && isKilled ? SIGKILL : 0
        guard status == expected else { throw FuzzFailure("a worker ended with \(status)") }
      }
      tally["owners"] += 1
      tally["refused"] += workers.count - 1
      tally["killed"] += isKilled ? 1 : 0
    }
    try checkFiles(of: directory.store)
    return tally
  }

  /// In the worker: opens the store and, if that succeeds, holds it until standard input ends.
  static func work(store path: String) throws {
    var opened: Store?
    if let error = try storeError({ opened = try Store(path: path) }) {
      guard case .locked(path, false, _, _) = error else { throw error }
      Worker.say("locked")
      return
    }
    guard let store = opened else { return }
    let before = try store.value(forKey: "owner").map { String(decoding: $0, as: UTF8.self) }
    try store.setValue("\(getpid())", forKey: "owner", durability: .process)
    Worker.say("after \(before ?? "nobody")")
    while readLine() != nil {}
    try store.close()
  }
}
