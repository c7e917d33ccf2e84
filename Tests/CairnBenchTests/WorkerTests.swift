import Cairn
import Glibc
import Synchronization
import Testing

@testable import CairnBench

/// A store in memory that can be made to return wrong values.
private final class LyingStore: KeyValueStore {
  static let name = "liar"
  static let abilities: StoreAbilities = [.zeroCopyReads, .durableWrites, .concurrentWrites]
  /// What is returned instead of the value. Set only between a worker's requests.
  static let lie = Mutex<(@Sendable ([UInt8]) -> [UInt8]?)?>(nil)
  private let values = Mutex<[[UInt8]: [UInt8]]>([:])

  init(at path: String, options: StoreOptions) throws {}

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    let key = Self.copy(key)
    guard let value = values.withLock({ $0[key] }) else { return nil }
    guard let lie = Self.lie.withLock({ $0 }) else { return value }
    return lie(value)
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    let (key, value) = (Self.copy(key), Self.copy(value))
    values.withLock { $0[key] = value }
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    let key = Self.copy(key)
    return values.withLock { $0.removeValue(forKey: key) != nil }
  }

  func close() throws {}

  private static func copy(_ span: RawSpan) -> [UInt8] {
    unsafe span.withUnsafeBytes { unsafe [UInt8]($0) }
  }
}

@Suite("A worker", .serialized)
struct WorkerTests {
  private func worker(_ directory: String) -> Worker<LyingStore> {
    Worker(
      WorkerConfiguration(
        store: .cairn, directory: directory, keyCount: 200, valueByteCount: 100, seed: 1))
  }

  private static let runnable = Workload.runOrder.filter {
    !$0.isInMemory && !$0.needs.contains(.reopening)
  }

  @Test("measures every workload of an honest store", arguments: runnable)
  func honest(workload: Workload) throws {
    let directory = try TemporaryDirectory()
    let worker = worker(directory.path)
    if workload.needsFilledStore { _ = try worker.answer(.prepare) }
    let result = try #require(try worker.answer(.run(workload, round: 0, milliseconds: 2)))
    #expect(result.operationCount > 0)
    #expect(result.latencies.count > 0)
    #expect(result.peakResidentByteCount > 0)
  }

  private static let lies: [(@Sendable ([UInt8]) -> [UInt8]?)] = [
    { _ in nil }, { Array($0.dropLast()) }, { [$0[0] ^ 1] + $0.dropFirst() },
    { $0.dropLast() + [$0[99] ^ 0x80] },
  ]

  @Test(
    "fails the run when a store gives anything else than was written",
    arguments: lies.indices,
    [Workload.get, .getZeroCopy, .getMany, .getTwoThreads, .getZeroCopyTwoThreads, .mixed95to5])
  func dishonest(lie: Int, workload: Workload) throws {
    let directory = try TemporaryDirectory()
    let worker = worker(directory.path)
    _ = try worker.answer(.prepare)
    LyingStore.lie.withLock { $0 = Self.lies[lie] }
    defer { LyingStore.lie.withLock { $0 = nil } }
    let error = #expect(throws: BenchFailure.self) {
      try worker.answer(.run(workload, round: 0, milliseconds: 2))
    }
    let message = error.map(String.init(describing:)) ?? ""
    #expect(message.hasPrefix("MISMATCH: store liar, workload \(workload.rawValue), key user:"))
  }
}
