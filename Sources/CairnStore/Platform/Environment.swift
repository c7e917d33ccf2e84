/// What a store needs from outside. Injected, so that tests can replace it with a simulation.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// Runs short jobs whose results writers will soon need, such as preparing the next segment. None
  /// of these jobs waits for a sync.
  package var background: any BackgroundQueue
  /// Runs the syncs that writes of class `.interval` request. Nothing may delay them.
  package var syncing: any BackgroundQueue
  /// Runs the chores of housekeeping.
  package var maintenance: any BackgroundQueue
  /// Syncs several files at the same time on a slow disk. On a fast disk, such syncs would only
  /// compete with writers.
  package var threads = ThreadStarter.none
  /// How long a sync takes on a slow disk. In a simulation no disk is slow, so that a busy machine
  /// changes nothing.
  package var slowSync = Duration.seconds(3600)
  /// The memory limit of the index.
  package var memory = MemoryBudget.unlimited
  /// Whether a store open for writing announces its writes to followers.
  package var announces = false
  /// Pauses a thread that runs a long job, so that others can continue.
  package var pause: @Sendable (Duration) -> Void

  /// - Parameters:
  ///   - maintenance: the queue for housekeeping, or `nil` for the queue of the short jobs.
  ///   - syncing: the queue for syncs, or `nil` for the queue of the short jobs.
  ///   - pause: pauses a thread, or `nil` to sleep.
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

  /// The real environment.
  package static func system() -> Environment {
    var environment = Environment(
      fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue(),
      maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue())
    environment.announces = true
    environment.threads = .system
    environment.slowSync = .milliseconds(8)
    return environment
  }
}
