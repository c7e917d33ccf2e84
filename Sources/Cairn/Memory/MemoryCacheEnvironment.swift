package import CairnStore

/// What caches in memory take from outside: injected, so that tests decide when each job runs.
package struct MemoryCacheEnvironment: Sendable {
  /// For jobs that nobody waits for: destroying values, removing what has expired.
  package var background: any BackgroundQueue
  package var pressureMonitor: PressureMonitor
  /// A number from 0 up to 1, for what is to happen at random times.
  package var random: @Sendable () -> Double

  package init(
    background: any BackgroundQueue, pressureMonitor: PressureMonitor,
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
  ) {
    self.background = background
    self.pressureMonitor = pressureMonitor
    self.random = random
  }

  /// What all caches of a process share.
  package static let shared = MemoryCacheEnvironment(
    background: ThreadBackgroundQueue(), pressureMonitor: .shared)
}
