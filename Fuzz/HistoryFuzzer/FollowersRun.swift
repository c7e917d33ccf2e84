import CairnRepair
import CairnStore
import Foundation
import FuzzSupport

/// Processes that follow a store while another process writes to it. All of them are killed
/// repeatedly.
///
/// Sometimes another store replaces the first one. Then, and only then, each follower is told once
/// that the data it has seen is gone.
final class FollowersRun {
  static let followerCount = 4

  private let path: String
  private let log: FollowedWriterLog
  private var random: FuzzRandom
  private let history: FollowedHistory
  private var writer: Child
  private var followers: [Child] = []
  private var replacement: Int?
  private var tally = Tally()

  static func run(seed: UInt64) throws -> Tally {
    var random = FuzzRandom(seed: seed)
    let directory = try RunDirectory(onDisk: random.once(in: 10))
    let run = try FollowersRun(in: directory.path, random, FollowedHistory(seed: seed))
    defer { run.end() }
    return try run.run()
  }

  private init(in path: String, _ random: FuzzRandom, _ history: FollowedHistory) throws {
    self.path = path
    self.random = random
    self.history = history
    log = try FollowedWriterLog(path: path + "/log")
    try Self.makeStore(at: path + "/store")
    writer = try Self.startWriter(in: path, history, "go")
  }

  private var store: String { path + "/store" }

  private func end() {
    writer.kill()
    for follower in followers { follower.kill() }
  }

  private func run() throws -> Tally {
    for index in 0..<Self.followerCount { followers.append(try startFollower(index)) }
    let eventCount = 6 + random.below(8)
    let replacing = random.once(in: 4) ? random.below(eventCount) : nil
    for number in 0..<eventCount {
      // The shorter waits often end before a process has done much, because starting takes time.
      usleep(UInt32(random.below(random.once(in: 2) ? 80_000 : 400_000)))
      for child in [writer] + followers { try child.checkRuns() }
      if number == replacing {
        try replaceStore()
      } else if random.once(in: 3) {
        let index = random.below(Self.followerCount)
        followers[index].kill()
        followers[index] = try startFollower(index)
        tally["kills of followers"] += 1
      } else {
        writer.kill()
        writer = try startWriter("go")
        tally["kills of writers"] += 1
      }
    }
    usleep(UInt32(random.below(120_000)))
    try finishWriter()
    log.isOver = true
    for follower in followers { try follower.finish() }
    try check()
    return tally
  }

  /// Creates the store in advance, so that the writer announces its writes from the beginning. A
  /// follower that opened the store earlier might see writes late.
  private static func makeStore(at path: String) throws {
    try Store(path: path, configuration: FollowedWorkload.configuration).close()
  }

  private func startWriter(_ mode: String) throws -> Child {
    try Self.startWriter(in: path, history, mode)
  }

  private static func startWriter(
    in path: String, _ history: FollowedHistory, _ mode: String
  ) throws -> Child {
    try Child(["--followed", path + "/store", path, "\(history.seed)", mode])
  }

  private func startFollower(_ index: Int) throws -> Child {
    try Child([
      "--follower", store, path, "\(history.seed)", "\(index)", "\(random.below(1 << 40))",
    ])
  }

  /// Ends the writer, and has the next one record the result of the last operation.
  private func finishWriter() throws {
    writer.kill()
    tally["kills of writers"] += 1
    writer = try startWriter("finish")
    try writer.finish()
  }

  private func replaceStore() throws {
    try finishWriter()
    let number = log.begun + 1
    log[number] = FollowedHistory.Outcome(isApplied: true)
    log.begun = number
    let new = path + "/new"
    try Self.makeStore(at: new)
    try FileManager.default.moveItem(atPath: store, toPath: path + "/old")
    if random.once(in: 2) { usleep(UInt32(random.below(150_000))) }
    try FileManager.default.moveItem(atPath: new, toPath: store)
    log.done = number
    replacement = number
    writer = try startWriter("go")
    tally["replaced stores"] += 1
  }

  private func check() throws {
    var timeline = FollowedTimeline()
    for number in 0..<(log.begun + 1) where number > 0 {
      if number == replacement {
        timeline.empty(by: number)
      } else {
        guard let outcome = log[number] else {
          throw FuzzFailure("the outcome of operation \(number) is unknown")
        }
        if !outcome.isApplied { tally["lost with their process"] += 1 }
        timeline.append(number, of: history, outcome)
      }
    }
    tally["operations"] += log.begun
    let last = try Store(path: store, configuration: FollowedWorkload.configuration)
    let held = try FollowedWriter.held(last, history)
    try last.close()
    for key in held.indices where held[key] != timeline.last(key) {
      throw FuzzFailure(
        "\(FollowedHistory.key(key)) holds \(held[key]) instead of \(timeline.last(key))")
    }
    let errors = try Store.verify(path: store).errors
    guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
    for index in 0..<Self.followerCount {
      let events = try FollowerLog(path: path + "/follower \(index)").events
      var check = FollowedCheck(timeline, replacement: replacement)
      do { try check.check(events) } catch { throw FuzzFailure("follower \(index): \(error)") }
      tally.add(check.tally)
    }
  }
}

/// A process that this one has started.
final class Child {
  private let process = Process()
  private let output = Pipe()

  init(_ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardOutput = output
    try process.run()
  }

  /// Ends the process at once.
  func kill() {
    guard process.isRunning else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  func checkRuns() throws {
    if !process.isRunning { throw FuzzFailure("a process ended by itself: \(text)") }
  }

  /// Waits for the process to end, which it must do with status 0.
  func finish() throws {
    let limit = HistoryLog.now() + 120_000_000_000
    while process.isRunning, HistoryLog.now() < limit { usleep(500) }
    if process.isRunning {
      kill()
      throw FuzzFailure("a process did not end in two minutes: \(process.arguments ?? [])")
    }
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw FuzzFailure("a process ended with \(process.terminationStatus): \(text)")
    }
  }

  private var text: String {
    String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }
}
