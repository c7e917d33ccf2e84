import CairnLibC

/// A test's own terminal, on which it runs the command.
final class PseudoTerminal {
  private let controller: Int32
  private let path: String

  init(columns: Int) throws {
    var ends: (controller: Int32, user: Int32) = (-1, -1)
    var name = [CChar](repeating: 0, count: 1024)
    var size = winsize(ws_row: 50, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    // SAFETY: all of these live across the call, and no name is longer.
    guard unsafe openpty(&ends.controller, &ends.user, &name, nil, &size) == 0 else {
      throw SupportError(call: "openpty", number: errno)
    }
    close(ends.user)
    controller = ends.controller
    path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    _ = fcntl(controller, F_SETFD, FD_CLOEXEC)
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
