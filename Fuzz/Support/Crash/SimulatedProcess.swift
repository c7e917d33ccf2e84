package import CairnStore

/// A process that has a store open on a simulated disk.
package final class SimulatedProcess {
  package static let path = "/store"

  package let fileSystem: SimulatedFileSystem
  /// The store's file system: the simulated one, or a mistaken one above it.
  private let files: any FileSystem
  package let queue = ManualBackgroundQueue()
  package private(set) var store: Store?
  private var announces = false
  /// Closed stores to which references remain.
  private var closedStores: [Store] = []

  private let seed: UInt64

  private init(disk: SimulatedDisk, seed: UInt64, mistake: FileMistake?) {
    self.seed = seed
    let simulated = SimulatedFileSystem(disk: disk, seed: seed)
    fileSystem = simulated
    files = mistake.map { MistakenFileSystem(simulated, mistake: $0) } ?? simulated
  }

  package var environment: Environment {
    // Nothing happens while a writer sleeps.
    var environment = Environment(fileSystem: files, background: queue, pause: { _ in })
    environment.announces = announces
    // One thread at a time, the last of several syncs first.
    if seed % 2 == 0 {
      environment.slowSync = .zero
      environment.threads = ThreadStarter { body in
        body()
        return true
      }
    }
    return environment
  }

  /// Starts a process that has not yet opened the store, so that the calls of the open can be
  /// examined.
  ///
  /// - Parameter mistake: the mistake that the process makes with its files.
  package static func start(
    on disk: SimulatedDisk, seed: UInt64, mistake: FileMistake? = .chosen
  ) -> SimulatedProcess {
    SimulatedProcess(disk: disk, seed: seed, mistake: mistake)
  }

  /// Makes the process announce its writes to followers.
  package func tellFollowers() {
    announces = true
    fileSystem.showsPartialWrites = true
  }

  package func open(
    _ configuration: StoreConfiguration, readOnly: Bool = false
  ) throws(StoreError) -> Store {
    let store = try Store(
      path: Self.path, configuration: configuration, environment: environment, readOnly: readOnly)
    self.store = store
    return store
  }

  /// Closes the store, ignoring the result, and opens it again while the old store and its mappings
  /// still exist.
  package func reopen(_ configuration: StoreConfiguration) throws(StoreError) -> Store {
    if let store {
      try? store.close()
      closedStores.append(store)
    }
    return try open(configuration)
  }

  /// Ends the process at once; the page cache stays.
  package func kill() {
    fileSystem.kill()
    fileSystem.intervene = nil
    queue.discardAll()
    store = nil
    closedStores = []
  }

  /// Closes the store, runs the remaining background jobs, and ends the process.
  ///
  /// - Parameter useAfterwards: uses and releases what outlives the store.
  /// - Throws: the error of the close, after everything else; a failure if descriptors or mappings
  ///   are left.
  package func close(_ useAfterwards: () throws -> Void = {}) throws {
    let result = Result { try store?.close() }
    try useAfterwards()
    queue.runAll()
    store = nil
    closedStores = []
    fileSystem.intervene = nil
    let leftCount = fileSystem.isDead ? 0 : fileSystem.leftCount
    if leftCount > 0 {
      throw FuzzFailure("\(leftCount) descriptors or mappings are left after a close")
    }
    kill()
    try result.get()
  }
}

extension StoreConfiguration {
  /// Small segments, so that they roll often, and many checkpoints.
  package static func simulated(_ clock: ManualClock) -> StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.segmentByteLimit = 64 << 10
    configuration.durability = .process
    configuration.clock = clock
    configuration.checkpointByteThreshold = 64 << 10
    configuration.checkpointRecordThreshold = 0
    configuration.asideOperationCount = 5
    return configuration
  }
}
