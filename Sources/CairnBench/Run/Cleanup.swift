import CairnLibC
import Dispatch
import Synchronization

/// What must not outlive the run, however it ends: the worker processes and the directory.
enum Cleanup {
  private struct State: Sendable {
    var processes: Set<pid_t> = []
    var directory: String?
  }

  private static let state = Mutex(State())

  static func add(_ process: pid_t) { state.withLock { _ = $0.processes.insert(process) } }
  static func remove(_ process: pid_t) { state.withLock { _ = $0.processes.remove(process) } }
  static func setDirectory(_ path: String) { state.withLock { $0.directory = path } }

  /// Ends the workers and removes the directory.
  static func perform() { state.withLock { perform(&$0) } }

  private static func perform(_ state: inout State) {
    for process in state.processes {
      kill(process, SIGKILL)
      // Until the worker has ended, it could still create files.
      waitpid(process, nil, 0)
    }
    state.processes = []
    if let directory = state.directory { DirectoryTree.remove(directory) }
    state.directory = nil
  }

  /// Installs handlers that clean up before a signal ends the process.
  static func handleSignals() {
    // A dead worker shows up as a failed write or a missing answer.
    signal(SIGPIPE, SIG_IGN)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        // Keep the lock: a thread that fails because its worker is gone then waits here until the
        // process ends.
        state.withLock { state in
          perform(&state)
          _exit(128 + number)
        }
      }
      source.activate()
      keep(source)
    }
  }

  private static func keep(_ source: any DispatchSourceSignal) {
    // Never released: it lives as long as the process.
    _ = unsafe Unmanaged.passRetained(source as AnyObject)
  }
}
