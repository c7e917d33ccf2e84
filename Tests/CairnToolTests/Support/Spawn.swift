import CairnLibC
import FuzzSupport

/// Starts a program with no environment but the given variables. Its arguments are bytes; `files`
/// are its open files.
func spawn(
  _ executable: String, _ arguments: [[UInt8]], environment: [String] = [],
  files: [(number: Int32, path: String, flags: Int32)] = []
) throws -> pid_t {
  // SAFETY: the actions and the strings live across the call and are freed once after it.
  var actions = noSpawnActions()
  unsafe posix_spawn_file_actions_init(&actions)
  defer { unsafe posix_spawn_file_actions_destroy(&actions) }
  for file in files {
    unsafe posix_spawn_file_actions_addopen(&actions, file.number, file.path, file.flags, 0o600)
  }
  let words = unsafe ([Array(executable.utf8)] + arguments).map { word in
    unsafe strdup(word.map { CChar(bitPattern: $0) } + [0])
  }
  defer { unsafe words.forEach { unsafe free($0) } }
  let variables = unsafe environment.map { unsafe strdup($0) }
  defer { unsafe variables.forEach { unsafe free($0) } }
  // Swift Testing's threads block most signals, and a child would inherit that.
  var attributes = noSpawnAttributes()
  var none = sigset_t()
  unsafe sigemptyset(&none)
  unsafe posix_spawnattr_init(&attributes)
  defer { unsafe posix_spawnattr_destroy(&attributes) }
  unsafe posix_spawnattr_setsigmask(&attributes, &none)
  unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
  var identifier: pid_t = 0
  let failure = unsafe posix_spawn(
    &identifier, executable, &actions, &attributes, words + [nil],
    variables + [nil])
  guard failure == 0 else { throw SupportError(call: "posix_spawn \(executable)", number: failure) }
  return identifier
}

/// Waits for the end of a program and returns its status in the form of `waitpid`. A program that
/// takes longer than any should is killed, and its status shows this.
func waitForEnd(of identifier: pid_t) throws -> Int32 {
  var status: Int32 = 0
  // SAFETY: the status lives across the call.
  let limit = ContinuousClock.now + .seconds(100)
  var isKilled = false
  while true {
    let ended = unsafe waitpid(identifier, &status, WNOHANG)
    if ended > 0 { return status }
    if ended < 0, errno != EINTR { throw SupportError(call: "waitpid", number: errno) }
    if !isKilled, ContinuousClock.now > limit {
      _ = kill(identifier, SIGKILL)
      isKilled = true
    }
    usleep(1000)
  }
}
