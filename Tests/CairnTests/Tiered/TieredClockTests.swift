import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Both tiers use one clock")
struct TieredClockTests {
  let scene = TieredScene()
  let clock = SeparateClock()

  private func open() throws -> DiskCache<Int, Int> {
    try scene.cache { [clock] in $0.store.clock = clock }
  }

  /// Whether a key has a value in memory and on disk, as each tier sees it.
  private func tiers(_ key: Int, in cache: DiskCache<Int, Int>) throws -> [Bool] {
    [try cache.tier.contains(key), try cache.containsStored(key)]
  }

  @Test("A clock set back while the cache is open prolongs no lifetime, in either tier")
  func setBack() throws {
    let cache = try open()
    try cache.setValue(1, forKey: 1, lifetime: .seconds(10))
    clock.set(by: .seconds(-3600))
    try cache.setValue(2, forKey: 2, lifetime: .seconds(20))
    clock.advance(by: .seconds(9))
    #expect(try tiers(1, in: cache) == [true, true])
    clock.advance(by: .seconds(1))
    #expect(try tiers(1, in: cache) == [false, false])
    #expect(try tiers(2, in: cache) == [true, true])
    clock.advance(by: .seconds(10))
    #expect(try tiers(2, in: cache) == [false, false])
  }

  @Test("A clock set ahead ends lifetimes in both tiers; once set right, none ends early")
  func setAhead() throws {
    let cache = try open()
    try cache.setValue(1, forKey: 1, lifetime: .seconds(10))
    clock.set(by: .seconds(3600))
    #expect(try tiers(1, in: cache) == [false, false])
    clock.set(by: .seconds(-3600))
    try cache.setValue(2, forKey: 2, lifetime: .seconds(10))
    clock.advance(by: .seconds(9))
    #expect(try tiers(2, in: cache) == [true, true])
    clock.advance(by: .seconds(1))
    #expect(try tiers(2, in: cache) == [false, false])
  }

  @Test("If the clock is behind the store's time, memory holds nothing longer than the disk")
  func behindAtOpen() throws {
    let first = try open()
    try first.setValue(1, forKey: 1, lifetime: .seconds(100))
    try first.close()
    scene.disk.background.discardAll()
    clock.set(by: .seconds(-3600))
    let cache = try open()
    #expect(try cache.value(forKey: 1) == 1)
    try cache.setValue(2, forKey: 2, lifetime: .seconds(10))
    for _ in 0..<12 {
      clock.advance(by: .seconds(10))
      for key in 1...2 {
        let tiers = try tiers(key, in: cache)
        #expect(tiers[0] == tiers[1], "\(key): \(tiers)")
      }
    }
    #expect(try cache.value(forKey: 1) == nil && cache.value(forKey: 2) == nil)
  }

  @Test(
    "However the clock is set, memory holds what the disk has, and accepts what it returns",
    arguments: 0..<10)
  func anyTime(run: Int) throws {
    var random = FuzzRandom(seed: TestSeed.current &+ UInt64(run))
    var cache = try open()
    for _ in 0..<400 {
      let key = random.below(6)
      switch random.below(12) {
      case 0..<4:
        try cache.setValue(
          0, forKey: key,
          options: EntryOptions(
            lifetime: .milliseconds(random.below(30_000)),
            idleLimit: random.below(3) == 0 ? .milliseconds(random.below(20_000)) : nil))
      case 4..<7: clock.advance(by: .milliseconds(random.below(8000)))
      case 7: clock.set(by: .milliseconds(random.below(80_000_000) - 40_000_000))
      case 8: clock.set(by: .milliseconds(random.below(60_000) - 30_000))
      case 9:
        if random.below(4) == 0 {
          try cache.close()
          scene.disk.background.discardAll()
          cache = try open()
        }
      default:
        if try cache.value(forKey: key) != nil {
          #expect(try cache.tier.contains(key), TestSeed.comment)
        }
      }
      #expect(try cache.audit() == [], TestSeed.comment)
    }
  }
}
