package import CairnStore

/// What caches in memory need from outside. Injected, so that tests decide when each job runs.
package struct MemoryCacheEnvironment: Sendable {
  /// Runs jobs in the background: destroying values, removing expired entries.
  package var background: any BackgroundQueue
  /// Runs the jobs that check time limits of loads, which must not wait for other jobs.
  package var timers: any BackgroundQueue
  package var pressureMonitor: PressureMonitor
  /// Returns a random number from 0 up to 1.
  package var random: @Sendable () -> Double

  /// - Parameter timers: by default, `background`.
  package init(
    background: any BackgroundQueue, timers: (any BackgroundQueue)? = nil,
    pressureMonitor: PressureMonitor,
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
  ) {
    self.background = background
    self.timers = timers ?? background
    self.pressureMonitor = pressureMonitor
    self.random = random
  }

  /// The environment that all caches in a process share.
  package static let shared = MemoryCacheEnvironment(
    background: ThreadBackgroundQueue(), timers: ThreadBackgroundQueue(),
    pressureMonitor: .shared)
}
