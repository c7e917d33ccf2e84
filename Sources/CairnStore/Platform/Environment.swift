/// All that a store takes from outside: injected, so that tests can put a simulation in its place.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// For short jobs that writers will need the outcome of, such as the next segment. None of them waits for a sync.
  package var background: any BackgroundQueue
  /// For the syncs that writes of class `.interval` ask for, which nothing may hold up.
  package var syncing: any BackgroundQueue
  /// For the chores of housekeeping.
  package var maintenance: any BackgroundQueue
  /// What the index may take of the memory.
  package var memory = MemoryBudget.unlimited
  /// Whether a store that is open for writing announces its writes to those who follow it.
  package var announces = false
  /// Lets the thread rest that does long jobs, so that others get on.
  package var pause: @Sendable (Duration) -> Void

  /// - Parameters:
  ///   - maintenance: `nil`: the queue of the short jobs.
  ///   - syncing: `nil`: the queue of the short jobs.
  ///   - pause: `nil`: sleeping.
  package init(
    fileSystem: any FileSystem, background: any BackgroundQueue,
    maintenance: (any BackgroundQueue)? = nil, syncing: (any BackgroundQueue)? = nil,
    pause: (@Sendable (Duration) -> Void)? = nil
  ) {
    self.fileSystem = fileSystem
    self.background = background
    self.maintenance = maintenance ?? background
    self.syncing = syncing ?? background
    self.pause = pause ?? { CairnStore.pause(for: $0) }
  }

  /// The real thing.
  package static func system() -> Environment {
    var environment = Environment(
      fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue(),
      maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue())
    environment.announces = true
    return environment
  }
}
