import CairnEssentials
import CairnLibC
import FuzzSupport

/// The program `KillWriter`, which is next to the program that runs the tests.
///
/// The program is killed when its time is over, so that a hang is a failure that names the mode.
final class KillWriterProcess {
  /// Longer than any mode takes on a busy machine.
  private static let timeLimit = Duration.seconds(300)

  static let path: String = {
    let running =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    for start in [running, CommandLine.arguments[0]] {
      var url = URL(fileURLWithPath: start)
      while url.path != "/" {
        url.deleteLastPathComponent()
        let candidate = url.appendingPathComponent("KillWriter").path
        if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
      }
    }
    return "KillWriter"
  }()

  private let words: [String]
  let identifier: pid_t
  private let limit = ContinuousClock.now + KillWriterProcess.timeLimit
  private var hasEnded = false
  /// The read end of its standard output.
  private let output: Int32
  /// The write end of its standard input.
  private var input: Int32

  /// Starts the program with its standard streams connected to pipes.
  init(_ arguments: [String]) throws {
    func pipe() throws -> (read: Int32, write: Int32) {
      var ends: [Int32] = [0, 0]
      try check("pipe", unsafe CairnLibC.pipe(&ends))
      for end in ends { try check("fcntl", fcntl(end, F_SETFD, FD_CLOEXEC)) }
      return (ends[0], ends[1])
    }
    let toChild = try pipe()
    let fromChild = try pipe()
    // SAFETY: actions and strings live across the call and are freed once after it.
    var actions = noSpawnActions()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, toChild.read, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, fromChild.write, 1)
    // Swift Testing's threads block most signals, and a child would inherit that.
    var attributes = noSpawnAttributes()
    var none = sigset_t()
    var all = sigset_t()
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    let words = unsafe ([Self.path] + arguments).map { unsafe strdup($0) }
    defer { unsafe words.forEach { unsafe free($0) } }
    var identifier: pid_t = 0
    let failure = unsafe posix_spawn(
      &identifier, Self.path, &actions, &attributes, words + [nil], nil)
    close(toChild.read)
    close(fromChild.write)
    self.words = arguments
    self.identifier = identifier
    hasEnded = failure != 0
    output = fromChild.read
    input = toChild.write
    if failure != 0 { throw SupportError(call: "posix_spawn \(Self.path)", number: failure) }
  }

  deinit {
    if !hasEnded {
      kill()
      _ = waitpid(identifier, nil, 0)
    }
    close(output)
    if input >= 0 { close(input) }
  }

  func kill() { _ = CairnLibC.kill(identifier, SIGKILL) }

  func closeInput() {
    close(input)
    input = -1
  }

  private var overdue: SupportError {
    SupportError(
      call: "KillWriter \(words.joined(separator: " ")): no end after \(Self.timeLimit)", number: 0)
  }

  /// Reads the output so far; empty at the end.
  func read() throws -> [UInt8] {
    var waited = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
    // SAFETY: the structure lives across the call, which fills it.
    while unsafe poll(&waited, 1, 100) <= 0 {
      if ContinuousClock.now > limit { throw overdue }
    }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    // SAFETY: the call writes at most the buffer's size.
    let count = try check("read", unsafe CairnLibC.read(output, &buffer, buffer.count))
    return Array(buffer.prefix(count))
  }

  func readAll() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let bytes = try read()
      if bytes.isEmpty { return all }
      all += bytes
    }
  }

  /// Waits for the end and returns the exit status, or 128 and the number of the signal.
  func wait() throws -> Int32 {
    var status: Int32 = 0
    // SAFETY: the status lives across the call.
    while try check("waitpid", unsafe waitpid(identifier, &status, WNOHANG)) == 0 {
      if ContinuousClock.now > limit { throw overdue }
      usleep(1000)
    }
    hasEnded = true
    let signal = status & 0x7F
    return signal == 0 ? status >> 8 & 0xFF : 128 + signal
  }

  /// Runs the program to its end and returns its status and what it wrote.
  static func run(_ mode: String, _ path: String, _ arguments: Int...) throws -> (
    status: Int32, output: String
  ) {
    let process = try KillWriterProcess([mode, path] + arguments.map { "\($0)" })
    let output = try process.readAll()
    return (try process.wait(), String(decoding: output, as: UTF8.self))
  }
}
