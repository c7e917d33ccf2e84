/// All that a store takes from outside: injected, so that tests can put a simulation in its place.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// For short jobs that writers will need the outcome of: the next segment, sealing, a sync.
  package var background: any BackgroundQueue
  /// For long jobs that nobody waits for: compaction, checkpoints, trims.
  package var maintenance: any BackgroundQueue

  /// - Parameter maintenance: `nil`: the queue of the short jobs.
  package init(
    fileSystem: any FileSystem, background: any BackgroundQueue,
    maintenance: (any BackgroundQueue)? = nil
  ) {
    self.fileSystem = fileSystem
    self.background = background
    self.maintenance = maintenance ?? background
  }

  /// The real thing.
  package static func system() -> Environment {
    Environment(
      fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue(),
      maintenance: ThreadBackgroundQueue(runsWithoutThread: false))
  }
}
