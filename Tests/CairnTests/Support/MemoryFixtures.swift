import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// The scene of a test of a cache in memory. It controls the time, when background work runs, and
/// when memory is short.
struct MemoryScene: Sendable {
  let clock = ManualClock()
  let background = ManualBackgroundQueue()
  let monitor: PressureMonitor

  init() {
    monitor = PressureMonitor(source: SilentPressureSource(), queue: ManualBackgroundQueue())
  }

  /// A cache with these limits and other options.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    count: Int? = nil, cost: Int? = nil,
    _ change: (inout MemoryConfiguration) -> Void = { _ in }
  ) -> MemoryCache<Key, Value> {
    cache(count: count, cost: cost, costing: nil, change)
  }

  /// A cache whose values have the costs that the closure returns.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    count: Int? = nil, cost: Int? = nil, costing: (@Sendable (Key, Value) -> Int)?,
    _ change: (inout MemoryConfiguration) -> Void = { _ in }
  ) -> MemoryCache<Key, Value> {
    var configuration = MemoryConfiguration(countLimit: count, costLimit: cost)
    configuration.clock = clock
    change(&configuration)
    return MemoryCache(
      configuration: configuration, costing: costing,
      environment: MemoryCacheEnvironment(background: background, pressureMonitor: monitor))
  }

  /// Memory is short, and the caches respond.
  func press(_ pressure: MemoryPressure) {
    monitor.tell(pressure)
    background.runAll(dueAfter: .zero)
  }

  /// Lets time pass, and runs the jobs that are then due.
  func advance(by duration: Duration) {
    clock.advance(by: duration)
    background.runAll(dueAfter: duration)
  }
}

/// A source that never reports anything.
struct SilentPressureSource: PressureSource {
  func next() -> MemoryPressure? { nil }
}

/// Events in the order in which they came.
final class Record<Element: Sendable>: Sendable {
  // Not the standard library's `Mutex`, which Thread Sanitizer does not understand.
  private let elements = Lock<[Element]>([])

  var all: [Element] { elements.withLock { $0 } }

  func add(_ element: Element) { elements.withLock { $0.append(element) } }

  func removeAll() { elements.withLock { $0 = [] } }
}

/// A value that reports its destruction.
final class Witness: Sendable {
  private let atEnd: @Sendable () -> Void

  init(atEnd: @escaping @Sendable () -> Void) { self.atEnd = atEnd }

  deinit { atEnd() }
}

/// Runs `body` on separate threads, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let group = DispatchGroup()
  for thread in 0..<count {
    group.enter()
    Thread.detachNewThread {
      body(thread)
      group.leave()
    }
  }
  group.wait()
}

/// Waits until another thread makes `condition` true.
///
/// - Returns: whether it became true within a time that no sound run needs.
func comesTrue(_ condition: () -> Bool) -> Bool {
  let end = ContinuousClock.now.advanced(by: .seconds(120))
  while !condition() {
    if ContinuousClock.now > end { return false }
    Thread.sleep(forTimeInterval: 0.001)
  }
  return true
}

/// The seed of randomised tests: a new one on each run, or the one in `CAIRN_TEST_SEED`.
enum TestSeed {
  static let current: UInt64 = {
    let given = ProcessInfo.processInfo.environment["CAIRN_TEST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...UInt64.max / 2)
    print("randomised tests: replay with CAIRN_TEST_SEED=\(seed)")
    return seed
  }()

  /// The text to add to a failure.
  static var comment: Comment { "replay with CAIRN_TEST_SEED=\(current)" }
}
