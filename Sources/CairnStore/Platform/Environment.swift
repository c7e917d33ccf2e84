/// All that a store takes from outside: injected, so that tests can put a simulation in its place.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// For short jobs that writers will need the outcome of: the next segment, sealing, a sync.
  package var background: any BackgroundQueue
  /// For long jobs that nobody waits for: compaction, checkpoints, trims.
  package var maintenance: any BackgroundQueue
  /// Lets the thread rest that does long jobs, so that others get on.
  package var pause: @Sendable (Duration) -> Void

  /// - Parameters:
  ///   - maintenance: `nil`: the queue of the short jobs.
  ///   - pause: `nil`: sleeping.
  package init(
    fileSystem: any FileSystem, background: any BackgroundQueue,
    maintenance: (any BackgroundQueue)? = nil,
    pause: (@Sendable (Duration) -> Void)? = nil
  ) {
    self.fileSystem = fileSystem
    self.background = background
    self.maintenance = maintenance ?? background
    self.pause = pause ?? { CairnStore.pause(for: $0) }
  }

  /// The real thing.
  package static func system() -> Environment {
    Environment(
      fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue(),
      maintenance: ThreadBackgroundQueue(runsWithoutThread: false))
  }
}
