import CairnStore
import Dispatch
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("When reads from memory are reported to the disk", .timeLimit(.minutes(30)))
struct TieredTellingTests {
  let scene = TieredScene()

  private func keysByRecency<Value>(_ cache: DiskCache<Int, Value>) throws -> [Int] {
    try cache.store.keysByRecency().map { bytes in
      try bytes.withBytes { try KeyCoder<Int>.integer.decode($0) }
    }
  }

  @Test("An entry that is read again after it was taken for a report is reported once more")
  func readWhileTold() throws {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 3000)
    for key in 0..<1000 { cache[key] = key }
    for key in 0..<1000 { cache.read(key) }
    #expect(cache.takeRecentKeys() == Array(0..<1000))
    // None of them is reported yet, so this read changes only the order.
    cache.read(3)
    #expect(cache.takeRecentKeys() == [3])
    #expect(cache.takeRecentKeys() == [])
  }

  @Test("A read is reported even if memory has dropped the entry meanwhile")
  func droppedBefore() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 2)
    for key in 0..<5 { try cache.setValue(key, forKey: key) }
    for key in [3, 0, 1] { _ = try cache.value(forKey: key) }
    #expect(try !cache.tier.contains(3))
    cache.recency?.tell()
    #expect(try keysByRecency(cache) == [2, 4, 0, 1, 3])
    // A report happens only once.
    _ = try cache.storedValue(forKey: 2)
    cache.recency?.tell()
    #expect(try keysByRecency(cache) == [4, 0, 1, 3, 2])
  }

  @Test("If memory is short, it is freed while another report reads the disk")
  func freedMeanwhile() throws {
    let clock = GatedClock()
    let cache: DiskCache<Int, Int> = try scene.cache { $0.store.clock = clock }
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    for key in 0..<3 { _ = try cache.value(forKey: key) }
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      clock.waitsHere()
      cache.recency?.tell()
      ended.signal()
    }
    #expect(comesTrue { clock.isWaiting })
    let freed = DispatchSemaphore(value: 0)
    let observation = cache.tier.observe { event, _ in
      if case .removedAll = event { freed.signal() }
    }
    Thread.detachNewThread {
      cache.respond(to: .critical)
      ended.signal()
    }
    #expect(freed.wait(timeout: .now() + 10) == .success)
    clock.open()
    for _ in 0..<2 { ended.wait() }
    observation.cancel()
    #expect(try keysByRecency(cache) == [0, 1, 2])
  }

  private static let coders = [KeyCoder<Int>.integer, .json().comparingByEquality()]

  @Test(
    "Reads are reported before a batch that begins below the limit and ends above",
    arguments: coders)
  func beforeBatch(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(keys: coder, values: .standard, count: 10)
    for key in 0..<8 { try cache.setValue(key, forKey: key) }
    _ = try cache.value(forKey: 0)
    try cache.setValues((8..<12).map { (key: $0, value: $0) })
    #expect(try Set(cache.keys()) == [0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  }

  @Test(
    "Reads are reported before a large value that needs the room of others", arguments: coders,
    0..<3)
  func beforeLargeValue(coder: KeyCoder<Int>, way: Int) async throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache(
      keys: coder, values: .standard, bytes: 512 << 10)
    for key in 0..<60 { try await cache.setValue([UInt8](repeating: 1, count: 8000), forKey: key) }
    #expect(try cache.count() == 60)
    for key in [1, 0] { _ = try cache.value(forKey: key) }
    let large = [UInt8](repeating: 2, count: 64 << 10)
    switch way {
    case 0: try await cache.setValue(large, forKey: 60)
    case 1: _ = try await cache.compareAndSet(large, forKey: 60, expecting: nil)
    default: _ = try await cache.value(forKey: 60) { large }
    }
    let keys = try Set(cache.keys())
    #expect(keys.count < 60 && keys.isSuperset(of: [0, 1, 60]) && !keys.contains(2))
    let order = try cache.store.keysByRecency().suffix(3).map { bytes in
      try bytes.withBytes { try coder.decode($0) }
    }
    #expect(order == [1, 0, 60])
  }
}

/// A clock for which one thread has to wait.
private final class GatedClock: WallClock {
  private struct State {
    // By identity: a thread holds what it runs, which may hold this clock.
    var waiter: ObjectIdentifier?
    var isWaiting = false
  }

  private let state = Lock(State())
  private let gate = DispatchSemaphore(value: 0)

  var isWaiting: Bool { state.withLock { $0.isWaiting } }

  /// Makes this thread wait when it next reads the time.
  func waitsHere() { state.withLock { $0.waiter = ObjectIdentifier(Thread.current) } }

  func open() { gate.signal() }

  func now() -> Timestamp {
    let waits = state.withLock { state in
      guard state.waiter == ObjectIdentifier(Thread.current), !state.isWaiting else { return false }
      state.isWaiting = true
      return true
    }
    if waits { gate.wait() }
    return ManualClock.start
  }
}
