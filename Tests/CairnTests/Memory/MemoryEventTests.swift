import Cairn
import Foundation
import FuzzSupport
import Testing

@Suite("Events of a cache in memory", .timeLimit(.minutes(30)))
struct MemoryEventTests {
  let scene = MemoryScene()

  @Test("Every insertion and removal is reported, with cause and value, in the order of one thread")
  func order() {
    let cache: MemoryCache<String, Int> = scene.cache(count: 2)
    let told = Record<String>()
    cache.observe { event, value in
      switch event {
      case .inserted(let key): told.add("+\(key)=\(value ?? -1)")
      case .removed(let key, let cause): told.add("-\(key)=\(value ?? -1) \(cause)")
      case .removedAll(let count): told.add("all \(count)")
      case .damaged(let key): told.add("damaged \(key)")
      case .loadFailed(let key, _): told.add("failed \(key)")
      case .memoryPressure(let pressure): told.add("\(pressure)")
      case .enteredBackground: told.add("background")
      }
    }
    cache["a"] = 1
    cache["a"] = 2
    cache["b"] = 3
    cache["c"] = 4
    cache["b"] = nil
    cache.setValue(5, forKey: "d", lifetime: .seconds(1))
    scene.clock.advance(by: .seconds(1))
    _ = cache["d"]
    cache.setValue(6, forKey: "c", lifetime: .seconds(0))
    cache["e"] = 7
    cache.trim(.toCount(0))
    cache["f"] = 8
    cache.removeAll()
    #expect(
      told.all == [
        "+a=1", "-a=1 replaced", "+a=2", "+b=3", "+c=4",
        "-a=2 evicted(countLimit)",
        "-b=3 removed", "+d=5", "-d=5 expired", "-c=4 replaced", "+c=6", "-c=6 expired", "+e=7",
        "-e=7 evicted(trim)", "+f=8", "all 1",
      ])
  }

  @Test("If a value replaces an expired one, the old one is reported as expired")
  func replacedExpired() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", lifetime: .seconds(1))
    scene.clock.advance(by: .seconds(1))
    let events = Record<CacheEvent<String>>()
    cache.observe { event, _ in events.add(event) }
    cache["a"] = 2
    #expect(events.all == [.removed(key: "a", cause: .expired), .inserted(key: "a")])
    #expect(cache.statistics()["replacements"] == 0)
    #expect(cache.statistics()["expirations"] == 1)
  }

  @Test("A cancelled observer receives nothing more, and others continue")
  func cancelled() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    let first = Record<CacheEvent<Int>>()
    let second = Record<CacheEvent<Int>>()
    let observation = cache.observe { event, _ in first.add(event) }
    cache.observe { event, _ in second.add(event) }
    cache[1] = 1
    observation.cancel()
    observation.cancel()
    cache[2] = 2
    #expect(first.all == [.inserted(key: 1)])
    #expect(second.all == [.inserted(key: 1), .inserted(key: 2)])
  }

  @Test("A second cancel of an observation does not affect a later observer")
  func cancelledTwice() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    let first = Record<CacheEvent<Int>>()
    let second = Record<CacheEvent<Int>>()
    let observation = cache.observe { event, _ in first.add(event) }
    observation.cancel()
    cache.observe { event, _ in second.add(event) }
    observation.cancel()
    cache[1] = 1
    #expect(first.all == [])
    #expect(second.all == [.inserted(key: 1)])
    #expect(cache.observerCount == 1)
  }

  @Test("A change by an observer is reported in the middle of the event it was called for")
  func changesByObservers() {
    let cache: MemoryCache<String, Int> = scene.cache(count: 2)
    let first = Record<CacheEvent<String>>()
    let second = Record<CacheEvent<String>>()
    cache["old"] = 1
    cache["other"] = 1
    cache.observe { [weak cache] event, _ in
      first.add(event)
      if event == .inserted(key: "x") { cache?["x"] = nil }
    }
    cache.observe { event, _ in second.add(event) }
    cache["x"] = 2
    let evicted = CacheEvent.removed(key: "old", cause: .evicted(.countLimit))
    let removed = CacheEvent.removed(key: "x", cause: .removed)
    #expect(first.all == [.inserted(key: "x"), removed, evicted])
    #expect(second.all == [removed, .inserted(key: "x"), evicted])
  }

  @Test("What an observer holds is released with the cache")
  func leak() {
    let ended = Record<Bool>()
    do {
      let cache: MemoryCache<Int, Int> = scene.cache()
      let witness = Witness { ended.add(true) }
      cache.observe { _, _ in withExtendedLifetime(witness) {} }
      cache[1] = 1
    }
    #expect(ended.all == [true])
  }

  @Test("An observer may use the cache, change it, and end itself")
  func reentrant() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 10)
    let observations = Record<CacheObservation>()
    observations.add(
      cache.observe { [weak cache] event, _ in
        guard let cache, case .inserted(let key) = event else { return }
        _ = cache.value(forKey: key)
        if key < 5 { cache.setValue(0, forKey: key + 1) }
        if key == 5 {
          cache.removeValue(forKey: 1)
          cache.trim(.toCount(3))
          cache.trim(.expired)
          _ = cache.entries()
          _ = cache.statistics()
          for observation in observations.all { observation.cancel() }
          cache.observe { _, _ in }
        }
      })
    cache[1] = 0
    #expect(cache.keys().count == 3)
    cache[2] = 1
    #expect(cache.audit() == [])
    cache.removeAll()
  }

  @Test("The caller's closures run outside the lock: costing, clock, predicate, release")
  func closures() {
    let holder = Record<MemoryCache<Int, Int>>()
    let isInside = Record<Bool>()
    let use: @Sendable () -> Void = {
      // The closures that the cache calls call it again here.
      if !isInside.all.isEmpty { return }
      isInside.add(true)
      defer { isInside.removeAll() }
      for cache in holder.all {
        _ = cache.value(forKey: 0)
        cache.setValue(0, forKey: 1000, options: .cost(1))
      }
    }
    struct CallingClock: WallClock {
      var use: @Sendable () -> Void
      func now() -> Timestamp { ManualClock.start }
    }
    let cache: MemoryCache<Int, Int> = scene.cache(
      count: 5,
      costing: { _, _ in
        use()
        return 1
      }
    ) {
      $0.clock = CallingClock(use: use)
      $0.release = .on { job in
        use()
        job()
      }
    }
    holder.add(cache)
    cache[1] = 1
    for number in 0..<10 { cache[number] = number }
    cache.remove { key, _ in
      use()
      return key < 9
    }
    #expect(cache.audit() == [])
    holder.removeAll()
  }

  @Test("A stream of events has what happened, and ends with the cache")
  func stream() async {
    var events: [CacheEvent<Int>] = []
    let stream: AsyncStream<CacheEvent<Int>>
    do {
      let cache: MemoryCache<Int, Int> = scene.cache(count: 2)
      stream = cache.events()
      for number in 0..<3 { cache[number] = number }
      cache.respond(to: .critical)
    }
    for await event in stream { events.append(event) }
    #expect(
      events == [
        .inserted(key: 0), .inserted(key: 1), .inserted(key: 2),
        .removed(key: 0, cause: .evicted(.countLimit)), .memoryPressure(.critical),
        .removedAll(count: 2),
      ])
  }

  @Test("An unread stream keeps the newest events and no values")
  func unreadStream() async {
    let ended = Record<Bool>()
    let cache: MemoryCache<Int, Witness> = scene.cache(count: 1)
    let stream = cache.events(bufferingNewest: 2)
    for number in 0..<10 { cache[number] = Witness { ended.add(true) } }
    #expect(ended.all.count == 9)
    let firstTwo = await stream.prefix(2).reduce(into: []) { $0.append($1) }
    #expect(
      firstTwo == [.inserted(key: 9), .removed(key: 8, cause: .evicted(.countLimit))])
  }

  @Test("A stream whose reader leaves removes its observer")
  func leftStream() async {
    let cache: MemoryCache<Int, Int> = scene.cache()
    do {
      let stream = cache.events()
      let task = Task { for await _ in stream {} }
      task.cancel()
      await task.value
    }
    #expect(cache.observerCount == 0)
  }
}
