import Synchronization
import Testing

@testable import CairnBench

/// A cache that can be made to return wrong values.
private final class LyingPeer: MemoryPeer {
  static let name = "liar"
  /// What is returned instead of the value. Set only between a worker's requests.
  static let lie = Mutex<(@Sendable ([UInt8]) -> [UInt8]?)?>(nil)
  private let values = Mutex<[String: [UInt8]]>([:])

  init(countLimit: Int) {}
  static func key(_ text: String) -> String { text }

  func value(forKey key: String) -> [UInt8]? {
    guard let value = values.withLock({ $0[key] }) else { return nil }
    guard let lie = Self.lie.withLock({ $0 }) else { return value }
    return lie(value)
  }

  func setValue(_ value: [UInt8], forKey key: String) { values.withLock { $0[key] = value } }
}

@Suite("A worker with a cache in memory", .serialized)
struct MemoryWorkerTests {
  private static let workloads = Workload.allCases.filter(\.isInMemory)

  private func configuration(_ kind: StoreKind) -> WorkerConfiguration {
    WorkerConfiguration(store: kind, directory: "", keyCount: 200, valueByteCount: 100, seed: 1)
  }

  private func measure(_ worker: some WorkerServing, _ workload: Workload) throws {
    _ = try worker.answer(.prepare)
    let result = try #require(try worker.answer(.run(workload, round: 0, milliseconds: 2)))
    #expect(result.operationCount > 0)
    #expect(result.latencies.count > 0)
    _ = try worker.answer(.check(workload))
  }

  @Test("measures every workload of every cache", arguments: workloads)
  func honest(workload: Workload) throws {
    try measure(MemoryWorker<MemoryCachePeer>(configuration(.memoryCache)), workload)
    try measure(MemoryWorker<DictionaryPeer>(configuration(.dictionary)), workload)
    try measure(MemoryWorker<WeakNodeCache>(configuration(.weakNodes)), workload)
    try measure(MemoryWorker<NSCachePeer>(configuration(.nsCache)), workload)
  }

  private static let lies: [(@Sendable ([UInt8]) -> [UInt8]?)] = [
    { _ in nil }, { Array($0.dropLast()) }, { [$0[0] ^ 1] + $0.dropFirst() },
    { $0.dropLast() + [$0[99] ^ 0x80] },
  ]

  @Test(
    "fails the run when a cache gives anything else than was set", arguments: lies.indices,
    [Workload.memoryGet, .memoryGetTwoThreads, .memoryMixed95to5])
  func dishonest(lie: Int, workload: Workload) throws {
    let worker = MemoryWorker<LyingPeer>(configuration(.memoryCache))
    _ = try worker.answer(.prepare)
    LyingPeer.lie.withLock { $0 = Self.lies[lie] }
    defer { LyingPeer.lie.withLock { $0 = nil } }
    let error = #expect(throws: BenchFailure.self) {
      try worker.answer(.run(workload, round: 0, milliseconds: 2))
    }
    let message = error.map(String.init(describing:)) ?? ""
    #expect(message.hasPrefix("MISMATCH: store liar, workload \(workload.rawValue), key"))
  }

  /// The remaining values after six were set one after the other in a cache for three.
  private func left<Cache: MemoryPeer>(_ type: Cache.Type) -> [Int] {
    let cache = Cache(countLimit: 3)
    let keys = (0..<6).map { Cache.key("\($0)") }
    for key in keys { cache.setValue([1], forKey: key) }
    return keys.indices.filter { cache.value(forKey: keys[$0]) != nil }
  }

  @Test("keeps what was set last in a cache that is full, where NSCache keeps what came first")
  func fullCache() {
    #expect(left(MemoryCachePeer.self) == [3, 4, 5])
    #expect(left(WeakNodeCache.self) == [3, 4, 5])
    #expect(left(NSCachePeer.self).count == 3)
  }
}
