package import CairnStore

/// Tells caches that memory is short. One thread serves all caches in a process. It starts when the
/// first cache is added.
///
/// Caches respond one after the other on that thread. Reports that arrive in the meantime are
/// neither lost nor delivered twice: the kernel reports at most once in a window of two seconds.
/// The caches are held weakly.
package final class PressureMonitor: Sendable {
  private struct Weak: Sendable {
    weak var responder: (any PressureResponder)?
  }

  private struct State {
    var responders: [Weak] = []
    /// Prune dead weak references once there are this many.
    var sweepCount = 8
    var isStarted = false
  }

  /// The process-wide monitor, which listens to the kernel.
  package static var shared: PressureMonitor { ofProcess.object }
  private static let ofProcess = PerProcess {
    PressureMonitor(source: SystemPressureSource(), queue: ThreadBackgroundQueue())
  }

  private let state = Lock(State())
  private let source: any PressureSource
  private let queue: any BackgroundQueue

  package init(source: any PressureSource, queue: any BackgroundQueue) {
    self.source = source
    self.queue = queue
  }

  package func add(_ responder: any PressureResponder) {
    let starts = state.withLock { state in
      if state.responders.count >= state.sweepCount {
        state.responders.removeAll { $0.responder == nil }
        state.sweepCount = max(8, 2 * state.responders.count)
      }
      state.responders.append(Weak(responder: responder))
      defer { state.isStarted = true }
      return !state.isStarted
    }
    if starts {
      queue.run { [weak self, source] in
        while let pressure = source.next() {
          guard let self else { return }
          self.tell(pressure)
        }
      }
    }
  }

  /// Lets all caches respond, on this thread.
  package func tell(_ pressure: MemoryPressure) {
    // Outside the lock, because caches call their observers, and because the last reference to a
    // cache may be released here.
    let responders = state.withLock { $0.responders.compactMap(\.responder) }
    for responder in responders { responder.respond(to: pressure) }
  }

  /// The number of known live caches: for tests.
  package var responderCount: Int {
    state.withLock { $0.responders.compactMap(\.responder) }.count
  }

  /// The number of known caches, including deallocated ones that have not been pruned: for tests.
  package var heldCount: Int { state.withLock { $0.responders.count } }
}
