package import CairnStore

/// Tells caches that memory is short: one thread for all caches of a process, from the first on that
/// wants to know.
///
/// Caches respond one after the other on that thread. What comes meanwhile is not lost, and not told
/// twice: the kernel tells at most once in a window of two seconds. The caches are held weakly.
package final class PressureMonitor: Sendable {
  private struct Weak: Sendable {
    weak var responder: (any PressureResponder)?
  }

  private struct State {
    var responders: [Weak] = []
    /// From how many on those that are gone are taken out.
    var sweepCount = 8
    var isStarted = false
  }

  /// The one of the process, which listens to the kernel.
  package static let shared = PressureMonitor(
    source: SystemPressureSource(), queue: ThreadBackgroundQueue())

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

  /// Has all caches respond, on this thread.
  package func tell(_ pressure: MemoryPressure) {
    // Out of the lock, since they call their observers, and since the last reference to one may go
    // here.
    let responders = state.withLock { $0.responders.compactMap(\.responder) }
    for responder in responders { responder.respond(to: pressure) }
  }

  /// For tests: the caches that are known and alive.
  package var responderCount: Int {
    state.withLock { $0.responders.compactMap(\.responder) }.count
  }

  /// For tests: the caches that are known, also those that are gone and were not noticed yet.
  package var heldCount: Int { state.withLock { $0.responders.count } }
}
