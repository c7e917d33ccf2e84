import CairnLibC
import FoundationEssentials

/// A worker from the coordinator's side: a child process running the same program, connected by two
/// pipes.
final class WorkerProcess {
  let configuration: WorkerConfiguration
  private var process: pid_t = 0
  private var requests: LineChannel
  private var replies: LineChannel

  init(_ configuration: WorkerConfiguration) throws {
    self.configuration = configuration
    let toChild = try Self.makePipe()
    let fromChild = try Self.makePipe()
    defer {
      close(toChild.reading)
      close(fromChild.writing)
    }
    requests = LineChannel(descriptor: toChild.writing)
    replies = LineChannel(descriptor: fromChild.reading)
    process = try Self.spawn(configuration, input: toChild.reading, output: fromChild.writing)
    Cleanup.add(process)
  }

  deinit { kill() }

  func ask(_ request: WorkerRequest) throws -> RoundResult? {
    // If the worker is dead, the missing reply shows this.
    try? requests.send(request)
    guard let reply = try replies.receive(WorkerReply.self) else {
      throw BenchFailure.worker(
        "the process of \(configuration.store.rawValue) ended during \(request) (\(end()))")
    }
    if let failure = reply.failure { throw BenchFailure.worker(failure) }
    return reply.round
  }

  /// Ends the worker with SIGKILL. The store's files stay as they are.
  func kill() {
    guard process > 0 else { return }
    CairnLibC.kill(process, SIGKILL)
    _ = end()
  }

  /// Lets the worker close its store, and waits for the worker to end.
  func finish() throws {
    guard process > 0 else { return }
    close(requests.descriptor)
    requests = LineChannel(descriptor: -1)
    let status = end()
    guard status == "exit status 0" else {
      throw BenchFailure.worker(
        "the process of \(configuration.store.rawValue) failed at its end (\(status))")
    }
  }

  /// Waits for the process and returns how it ended.
  private func end() -> String {
    var status: Int32 = 0
    // SAFETY: the call fills the status.
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    Cleanup.remove(process)
    process = 0
    if requests.descriptor >= 0 { close(requests.descriptor) }
    close(replies.descriptor)
    let signal = status & 0x7F
    return signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)"
  }

  /// `exec` closes both ends, so that no worker keeps another worker's pipes open.
  private static func makePipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    // SAFETY: the call fills the two elements.
    guard unsafe pipe(&ends) == 0 else { throw BenchFailure.lastSystemError("pipe", "") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func spawn(
    _ configuration: WorkerConfiguration, input: Int32, output: Int32
  ) throws -> pid_t {
    let json = String(decoding: try JSONEncoder().encode(configuration), as: UTF8.self)
    let program = "/proc/self/exe"
    // SAFETY: the strings are copied for the call and freed after it; the list ends with null.
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe []
    for argument in ["cairn-bench", WorkerMain.argument, json] {
      unsafe arguments.append(strdup(argument))
    }
    unsafe arguments.append(nil)
    defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    var process: pid_t = 0
    let error = unsafe posix_spawn(&process, program, &actions, nil, arguments, environ)
    guard error == 0 else {
      throw BenchFailure.system(call: "posix_spawn", path: program, errorNumber: error)
    }
    return process
  }
}
