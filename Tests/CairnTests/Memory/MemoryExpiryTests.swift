import Cairn
import FuzzSupport
import Testing

@Suite("Expiry in a cache in memory")
struct MemoryExpiryTests {
  let scene = MemoryScene()

  @Test("A lifetime ends at its end, for every way of reading")
  func lifetime() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", lifetime: .milliseconds(1500))
    scene.clock.advance(by: .milliseconds(1499))
    #expect(cache.value(forKey: "a") == 1 && cache.contains("a") && cache.count() == 1)
    scene.clock.advance(by: .milliseconds(1))
    #expect(cache.keys() == [] && cache.entries().isEmpty)
    #expect(!cache.contains("a"))
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.entry(forKey: "a") == nil && cache.info(forKey: "a") == nil)
    #expect(cache.count() == 0 && cache.totalCost() == 0)
    #expect(!cache.removeValue(forKey: "a"))
    #expect(cache.statistics()["expirations"] == 1)
  }

  @Test(
    "Each kind of read finds an expired entry absent, and removes it",
    arguments: 0..<7)
  func firstLook(way: Int) {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", options: EntryOptions(cost: 5, lifetime: .seconds(1)))
    let events = Record<CacheEvent<String>>()
    cache.observe { event, _ in events.add(event) }
    scene.clock.advance(by: .seconds(1))
    switch way {
    case 0: #expect(cache.value(forKey: "a") == nil)
    case 1: #expect(cache.entry(forKey: "a") == nil)
    case 2: #expect(cache.info(forKey: "a") == nil)
    case 3: #expect(!cache.contains("a"))
    case 4: #expect(cache.count() == 0)
    case 5: #expect(cache.takeValue(forKey: "a") == nil)
    default: #expect(!cache.setLifetime(.seconds(9), forKey: "a"))
    }
    #expect(events.all == [.removed(key: "a", cause: .expired)])
    #expect(cache.statistics().cost == 0)
    #expect(cache.audit() == [])
  }

  @Test("Reads postpone the end of an idle time; peeks do not")
  func idle() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", options: .idleLimit(.seconds(10)))
    for _ in 0..<5 {
      scene.clock.advance(by: .seconds(9))
      #expect(cache.value(forKey: "a") == 1)
    }
    scene.clock.advance(by: .seconds(9))
    #expect(cache.contains("a") && cache.info(forKey: "a") != nil && cache.count() == 1)
    scene.clock.advance(by: .seconds(1))
    #expect(cache.value(forKey: "a") == nil)
  }

  @Test("A lifetime ends even if the entry is read all the time")
  func both() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(
      1, forKey: "a", options: EntryOptions(lifetime: .seconds(20), idleLimit: .seconds(10)))
    for _ in 0..<4 {
      #expect(cache.value(forKey: "a") == 1)
      scene.clock.advance(by: .seconds(5))
    }
    #expect(cache.value(forKey: "a") == nil)
  }

  @Test("The configured defaults apply to entries without their own")
  func defaults() {
    let cache: MemoryCache<String, Int> = scene.cache {
      $0.lifetime = .seconds(10)
      $0.idleLimit = .seconds(4)
    }
    cache["a"] = 1
    cache.setValue(
      2, forKey: "b",
      options: EntryOptions(lifetime: .seconds(Int64.max), idleLimit: .seconds(Int64.max)))
    cache.setValue(
      3, forKey: "c", options: EntryOptions(lifetime: .seconds(20), idleLimit: .seconds(20)))
    scene.clock.advance(by: .seconds(4))
    #expect(cache["a"] == nil)
    scene.clock.advance(by: .seconds(10))
    #expect(cache["c"] == 3)
    scene.clock.advance(by: .seconds(6))
    #expect(cache["c"] == nil)
    scene.clock.advance(by: .seconds(1 << 40))
    #expect(cache["b"] == 2)
  }

  @Test(
    "Lifetimes and idle limits of zero or less end at once, and remove the older value",
    arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min), .nanoseconds(999_999)])
  func ended(duration: Duration) {
    let cache: MemoryCache<String, Int> = scene.cache(count: 2)
    cache["other"] = 0
    cache["a"] = 1
    cache.setValue(2, forKey: "a", lifetime: .after(duration))
    #expect(cache["a"] == nil)
    cache["a"] = 1
    cache.setValue(2, forKey: "a", options: .idleLimit(duration))
    #expect(cache["a"] == nil)
    #expect(cache.count() == 1 && cache["other"] == 0)
    #expect(cache.audit() == [])
  }

  @Test("A lifetime is set, and an idle limit stays")
  func setLifetime() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", lifetime: .seconds(5))
    #expect(cache.setLifetime(.seconds(90), forKey: "a"))
    #expect(cache.setLifetime(.seconds(50), forKey: "a"))
    scene.clock.advance(by: .seconds(49))
    #expect(cache.contains("a"))
    cache.setValue(2, forKey: "b")
    #expect(cache.setLifetime(.seconds(1), forKey: "b"))
    #expect(cache.info(forKey: "b")?.expires != nil)
    #expect(cache.setLifetime(.unlimited, forKey: "b"))
    #expect(cache.info(forKey: "b")?.expires == nil)
    cache.setValue(4, forKey: "d")
    cache.setLifetime(.seconds(1), forKey: "d")
    scene.clock.advance(by: .seconds(1))
    #expect(!cache.contains("a") && cache.contains("b"))
    #expect(cache.trim(.expired).count == 1)
    #expect(!cache.setLifetime(.seconds(5), forKey: "a"))
    cache.setValue(
      3, forKey: "c", options: EntryOptions(lifetime: .seconds(5), idleLimit: .seconds(3)))
    cache.setLifetime(.seconds(Int64.max), forKey: "c")
    scene.clock.advance(by: .seconds(3))
    #expect(!cache.contains("c"))
    #expect(cache.audit() == [])
  }

  @Test("Removing expired entries removes them and nothing else, in any number")
  func removeExpired() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for number in 0..<1000 {
      cache.setValue(
        number, forKey: number, options: EntryOptions(cost: 1, lifetime: .seconds(1 + number % 10)))
    }
    cache.setValue(0, forKey: -1, options: .idleLimit(.seconds(2)))
    #expect(cache.trim(.expired) == RemovalSummary())
    scene.clock.advance(by: .seconds(3))
    #expect(cache.trim(.expired) == RemovalSummary(count: 301, cost: 300))
    #expect(cache.count() == 700)
    #expect(cache.audit() == [])
  }

  @Test("Expired entries are removed periodically, by one job however many writes there are")
  func timer() {
    let cache: MemoryCache<Int, Int> = scene.cache { $0.maintenanceInterval = .seconds(5) }
    cache[0] = 0
    #expect(scene.background.delays.isEmpty)
    for number in 1...100 { cache.setValue(number, forKey: number, lifetime: .seconds(7)) }
    #expect(scene.background.delays == [.seconds(5)])
    scene.advance(by: .seconds(5))
    #expect(cache.statistics().count == 101)
    #expect(scene.background.delays == [.seconds(5)])
    scene.advance(by: .seconds(5))
    #expect(cache.statistics().count == 1)
    // Nothing is left that can expire.
    #expect(scene.background.delays.isEmpty)
    cache.setValue(1, forKey: 1, options: .idleLimit(.seconds(1)))
    #expect(scene.background.delays == [.seconds(5)])
  }

  @Test("An interval of zero or less means none, and a short one means at least ten milliseconds")
  func shortIntervals() {
    for (interval, delays) in [
      (Duration.zero, []), (.seconds(-1), []), (.nanoseconds(1), [.milliseconds(10)]),
      (.milliseconds(10), [.milliseconds(10)]), (.milliseconds(11), [.milliseconds(11)]),
    ] as [(Duration, [Duration])] {
      let scene = MemoryScene()
      let cache: MemoryCache<Int, Int> = scene.cache { $0.maintenanceInterval = interval }
      cache.setValue(1, forKey: 1, lifetime: .seconds(1))
      #expect(scene.background.delays == delays, "\(interval)")
    }
  }

  @Test("The job does not keep the cache alive")
  func timerOfADeadCache() {
    let ended = Record<Bool>()
    do {
      let cache: MemoryCache<Int, Witness> = scene.cache()
      cache.setValue(Witness { ended.add(true) }, forKey: 1, lifetime: .seconds(1))
    }
    #expect(ended.all == [true])
    scene.advance(by: .seconds(100))
    #expect(scene.background.delays.isEmpty)
  }

  @Test("A clock that is set back prolongs no lifetime")
  func setBack() {
    let clock = SeparateClock()
    let cache: MemoryCache<Int, Int> = scene.cache { $0.clock = clock }
    cache.setValue(1, forKey: 1, lifetime: .seconds(10))
    cache.setValue(2, forKey: 2, options: .idleLimit(.seconds(8)))
    clock.set(by: .seconds(-3600))
    cache.setValue(3, forKey: 3, lifetime: .seconds(10))
    clock.advance(by: .seconds(7))
    #expect(cache.keys() == [3, 2, 1])
    #expect(cache.value(forKey: 2) == 2)
    clock.advance(by: .seconds(3))
    #expect(cache.keys() == [2])
    clock.advance(by: .seconds(5))
    #expect(cache.keys() == [])
    #expect(cache.audit() == [])
  }

  @Test("A clock set ahead ends lifetimes, and once it is set right again, none ends early")
  func setAhead() {
    let clock = SeparateClock()
    let cache: MemoryCache<Int, Int> = scene.cache { $0.clock = clock }
    cache.setValue(1, forKey: 1, lifetime: .seconds(10))
    clock.set(by: .seconds(3600))
    #expect(!cache.contains(1))
    clock.set(by: .seconds(-3600))
    cache.setValue(2, forKey: 2, lifetime: .seconds(10))
    clock.advance(by: .seconds(9))
    #expect(cache.contains(2))
    clock.advance(by: .seconds(1))
    #expect(!cache.contains(2))
  }

  @Test("A clock that jumps to the extremes does no harm")
  func jumps() {
    let clock = SeparateClock()
    let cache: MemoryCache<Int, Int> = scene.cache { $0.clock = clock }
    cache.setValue(
      1, forKey: 1, options: EntryOptions(lifetime: .seconds(10), idleLimit: .seconds(8)))
    clock.set(by: .milliseconds(Int64.max))
    #expect(cache.count() == 0)
    for _ in 0..<2 { clock.set(by: .milliseconds(Int64.min)) }
    cache.setValue(
      3, forKey: 3, options: EntryOptions(lifetime: .seconds(1), idleLimit: .seconds(1)))
    #expect(cache.contains(3))
    cache.trim(.unused(for: .seconds(5)))
    #expect(cache.audit() == [])
  }
}
