import CairnLibC

/// Runs a program to its end in another process.
enum ChildRun {
  /// The path of this program.
  static var program: String {
    // SAFETY: `realpath` allocates its result, which is freed here.
    guard let path = unsafe realpath("/proc/self/exe", nil) else { return "cairn-bench" }
    defer { unsafe free(path) }
    return unsafe String(cString: path)
  }

  /// Runs a program, given by its path or its name in `$PATH`, with its output in a file.
  ///
  /// - Returns: whether the program was found.
  /// - Throws: if the program did not end with status 0.
  static func run(_ command: [String], output: String) throws -> Bool {
    // SAFETY: the strings are copied for the call and freed after it; the list ends with null.
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe []
    for argument in command { unsafe arguments.append(strdup(argument)) }
    unsafe arguments.append(nil)
    defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(
      &actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    var process: pid_t = 0
    let error = unsafe posix_spawnp(&process, command[0], &actions, nil, arguments, environ)
    if error == ENOENT { return false }
    guard error == 0 else {
      throw BenchFailure.system(call: "posix_spawn", path: command[0], errorNumber: error)
    }
    Cleanup.add(process)
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    Cleanup.remove(process)
    guard status == 0 else {
      throw BenchFailure.worker(
        "\(command.joined(separator: " ")) failed: \(ProcFile.text(output))")
    }
    return true
  }
}
