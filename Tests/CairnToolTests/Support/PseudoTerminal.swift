import CairnLibC

/// A test's own terminal, on which it runs the command.
final class PseudoTerminal {
  private let controller: Int32
  private let path: String

  init(columns: Int) throws {
    controller = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var isLocked: Int32 = 0
    var number: Int32 = 0
    // SAFETY: both calls take a pointer to a number. They are TIOCSPTLCK and TIOCGPTN, which
    // Glibc's module does not expose.
    guard controller >= 0, unsafe ioctl(controller, 0x4004_5431, &isLocked) == 0,
      unsafe ioctl(controller, 0x8004_5430, &number) == 0
    else { throw SupportError(call: "open /dev/ptmx", number: errno) }
    path = "/dev/pts/\(number)"
    var size = winsize(ws_row: 50, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    unsafe _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
    _ = fcntl(controller, F_SETFL, O_NONBLOCK)
  }

  deinit { close(controller) }

  /// Runs the command to its end, with standard input, output and errors on the terminal, and
  /// returns everything that the terminal received.
  func cairn(_ arguments: String...) throws -> String { try run(arguments).text }

  /// Like `cairn`, but also returns the status in the form of `waitpid`.
  ///
  /// - Parameter isEnough: called with what the terminal has received so far. Once it returns true,
  ///   the command is interrupted.
  func run(
    _ arguments: [String], environment: [String] = [],
    interruptedWhen isEnough: (String) -> Bool = { _ in false }
  ) throws -> (text: String, status: Int32) {
    // Without this descriptor, the output would be gone when the last process closes the terminal.
    let user = unsafe open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    defer { close(user) }
    let process = try spawn(
      Command.path, arguments.map { Array($0.utf8) }, environment: environment,
      files: [0, 1, 2].map { (Int32($0), path, O_RDWR | O_NOCTTY) })
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    var isRunning = true
    var status: Int32 = 0
    var isInterrupted = false
    let limit = ContinuousClock.now + .seconds(100)
    while true {
      // SAFETY: the calls write at most the sizes of what they are given.
      let count = unsafe read(controller, &buffer, buffer.count)
      if count > 0 {
        bytes += buffer.prefix(count)
        if !isInterrupted, isEnough(String(decoding: bytes, as: UTF8.self)) {
          isInterrupted = true
          kill(process, SIGINT)
        }
      } else if !isRunning {
        return (String(decoding: bytes, as: UTF8.self), status)
      } else {
        isRunning = unsafe waitpid(process, &status, WNOHANG) == 0
        if ContinuousClock.now > limit { kill(process, SIGKILL) }
        usleep(1000)
      }
    }
  }
}
