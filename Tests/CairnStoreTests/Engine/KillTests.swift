import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import KillWriter
import Testing

/// A process that writes with several threads and durability classes is killed at random,
/// repeatedly, on the same store. Everything it acknowledged must exist.
@Suite("SIGKILL")
struct KillTests {
  static let threads = 4

  /// The values of each thread's keys.
  typealias State = [String: [UInt8]]

  static func apply(_ operation: Workload.Operation, to state: inout State) {
    for (key, value) in operation.changes { state[key] = value }
  }

  @Test(
    "No acknowledged write is lost over 18 kills in a row",
    arguments: TemporaryDirectory.Medium.allCases)
  func kills(medium: TemporaryDirectory.Medium) throws {
    var generator = Seed.generator("kills \(medium)")
    let directory = try TemporaryDirectory(on: medium)
    var states = [State](repeating: [:], count: Self.threads)
    var acknowledgedCount = 0
    for round in 0..<18 {
      let seed = generator.next() >> 1
      // The kill comes after this many acknowledgements. 0: during the open, or at the first
      // writes.
      let limit = round % 5 == 4 ? 0 : Int.random(in: 1..<400, using: &generator)
      let process = try KillWriterProcess(["write", directory.store, "\(seed)", "\(Self.threads)"])
      // The one place where time itself is random: a kill during the open.
      if limit == 0 { usleep(UInt32.random(in: 0..<30_000, using: &generator)) }
      var bytes: [UInt8] = []
      var isKilled = limit == 0
      if isKilled { process.kill() }
      while case let more = try process.read(), !more.isEmpty {
        bytes += more
        if !isKilled, bytes.count / Acknowledgement.byteCount >= limit {
          process.kill()
          isKilled = true
        }
      }
      let status = try process.wait()
      try #require(status == 128 + SIGKILL, "\(String(decoding: bytes.suffix(300), as: UTF8.self))")
      var last = [Int](repeating: 0, count: Self.threads)
      for start in stride(from: 0, to: bytes.count - 7, by: Acknowledgement.byteCount) {
        let acknowledgement = Acknowledgement(decoding: bytes[start..<(start + 8)])
        #expect(acknowledgement.number == last[acknowledgement.thread] + 1)
        last[acknowledgement.thread] = acknowledgement.number
        acknowledgedCount += 1
      }
      let comment: Comment = "kill \(round), seed \(seed), \(last); \(Seed.comment)"
      // Read the store without changing it. Sometimes, recover it here rather than in the next
      // writer.
      guard FileNames.hasManifest(directory.store) else { continue }
      let recoversHere = round % 3 == 2
      let store = try Store(directory.store, readOnly: !recoversHere)
      let contents = try store.contents()
      for thread in 0..<Self.threads {
        let found = contents.filter { $0.key.hasPrefix(Workload.prefix(ofThread: thread)) }
        let workload = Workload(seed: seed, thread: thread)
        var state = states[thread]
        for number in 0..<last[thread] { Self.apply(workload.operation(number + 1), to: &state) }
        // The write after the last acknowledged one may have happened, but only as a whole.
        var next = state
        Self.apply(workload.operation(last[thread] + 1), to: &next)
        #expect(found == state || found == next, comment)
        states[thread] = found
      }
      #expect(try store.statistics().recovery.damage == [], comment)
      try store.close()
      #expect(try Store.verify(path: directory.store).errors == [], comment)
    }
    #expect(acknowledgedCount > 500)
  }

  enum FileNames {
    static func hasManifest(_ path: String) -> Bool {
      unsafe access(path + "/MANIFEST", F_OK) == 0
    }
  }

  @Test("The store of a killed process is no longer locked")
  func lock() throws {
    let directory = try TemporaryDirectory()
    let process = try KillWriterProcess(["hold", directory.store])
    #expect(try process.read() == Array("open\n".utf8))
    // The error names the process, if the system shows it.
    let hasLocks = unsafe access("/proc/locks", R_OK) == 0
    let opens: [() throws -> Void] = [
      { _ = try Store(directory.store) }, { _ = try Store(directory.store, readOnly: true) },
      { _ = try Store.verify(path: directory.store) },
    ]
    let now = SystemClock().now()
    for open in opens {
      guard case .locked(directory.store, false, let owner, let since) = storeError(open) else {
        Issue.record("it is not locked")
        continue
      }
      #expect(owner == (hasLocks ? process.identifier : nil))
      guard hasLocks else { continue }
      // This test started the process, and the time is accurate to the second.
      let start = try #require(since)
      #expect(start.advanced(by: .seconds(-2)) < now && now < start.advanced(by: .seconds(400)))
      #expect(
        "\(StoreError.locked(path: "s", processID: 7, since: start))"
          == "s: the store is open in process 7, running since \(start)")
    }
    #expect(
      "\(StoreError.locked(path: "s", processID: 7))"
        == "s: the store is open in process 7, or in a child process that outlived it")
    process.kill()
    #expect(try process.wait() == 128 + SIGKILL)
    #expect(try Store(directory.store).text("held") == "held")
  }

  @Test("The store of a process that closed it is no longer locked")
  func unlock() throws {
    let directory = try TemporaryDirectory()
    let process = try KillWriterProcess(["hold", directory.store])
    #expect(try process.read() == Array("open\n".utf8))
    process.closeInput()
    #expect(try process.wait() == 0)
    let store = try Store(directory.store)
    #expect(try store.statistics().recovery.wasClean)
    #expect(try store.text("held") == "held")
  }

  @Test("A forked child that uses its parent's store gets usedAfterFork")
  func fork() throws {
    let directory = try TemporaryDirectory()
    let result = try KillWriterProcess.run("fork", directory.store)
    #expect(result.status == 0, "\(result.output)")
    #expect(try Store(directory.store).text("key") == "after")
  }

  @Test("A child that was forked while a timer waited can open its own store")
  func forkBesideTimer() throws {
    let directory = try TemporaryDirectory()
    let result = try KillWriterProcess.run("fork-beside-timer", directory.store)
    #expect(result.status == 0, "\(result.output)")
  }

  @Test("A forked child inherits no lock of the process, no cache and no shared cache")
  func forkBesideCaches() throws {
    let directory = try TemporaryDirectory()
    let result = try KillWriterProcess.run("fork-beside-caches", directory.store)
    #expect(result.status == 0, "\(result.output)")
  }

  @Test(
    "Signals that interrupt system calls have no effect",
    arguments: TemporaryDirectory.Medium.allCases)
  func signals(medium: TemporaryDirectory.Medium) throws {
    let directory = try TemporaryDirectory(on: medium)
    let result = try KillWriterProcess.run("signals", directory.store)
    #expect(result.status == 0, "\(result.output)")
  }
}
