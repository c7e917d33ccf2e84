import Cairn
import CairnStore

/// What a run decides itself: the time, and when background work runs.
struct TieredModelScene {
  private struct SilentSource: PressureSource {
    func next() -> MemoryPressure? { nil }
  }

  let clock = ManualClock()
  let diskBackground = ManualBackgroundQueue()
  /// Of the tier in memory, and what tells the disk of it.
  let background = ManualBackgroundQueue()
  private let monitor = PressureMonitor(source: SilentSource(), queue: ManualBackgroundQueue())

  func open(_ path: String, _ random: inout FuzzRandom) throws -> TieredModelRun.Cache {
    var memory = MemoryCacheConfiguration(countLimit: 1 + random.below(8), costLimit: nil)
    memory.policy = random.once(in: 3) ? .sieve : .leastRecentlyUsed
    var disk = DiskCacheConfiguration.unlimited
    disk.store.clock = clock
    disk.store.segmentByteLimit = 64 << 10
    disk.store.maintenanceInterval = nil
    // Every close keeps the order of use.
    disk.store.checkpointRecordThreshold = 0
    disk.store.durability = .process
    return try TieredCache(
      path: path, configuration: TieredCacheConfiguration(memory: memory, disk: disk),
      keyCoder: .standard, valueCoder: .standard,
      environment: Environment(
        fileSystem: SystemFileSystem(), background: diskBackground, maintenance: diskBackground,
        pause: { _ in }),
      memory: MemoryCacheEnvironment(background: background, pressureMonitor: monitor))
  }

  /// Forgets background work, and with it the store that it holds.
  func discardAll() {
    diskBackground.discardAll()
    background.discardAll()
  }
}
