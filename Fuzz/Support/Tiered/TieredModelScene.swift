package import Cairn
import CairnStore

/// The parts that a run controls: the time, and when background work runs.
struct TieredModelScene {
  private struct SilentSource: PressureSource {
    func next() -> MemoryPressure? { nil }
  }

  let clock = ManualClock()
  let diskBackground = ManualBackgroundQueue()
  /// The queue of the memory tier, and of its reports to the disk.
  let background = ManualBackgroundQueue()
  private let monitor = PressureMonitor(source: SilentSource(), queue: ManualBackgroundQueue())

  func open(_ path: String, _ random: inout FuzzRandom) throws -> TieredModelRun.Cache {
    var configuration = DiskCacheConfiguration(
      memory: MemoryConfiguration(countLimit: 1 + random.below(8), costLimit: nil))
    let policies = EvictionPolicy.allCases
    configuration.memory?.policy = policies[random.below(policies.count)]
    configuration.store.clock = clock
    configuration.store.segmentByteLimit = 64 << 10
    configuration.store.maintenanceInterval = nil
    // Every close records the order of use.
    configuration.store.checkpointRecordThreshold = 0
    configuration.store.durability = .process
    return try DiskCache(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      environment: Environment(
        fileSystem: SystemFileSystem(), background: diskBackground, maintenance: diskBackground,
        pause: { _ in }),
      memory: MemoryCacheEnvironment(background: background, pressureMonitor: monitor))
  }

  /// Drops background work and the store that it holds.
  func discardAll() {
    diskBackground.discardAll()
    background.discardAll()
  }
}

extension DiskCache {
  /// The memory tier of a cache that has one.
  package var tier: MemoryTier<Key, Value> {
    guard let memory else { preconditionFailure("this cache has no tier in memory") }
    return memory
  }
}
