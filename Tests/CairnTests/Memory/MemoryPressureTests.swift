import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// A source that reports what a test says.
final class ManualPressureSource: PressureSource {
  private let waiting = Lock<[MemoryPressure?]>([])
  private let available = DispatchSemaphore(value: 0)

  /// `nil` ends the source.
  func raise(_ pressure: MemoryPressure?) {
    waiting.withLock { $0.append(pressure) }
    available.signal()
  }

  func next() -> MemoryPressure? {
    available.wait()
    return waiting.withLock { $0.removeFirst() }
  }
}

@Suite("Memory pressure", .timeLimit(.minutes(30)))
struct MemoryPressureTests {
  let scene = MemoryScene()

  func filled(
    _ change: (inout MemoryConfiguration) -> Void = { _ in }
  ) -> MemoryCache<Int, Int> {
    let cache: MemoryCache<Int, Int> = scene.cache(change)
    for number in 0..<100 {
      cache.setValue(
        number, forKey: number,
        options: EntryOptions(cost: 2, lifetime: number < 30 ? .seconds(1) : .seconds(100)))
    }
    scene.clock.advance(by: .seconds(1))
    return cache
  }

  /// How many caches the monitor tells, including deallocated ones.
  private func toldCount() -> Int {
    scene.background.discardAll()
    scene.monitor.tell(.moderate)
    return scene.background.delays.count
  }

  @Test("First expired entries are removed, then half, then everything")
  func graded() {
    let cache = filled()
    let events = Record<CacheEvent<Int>>()
    cache.observe { event, _ in if case .memoryPressure = event { events.add(event) } }
    scene.press(.moderate)
    #expect(cache.statistics().count == 70)
    scene.press(.high)
    #expect(cache.keys() == (65..<100).reversed())
    #expect(cache.statistics()["evictions.pressure"] == 35)
    scene.press(.critical)
    #expect(cache.count() == 0)
    #expect(cache.statistics()["evictions.pressure"] == 70)
    #expect(
      events.all == [
        .memoryPressure(.moderate), .memoryPressure(.high), .memoryPressure(.critical),
      ]
    )
    scene.press(.critical)
    #expect(cache.audit() == [])
  }

  @Test("Half is half of the entries and half of the cost")
  func halves() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for number in 0..<10 {
      cache.setValue(number, forKey: number, options: .cost(number < 9 ? 1 : 100))
    }
    scene.press(.high)
    // The last one costs more than half of the total.
    #expect(cache.count() == 0)
    for number in 0..<10 {
      cache.setValue(number, forKey: number, options: .cost(number == 0 ? 100 : 1))
    }
    scene.press(.high)
    #expect(cache.keys() == [9, 8, 7, 6, 5])
  }

  @Test("A cache that does not respond is left alone")
  func switchedOff() {
    let cache = filled { $0.respondsToMemoryPressure = false }
    scene.press(.critical)
    #expect(cache.count() == 70)
    #expect(toldCount() == 0)
    #expect(MemoryConfiguration().respondsToMemoryPressure)
  }

  @Test("High pressure gives back the memory of free slots", arguments: EvictionPolicy.allCases)
  func tableMemory(policy: EvictionPolicy) {
    let cache: MemoryCache<Int, Int> = scene.cache { $0.policy = policy }
    for key in 0..<20_000 { cache.setValue(key, forKey: key, lifetime: .seconds(100)) }
    let full = cache.statistics()["overheadBytes"]
    for key in 0..<20_000 where key % 3 == 0 { cache.removeValue(forKey: key) }
    let order = cache.keys()
    scene.press(.moderate)
    #expect(cache.statistics()["overheadBytes"] < full * 9 / 10)
    #expect(cache.keys() == order)
    for _ in 0..<3 { scene.press(.high) }
    #expect(cache.statistics()["overheadBytes"] < full / 4)
    let keys = cache.keys()
    #expect(keys.count == 1666 && keys.allSatisfy { cache[$0] == $0 })
    #expect(cache.audit() == [])
    for key in 0..<20_000 { cache[key] = key }
    #expect(cache.count() == 20_000 && cache.audit() == [])
  }

  @Test("A walk through all entries sees each, although entries move to free slots meanwhile")
  func walkBesideMoves() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for key in 0..<4000 { cache[key] = key }
    for key in 0..<3000 { cache.removeValue(forKey: key) }
    var seen: Set<Int> = []
    cache.remove { key, _ in
      if seen.isEmpty { cache.respond(to: .moderate) }
      seen.insert(key)
      return false
    }
    #expect(seen == Set(3000..<4000))
    #expect(cache.audit() == [])
  }

  @Test("Caches are held weakly, and forgotten")
  func weak() {
    let ended = Record<Bool>()
    let kept: MemoryCache<Int, Int> = scene.cache()
    for _ in 0..<1000 {
      let cache: MemoryCache<Int, Witness> = scene.cache()
      cache[1] = Witness { ended.add(true) }
    }
    #expect(ended.all.count == 1000)
    #expect((1..<20).contains(toldCount()))
    withExtendedLifetime(kept) {}
  }

  @Test("An observer that blocks delays only its own cache")
  func blockedObserver() {
    let source = ManualPressureSource()
    let monitor = PressureMonitor(source: source, queue: ThreadBackgroundQueue())
    let caches = (0..<2).map { _ in
      MemoryCache<Int, Int>(
        configuration: .init(),
        environment: MemoryCacheEnvironment(
          background: ThreadBackgroundQueue(), pressureMonitor: monitor))
    }
    for cache in caches { cache[1] = 1 }
    let mayEnd = DispatchSemaphore(value: 0)
    caches[0].observe { _, _ in mayEnd.wait() }
    source.raise(.critical)
    #expect(comesTrue { caches[1].count() == 0 })
    #expect(caches[0].count() == 1)
    for _ in 0..<2 { mayEnd.signal() }
    #expect(comesTrue { caches[0].count() == 0 })
    source.raise(nil)
  }

  @Test("One thread serves all caches, from the first on, until the source ends")
  func thread() {
    let source = ManualPressureSource()
    let monitor = PressureMonitor(source: source, queue: ThreadBackgroundQueue())
    let environment = MemoryCacheEnvironment(
      background: ThreadBackgroundQueue(), pressureMonitor: monitor)
    let caches = (0..<3).map { _ in
      MemoryCache<Int, Int>(configuration: .init(), environment: environment)
    }
    for cache in caches { cache[1] = 1 }
    let threads = Record<Bool>()
    for cache in caches { cache.observe { _, _ in threads.add(Thread.isMainThread) } }
    source.raise(.moderate)
    source.raise(.critical)
    #expect(comesTrue { caches.allSatisfy { $0.count() == 0 } })
    // The event of the pressure twice, and the removal of all.
    #expect(comesTrue { threads.all.count == 9 })
    #expect(threads.all.allSatisfy { !$0 })
    source.raise(nil)
  }

  @Test("A cache that responds may be used by its own observer, which may report more pressure")
  func reentrant() {
    let cache = filled()
    let monitor = scene.monitor
    cache.observe { [weak cache] event, _ in
      if event == .memoryPressure(.high) { monitor.tell(.moderate) }
      _ = cache?.value(forKey: 50)
    }
    scene.press(.high)
    #expect(cache.count() == 35)
  }
}
