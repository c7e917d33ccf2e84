import Foundation
import FuzzSupport

/// A store under churn on the real disk: overwrites and removals by Zipf's law, batches, short
/// lifetimes, a limit on the number of keys, and killed processes. The run writes many times the
/// store's size. Every read is compared with a model. At the end, it counts space, descriptors,
/// mappings and memory.
@main
enum ChurnRun {
  static func main() {
    do {
      let options = try ChurnOptions(Array(CommandLine.arguments.dropFirst()))
      if options.isWorker {
        options.descriptorLimit.map(Resources.limitDescriptors)
        var worker = try Worker(options)
        try worker.run()
      } else {
        try supervise(options)
      }
    } catch {
      print("ChurnRun: FAILED: \(error)")
      exit(1)
    }
  }

  /// Starts one process after another on the same store, and kills all but the last.
  private static func supervise(_ options: ChurnOptions) throws {
    let files = FileManager.default
    let directory = options.directory
    if files.fileExists(atPath: directory + "/store") {
      throw FuzzFailure("there is a store in \(directory) already")
    }
    try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
    print("ChurnRun: seed \(options.seed), in \(directory)")
    fflush(nil)
    let began = Date()
    var random = FuzzRandom(seed: options.seed)
    var killCount = 0
    while true {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
      process.arguments = ["--worker"] + options.words
      try process.run()
      if killCount < options.killCount {
        let seconds = 0.2 + Double(random.below(1000)) / 1000 * options.secondsBetweenKills
        let end = Date(timeIntervalSinceNow: seconds)
        while process.isRunning, Date() < end { usleep(10_000) }
        if process.isRunning {
          kill(process.processIdentifier, SIGKILL)
          killCount += 1
          process.waitUntilExit()
          continue
        }
      }
      process.waitUntilExit()
      guard process.terminationReason == .exit, process.terminationStatus == 0 else {
        throw FuzzFailure(
          "a worker ended with \(process.terminationStatus); the store is in \(directory)")
      }
      break
    }
    try files.removeItem(atPath: directory)
    let seconds = (Date().timeIntervalSince(began) * 10).rounded() / 10
    print("ChurnRun: \(killCount) kills, 0 failures in \(seconds) s")
  }
}

/// The options of a churn run.
struct ChurnOptions {
  var seed = UInt64.random(in: 0..<1 << 48)
  var directory = ""
  var keyCount = 100_000
  /// The limit on the number of keys, or `nil`.
  var countLimit: Int? = 60_000
  /// The total bytes of values to write.
  var byteCount = 400 << 20
  var killCount = 20
  /// The maximum lifetime of a process in seconds, less a fifth of a second.
  var secondsBetweenKills = 2.0
  /// How much longer each sync takes than the disk needs.
  var syncDelay = Duration.zero
  /// How many descriptors each process may have, or `nil`.
  var descriptorLimit: UInt?
  var segmentByteLimit = 4 << 20
  /// Whether a byte of a segment is damaged, or a read fails, once the run has written a quarter.
  var damages = false
  var failsRead = false
  var isWorker = false

  let spaceBound = 1.5
  /// The store preallocates space, and reclaims nothing below a few segments.
  var floorByteCount: Int { 6 * segmentByteLimit }
  var sampleInterval: Int { 20_000 }

  init(_ words: [String]) throws {
    var words = words[...]
    func number<Number: LosslessStringConvertible>(after word: String) throws -> Number {
      guard let text = words.popFirst(), let number = Number(text) else {
        throw FuzzFailure("\(word) needs a number")
      }
      return number
    }
    while let word = words.popFirst() {
      switch word {
      case "--worker": isWorker = true
      case "--damage": damages = true
      case "--read-error": failsRead = true
      case "--seed": seed = try number(after: word)
      case "--keys": keyCount = try number(after: word)
      case "--limit":
        let limit: Int = try number(after: word)
        countLimit = limit > 0 ? limit : nil
      case "--mebibytes": byteCount = try number(after: word) << 20
      case "--kills": killCount = try number(after: word)
      case "--life": secondsBetweenKills = try number(after: word)
      case "--sync": syncDelay = .milliseconds(try number(after: word) as Int)
      case "--descriptors": descriptorLimit = try number(after: word)
      case "--dir":
        guard let path = words.popFirst() else { throw FuzzFailure("--dir needs a path") }
        directory = path
      default:
        throw FuzzFailure(
          """
          what is \(word)?
          ChurnRun [--seed S] [--keys N] [--limit N, 0: none] [--mebibytes N] [--kills N] [--dir DIR]
            [--life SECONDS] [--sync MILLISECONDS] [--descriptors N] [--damage] [--read-error]
          """)
      }
    }
    // After a kill, a damaged head in the part of the log that is read again refuses the store.
    if damages { killCount = 0 }
    guard keyCount > 1, byteCount > 0, killCount >= 0, countLimit ?? 100 >= 100,
      secondsBetweenKills >= 0, syncDelay >= .zero, descriptorLimit ?? 64 >= 16
    else {
      throw FuzzFailure("there is nothing to run with these numbers")
    }
    if directory.isEmpty {
      directory = NSTemporaryDirectory() + "cairn-churn-\(getpid())"
    }
  }

  /// The options as words, for the processes that do the work.
  var words: [String] {
    [
      "--seed", "\(seed)", "--keys", "\(keyCount)", "--limit", "\(countLimit ?? 0)",
      "--mebibytes", "\(byteCount >> 20)", "--kills", "\(killCount)", "--dir", directory,
      "--sync", "\(Int(syncDelay / .milliseconds(1)))",
    ] + (descriptorLimit.map { ["--descriptors", "\($0)"] } ?? [])
      + (damages ? ["--damage"] : []) + (failsRead ? ["--read-error"] : [])
  }
}
