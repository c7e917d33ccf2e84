import Cairn
import CairnLibC
import Synchronization
import Testing

@testable import CairnBench

/// A cache that can be made to return wrong values.
private final class LyingPeer: MemoryPeer {
  static let name = "liar"
  /// What is returned instead of the value. Set only between a worker's requests.
  static let lie = Mutex<(@Sendable ([UInt8]) -> [UInt8]?)?>(nil)
  private let values = Mutex<[String: [UInt8]]>([:])

  init(countLimit: Int, at path: String) {}
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

  private func configuration(
    _ kind: StoreKind, _ directory: String, threadCount: Int = 1
  ) -> WorkerConfiguration {
    WorkerConfiguration(
      store: kind, directory: directory, keyCount: 200, valueByteCount: 100, seed: 1,
      threadCount: threadCount)
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
    let directory = try TemporaryDirectory()
    func measure<Cache: MemoryPeer>(_ type: Cache.Type, _ kind: StoreKind) throws {
      let path = "\(directory.path)/\(kind.rawValue)"
      #expect(unsafe mkdir(path, 0o700) == 0)
      let worker = MemoryWorker<Cache>(configuration(kind, path, threadCount: 3))
      #expect(MemoryWorker<Cache>.storeName == kind.rawValue && kind.supports(workload))
      try self.measure(worker, workload)
      _ = try worker.answer(.refill)
      _ = try worker.answer(.check(workload))
      try worker.finish()
    }
    try measure(MemoryCachePeer.self, .memoryCache)
    try measure(DictionaryPeer.self, .dictionary)
    try measure(WeakNodeCache.self, .weakNodes)
    try measure(NSCachePeer.self, .nsCache)
    try measure(DiskCachePeer<WholeTier>.self, .tieredCache)
    try measure(DiskCachePeer<WholeTierOfFullDisk>.self, .tieredCacheFull)
    try measure(DiskCachePeer<TinyTier>.self, .tieredCacheMissing)
    try measure(DiskCachePeer<NoTier>.self, .diskCache)
  }

  /// How many reads the memory tier served, of two reads of each of ten keys.
  private func hits<Tier: MemoryTierSize>(_ tier: Tier.Type) throws -> UInt64? {
    let directory = try TemporaryDirectory()
    let peer = try DiskCachePeer<Tier>(countLimit: 10, at: directory.path + "/c")
    for key in 0..<10 { try peer.setValue([UInt8(key)], forKey: "\(key)") }
    for turn in 0..<20 { #expect(try peer.value(forKey: "\(turn % 10)") == [UInt8(turn % 10)]) }
    let hits = peer.cache.memory?.statistics().hitCount
    try peer.close()
    return hits
  }

  @Test("a memory tier serves all reads or hardly any, or is absent")
  func tiers() throws {
    #expect(try hits(WholeTier.self) == 20)
    #expect(try hits(WholeTierOfFullDisk.self) == 20)
    #expect(try hits(TinyTier.self) == 0)
    #expect(try hits(NoTier.self) == nil)
  }

  private static let lies: [(@Sendable ([UInt8]) -> [UInt8]?)] = [
    { _ in nil }, { Array($0.dropLast()) }, { [$0[0] ^ 1] + $0.dropFirst() },
    { $0.dropLast() + [$0[99] ^ 0x80] },
  ]

  @Test(
    "fails the run when a cache returns anything other than what was set", arguments: lies.indices,
    [Workload.memoryGet, .memoryGetTwoThreads, .memoryMixed95to5])
  func dishonest(lie: Int, workload: Workload) throws {
    let worker = MemoryWorker<LyingPeer>(configuration(.memoryCache, ""))
    _ = try worker.answer(.prepare)
    LyingPeer.lie.withLock { $0 = Self.lies[lie] }
    defer { LyingPeer.lie.withLock { $0 = nil } }
    let error = #expect(throws: BenchFailure.self) {
      try worker.answer(.run(workload, round: 0, milliseconds: 2))
    }
    let message = error.map(String.init(describing:)) ?? ""
    #expect(message.hasPrefix("MISMATCH: store liar, workload \(workload.rawValue), key"))
  }

  /// The values left after six were set one after another in a cache for three.
  private func left<Cache: MemoryPeer>(_ type: Cache.Type) throws -> [Int] {
    let cache = try Cache(countLimit: 3, at: "")
    let keys = (0..<6).map { Cache.key("\($0)") }
    for key in keys { try cache.setValue([1], forKey: key) }
    return try keys.indices.filter { try cache.value(forKey: keys[$0]) != nil }
  }

  @Test("a full cache keeps what was set last; NSCache keeps what was set first")
  func fullCache() throws {
    #expect(try left(MemoryCachePeer.self) == [3, 4, 5])
    #expect(try left(WeakNodeCache.self) == [3, 4, 5])
    #expect(try left(NSCachePeer.self).count == 3)
  }
}
