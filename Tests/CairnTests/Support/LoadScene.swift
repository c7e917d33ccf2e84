import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// The caches that load: in memory, on disk, and with both tiers.
enum LoadingKind: CaseIterable {
  case memory, disk, tiered
}

/// The scene of a test of loads with a policy. It controls the time, when time limits are checked,
/// and random numbers.
final class LoadScene: Sendable {
  let clock = ManualClock()
  let background = ManualBackgroundQueue()
  private let disk = DiskScene()
  private let random: @Sendable () -> Double

  init(random: @escaping @Sendable () -> Double = { 0 }) { self.random = random }

  deinit { background.discardAll() }

  private var environment: MemoryCacheEnvironment {
    MemoryCacheEnvironment(
      background: background,
      pressureMonitor: PressureMonitor(
        source: SilentPressureSource(), queue: ManualBackgroundQueue()),
      random: random)
  }

  func memory(_ policy: LoadPolicy) -> MemoryCache<String, String> {
    var configuration = MemoryConfiguration()
    configuration.clock = clock
    configuration.loadPolicy = policy
    return MemoryCache(configuration: configuration, environment: environment)
  }

  /// - Parameter memory: whether there is a memory tier.
  func disk(
    _ policy: LoadPolicy, memory: Bool = false, values: ValueCoder<String> = .standard,
    log: DiagnosticLog = .silent
  ) throws -> DiskCache<String, String> {
    var configuration = DiskCacheConfiguration(
      memory: memory ? .init() : nil)
    configuration.store.clock = clock
    configuration.store.log = log
    configuration.store.segmentByteLimit = 256 << 10
    configuration.loadPolicy = policy
    return try DiskCache(
      path: disk.path, configuration: configuration, keyCoder: .standard, valueCoder: values,
      environment: Environment(
        fileSystem: SystemFileSystem(), background: background, maintenance: background,
        pause: { _ in }), memory: environment)
  }

  func cache(_ kind: LoadingKind, _ policy: LoadPolicy = .standard) throws -> LoadSubject {
    switch kind {
    case .memory: LoadSubject(memory(policy))
    case .disk: LoadSubject(try disk(policy))
    case .tiered: LoadSubject(try disk(policy, memory: true))
    }
  }

  /// Lets time pass, and runs the jobs that are then due.
  func advance(by duration: Duration) {
    clock.advance(by: duration)
    background.runAll(dueAfter: duration)
  }
}

/// A cache of any kind, with what a test inspects in addition to its interface.
struct LoadSubject: Sendable {
  let cache: any ContractCache<String, String>
  /// Whether any load is in progress.
  let isLoading: @Sendable () -> Bool
  private let counts: @Sendable () -> LoadCounts

  init(_ cache: MemoryCache<String, String>) {
    self.cache = cache
    isLoading = { cache.flights.isActive }
    counts = { cache.flights.counts }
  }

  init(_ cache: DiskCache<String, String>) {
    self.cache = cache
    isLoading = { cache.flights.isActive }
    counts = { cache.flights.counts }
  }

  var loads: LoadCounts { counts() }
}

/// The origin of loads: counts the calls, and returns what the test wants.
final class Origin: Sendable {
  struct Failure: Error {}

  private let calls = Lock(0)
  private let failing = Lock(false)

  var callCount: Int { calls.withLock { $0 } }
  var isFailing: Bool {
    get { failing.withLock { $0 } }
    set { failing.withLock { $0 = newValue } }
  }

  /// The number of the call, or a failure.
  func answer() throws -> String {
    let call = calls.withLock { calls in
      calls += 1
      return calls
    }
    if isFailing { throw Failure() }
    return "\(call)"
  }
}

extension LoadSubject {
  /// The value of a key, from the origin if needed.
  func ask(
    _ origin: Origin, _ key: String = "a", for seconds: Int = 60
  ) async throws -> Loaded<String>? {
    try await cache.loaded(forKey: key, policy: nil) { _ in
      .loaded(try origin.answer(), options: .lifetime(.seconds(seconds)))
    }
  }

  /// Sets the value of "a" for 20 ms.
  func set(_ value: String) async throws {
    func set(_ cache: some ContractCache<String, String>) async throws {
      try cache.setValue(value, forKey: "a", options: .lifetime(.milliseconds(20)))
    }
    try await set(cache)
  }
}

extension LoadPolicy {
  static func with(_ change: (inout LoadPolicy) -> Void) -> LoadPolicy {
    var policy = LoadPolicy()
    change(&policy)
    return policy
  }
}
