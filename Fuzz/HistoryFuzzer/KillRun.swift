import CairnRepair
import CairnStore
import Foundation
import FuzzSupport

/// One store, used by the threads of a process that is killed repeatedly.
enum KillRun {
  private static let threadCount = 3
  private static let keyCount = 3

  static func run(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let directory = try RunDirectory(onDisk: random.once(in: 10))
    let logPath = directory.path + "/log"
    let log = try HistoryLog(
      path: logPath, threadCount: threadCount, capacity: HistoryLog.usualCapacity)
    var check = HistoryCheck(keyCount: keyCount)
    var killCount = 0
    for round in 0..<UInt64(10) {
      log.clear()
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
      process.arguments = ["--worker", directory.store, logPath, "\(random.next())", "\(round)"]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      // Sometimes the kill comes while the process opens the store.
      let isEarly = random.once(in: 6)
      let limit = HistoryLog.now() + 5_000_000_000
      while !isEarly, process.isRunning, !log.hasBegun, HistoryLog.now() < limit { usleep(100) }
      usleep(UInt32(random.below(isEarly ? 20_000 : 6_000)))
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      guard process.terminationReason == .uncaughtSignal else {
        let text = String(
          decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        throw FuzzFailure("the worker ended by itself: \(text)")
      }
      killCount += 1
      // If the process died before it had created the store, nothing was written.
      guard FileManager.default.fileExists(atPath: directory.store + "/MANIFEST") else { continue }
      let configuration = StoreSubject.configuration
      // Sometimes the next writer recovers the store.
      let store =
        random.once(in: 2)
        ? try Store(readingAt: directory.store, configuration: configuration)
        : try Store(path: directory.store, configuration: configuration)
      try check.check(log) { try store.state($0) }
      try store.close()
      let errors = try Store.verify(path: directory.store).errors
      guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
    }
    var tally = check.tally
    tally["kills"] += killCount
    return tally
  }

  /// The process that is killed.
  static func work(store path: String, log logPath: String, _ seed: String, _ round: String)
    -> Never
  {
    do {
      let log = try HistoryLog(
        path: logPath, threadCount: threadCount, capacity: HistoryLog.usualCapacity)
      let hasLargeBatches = (UInt64(seed) ?? 0).isMultiple(of: 2)
      let store = try Store(
        path: path,
        configuration: hasLargeBatches
          ? StoreSubject.configurationOfLargeBatches : StoreSubject.configuration)
      let plan = HistoryPlan(
        seed: UInt64(seed) ?? 0, threadCount: threadCount, keyCount: keyCount, callCount: 40,
        firstValue: (UInt64(round) ?? 0) << 32, clockStands: false)
      try HistoryWorker(
        StoreSubject(store, hasLargeBatches: hasLargeBatches), plan, log
      ).run()
      // Waits to be killed.
      while true { sleep(1) }
    } catch {
      print("\(error)")
      exit(1)
    }
  }
}
