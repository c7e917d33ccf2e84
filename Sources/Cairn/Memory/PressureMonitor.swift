package import CairnStore

/// Tells caches that memory is short. One thread serves all caches in a process. It starts when the
/// first cache is added.
///
/// Each cache responds on its own queue, because its observers may block. The kernel reports at most
/// once in a window of two seconds.
/// The caches are held weakly.
package final class PressureMonitor: Sendable {
  private struct Weak: Sendable {
    weak var responder: (any PressureResponder)?
    let queue: any BackgroundQueue
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
    PressureMonitor(source: systemPressureSource(), queue: ThreadBackgroundQueue())
  }

  private let state = Lock(State())
  private let source: any PressureSource
  private let queue: any BackgroundQueue

  package init(source: any PressureSource, queue: any BackgroundQueue) {
    self.source = source
    self.queue = queue
  }

  /// - Parameter queue: where the cache responds.
  package func add(_ responder: any PressureResponder, on queue: any BackgroundQueue) {
    let starts = state.withLock { state in
      if state.responders.count >= state.sweepCount {
        state.responders.removeAll { $0.responder == nil }
        state.sweepCount = max(8, 2 * state.responders.count)
      }
      state.responders.append(Weak(responder: responder, queue: queue))
      defer { state.isStarted = true }
      return !state.isStarted
    }
    if starts {
      self.queue.run { [weak self, source] in
        while let pressure = source.next() {
          guard let self else { return }
          self.tell(pressure)
        }
      }
    }
  }

  /// Lets all caches respond.
  package func tell(_ pressure: MemoryPressure) {
    for entry in state.withLock({ $0.responders }) {
      entry.queue.run { entry.responder?.respond(to: pressure) }
    }
  }
}
