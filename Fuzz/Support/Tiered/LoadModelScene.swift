import Cairn
import CairnStore

/// The parts that a run of loads controls: the time, background work and random numbers.
struct LoadModelScene {
  private struct SilentSource: PressureSource {
    func next() -> MemoryPressure? { nil }
  }

  /// The maximum time after its end during which a value may be returned, in milliseconds.
  static let retention: Int64 = 40_000

  let clock = ManualClock()
  let number = LoadNumber()
  private let diskBackground = ManualBackgroundQueue()
  private let background = ManualBackgroundQueue()
  private let monitor = PressureMonitor(source: SilentSource(), queue: ManualBackgroundQueue())

  func open(
    _ path: String, hasMemory: Bool, _ random: inout FuzzRandom
  ) throws -> LoadModelRun.Cache {
    var configuration = DiskCacheConfiguration()
    if hasMemory {
      configuration.memory = MemoryConfiguration(
        countLimit: 1 + random.below(4), costLimit: nil)
    }
    configuration.loadPolicy.staleOnError = .milliseconds(Self.retention)
    configuration.store.clock = clock
    configuration.store.segmentByteLimit = 64 << 10
    configuration.store.durability = .process
    return try DiskCache(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      environment: Environment(
        fileSystem: SystemFileSystem(), background: diskBackground, maintenance: diskBackground,
        pause: { _ in }),
      memory: MemoryCacheEnvironment(
        background: background, pressureMonitor: monitor,
        random: { [number] in number.value.withLock { $0 } }))
  }

  /// Lets time pass, and runs the jobs that are then due.
  func advance(by duration: Duration) {
    clock.advance(by: duration)
    background.runAll(dueAfter: duration)
    diskBackground.runAll(dueAfter: duration)
  }

  /// Drops background work and the store that it holds.
  func discardAll() {
    diskBackground.discardAll()
    background.discardAll()
  }
}

/// The random number that loads draw.
final class LoadNumber: Sendable {
  let value = Lock(0.0)
}
