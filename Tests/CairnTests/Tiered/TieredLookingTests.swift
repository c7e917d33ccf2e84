import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Reads of a cache on disk that are not accesses, and reads that return more")
struct TieredLookingTests {
  let scene = TieredScene()

  @Test("A peek is neither a hit nor a miss, and keeps nothing in memory")
  func peeks() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    cache.tier.removeAll()
    #expect(try cache.peekValue(forKey: "a") == 1 && cache.peekValue(forKey: "b") == nil)
    #expect(try !cache.tier.contains("a"))
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 0 && statistics.missCount == 0)
    #expect(statistics["memory.misses"] == 0)
    _ = try (cache.lookUp("a"), cache.lookUp("b"))
    #expect(try cache.statistics().hitCount == 1 && cache.statistics().missCount == 1)
    #expect(try cache.tier.contains("a"))
  }

  /// Makes something happen when a key is next encoded after this many others.
  private final class EncodingHook: Sendable {
    private let state = Lock<(count: Int, body: @Sendable () -> Void)?>(nil)

    var isDone: Bool { state.withLock { $0 == nil } }

    func arm(after count: Int, _ body: @escaping @Sendable () -> Void) {
      state.withLock { $0 = (count, body) }
    }

    var coder: KeyCoder<String> {
      .custom(
        encode: { [self] key in
          let body = state.withLock { state -> (@Sendable () -> Void)? in
            guard let armed = state else { return nil }
            state = armed.count == 0 ? nil : (armed.count - 1, armed.body)
            return armed.count == 0 ? armed.body : nil
          }
          body?()
          return Array(key.utf8)
        }, decode: { String(copying: $0) ?? "" })
    }
  }

  @Test("A value that is written between the two reads of a lookup is found")
  func writtenMeanwhile() throws {
    let hook = EncodingHook()
    let cache: DiskCache<String, Int> = try scene.disk.cache(keys: hook.coder, values: .standard)
    // Each read encodes the key.
    hook.arm(after: 1) { [unowned cache] in _ = try? cache.setValue(7, forKey: "a") }
    #expect(try cache.lookUp("a") == .found(7) && hook.isDone)
  }

  @Test("Memory that has dropped an expired value still reports that it expired")
  func expiredInMemory() throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.store.maintenanceInterval = nil }
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    scene.advance(by: .seconds(10))
    #expect(try cache.value(forKey: "a") == nil && !cache.tier.contains("a"))
    #expect(try cache.lookUp("a") == .expired && cache.lookUp("a") == .expired)
    try cache.removeExpired()
    #expect(try cache.lookUp("a") == .absent)
    try cache.close()
    #expect(throws: StoreError.self) { try cache.lookUp("a") }
    #expect(throws: StoreError.self) { try cache.peekValue(forKey: "a") }
  }

  @Test("The host's report that memory is short shrinks the tier, and no other")
  func pressure() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<10 { try cache.setValue(number, forKey: number) }
    let events = Record<CacheEvent<Int>>()
    cache.tier.observe { event, _ in
      if case .memoryPressure = event { events.add(event) }
    }
    cache.respond(to: .high)
    #expect(cache.tier.count() == 5)
    cache.respond(to: .critical)
    #expect(try cache.tier.count() == 0 && cache.count() == 10)
    #expect(events.all == [.memoryPressure(.high), .memoryPressure(.critical)])
    let disk: DiskCache<Int, Int> = try scene.disk.cache(at: scene.disk("disk"))
    try disk.setValue(1, forKey: 1)
    disk.respond(to: .critical)
    #expect(try disk.value(forKey: 1) == 1)
  }
}
