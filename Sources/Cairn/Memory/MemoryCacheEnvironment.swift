package import CairnStore

/// What a cache in memory needs from outside. Injected, so that tests decide when each job runs.
package struct MemoryCacheEnvironment: Sendable {
  /// Runs the jobs that run callers' code: destroying values, removing expired entries, cancelling
  /// loads. A job that blocks delays only this cache.
  package var background: any BackgroundQueue
  /// Runs the jobs that check time limits of loads. They run none of the callers' code.
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

  /// An environment with threads of its own, which exist only while there are jobs.
  package static func system() -> MemoryCacheEnvironment {
    MemoryCacheEnvironment(
      background: ThreadBackgroundQueue(), timers: ThreadBackgroundQueue(),
      pressureMonitor: .shared)
  }
}
