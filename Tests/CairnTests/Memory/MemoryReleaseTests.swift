import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Where values of a cache in memory are destroyed", .timeLimit(.minutes(30)))
struct MemoryReleaseTests {
  let scene = MemoryScene()

  @Test("Values are not destroyed under the lock: a value may use the cache when it is destroyed")
  func outsideTheLock() {
    let ended = Record<Int>()
    let holder = Record<MemoryCache<Int, Witness>>()
    for release in [ValueRelease.automatic, .onCaller, .on { $0() }] {
      ended.removeAll()
      let cache: MemoryCache<Int, Witness> = scene.cache(count: 2) {
        $0.release = release
        $0.idleLimit = .seconds(1)
      }
      holder.add(cache)
      func witness(_ number: Int) -> Witness {
        Witness {
          for cache in holder.all { _ = cache.value(forKey: 99) }
          ended.add(number)
        }
      }
      cache[1] = witness(1)
      cache[1] = witness(2)
      cache[2] = witness(3)
      cache[3] = witness(4)
      cache[3] = nil
      cache.trim(.toCount(0))
      cache[4] = witness(5)
      cache.removeAll()
      cache[5] = witness(6)
      scene.clock.advance(by: .seconds(1))
      _ = cache[5]
      #expect(ended.all == [1, 2, 4, 3, 5, 6])
      holder.removeAll()
    }
  }

  @Test(
    "A few values are destroyed on the caller's thread, many at once on another",
    arguments: [true, false])
  func many(all: Bool) {
    let ended = Record<Int>()
    let cache: MemoryCache<Int, Witness> = scene.cache()
    for number in 0..<15 { cache[number] = Witness { ended.add(number) } }
    if all { cache.removeAll() } else { cache.trim(.toCount(0)) }
    #expect(ended.all.count == 15)
    for number in 0..<1000 { cache[number] = Witness { ended.add(number) } }
    if all { cache.removeAll() } else { cache.trim(.toCount(0)) }
    // The last group of a trim is small.
    #expect(ended.all.count < 15 + 64)
    scene.background.runAll()
    #expect(ended.all.count == 1015)
  }

  @Test("Values are destroyed where configured, one or many, and nowhere else")
  func chosen() {
    let ended = Record<Int>()
    let jobs = Record<@Sendable () -> Void>()
    let cache: MemoryCache<Int, Witness> = scene.cache {
      $0.release = .on { jobs.add($0) }
      $0.idleLimit = .seconds(1)
    }
    for number in 0..<100 { cache[number] = Witness { ended.add(number) } }
    cache[0] = Witness { ended.add(0) }
    cache[1] = nil
    cache.trim(.toCount(50))
    scene.clock.advance(by: .seconds(1))
    _ = cache[99]
    cache.removeAll()
    #expect(ended.all == [])
    for job in jobs.all { job() }
    #expect(ended.all.count == 101)
  }

  @Test("Values are destroyed on the caller's thread, if that is configured")
  func onCaller() {
    let ended = Record<Bool>()
    let cache: MemoryCache<Int, Witness> = scene.cache { $0.release = .onCaller }
    for number in 0..<1000 { cache[number] = Witness { ended.add(Thread.isMainThread) } }
    cache.removeAll()
    #expect(ended.all.count == 1000)
  }

  @Test("A cache's contents are destroyed with it, once, and as configured")
  func end() {
    let ended = Record<Int>()
    do {
      let cache: MemoryCache<String, Witness> = scene.cache()
      for number in 0..<100 { cache["\(number)"] = Witness { ended.add(number) } }
      for number in 0..<50 { cache["\(number)"] = nil }
    }
    #expect(ended.all == Array(0..<50))
    scene.background.runAll()
    #expect(ended.all.sorted() == Array(0..<100))
  }

  @Test("A value whose destruction blocks delays only its own cache")
  func blockedRelease() {
    let mayEnd = DispatchSemaphore(value: 0)
    let (blocked, free) = (Record<Int>(), Record<Int>())
    let caches = [
      MemoryCache<Int, Witness>(configuration: .init()),
      MemoryCache<Int, Witness>(configuration: .init()),
    ]
    for number in 0..<100 {
      caches[0][number] = Witness {
        mayEnd.wait()
        blocked.add(number)
      }
      caches[1][number] = Witness { free.add(number) }
    }
    for cache in caches { cache.removeAll() }
    #expect(comesTrue { free.all.count == 100 })
    #expect(blocked.all == [])
    for _ in 0..<100 { mayEnd.signal() }
    #expect(comesTrue { blocked.all.count == 100 })
  }

  @Test("In a program, a thread of the cache destroys values")
  func realThread() {
    let ended = Record<Int>()
    let cache = MemoryCache<Int, Witness>(configuration: .init())
    for number in 0..<1000 { cache[number] = Witness { ended.add(number) } }
    cache.removeAll()
    #expect(comesTrue { ended.all.count == 1000 })
  }

  @Test("Without threads, a cache destroys values itself, and lifetimes wait for a thread")
  func withoutThreads() {
    let threads = ThreadStarter { _ in false }
    let queue = ThreadBackgroundQueue(threads: threads, timer: SharedTimer(threads: threads))
    let ended = Record<Int>()
    var configuration = MemoryConfiguration()
    configuration.lifetime = .seconds(3600)
    let cache = MemoryCache<Int, Witness>(
      configuration: configuration, costing: nil,
      environment: MemoryCacheEnvironment(background: queue, pressureMonitor: scene.monitor))
    for number in 0..<100 { cache[number] = Witness { ended.add(number) } }
    cache.removeAll()
    #expect(ended.all.count == 100)
  }
}
