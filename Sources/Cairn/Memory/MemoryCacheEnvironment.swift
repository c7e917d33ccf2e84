package import CairnStore

/// What caches in memory take from outside: injected, so that tests decide when each job runs.
package struct MemoryCacheEnvironment: Sendable {
  /// For jobs that nobody waits for: destroying values, removing what has expired.
  package var background: any BackgroundQueue
  package var pressureMonitor: PressureMonitor

  package init(background: any BackgroundQueue, pressureMonitor: PressureMonitor) {
    self.background = background
    self.pressureMonitor = pressureMonitor
  }

  /// What all caches of a process share.
  package static let shared = MemoryCacheEnvironment(
    background: ThreadBackgroundQueue(), pressureMonitor: .shared)
}
