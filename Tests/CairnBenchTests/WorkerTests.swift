import Cairn
import CairnLibC
import Synchronization
import Testing

@testable import CairnBench

/// A store in memory that can be made to return wrong values.
private final class LyingStore: KeyValueStore {
  static let name = "liar"
  static let abilities: StoreAbilities = [.zeroCopyReads, .durableWrites, .concurrentWrites]
  /// What is returned instead of the value. Set only between a worker's requests.
  static let lie = Mutex<(@Sendable ([UInt8]) -> [UInt8]?)?>(nil)
  /// The threads that have read, and those that have written each key.
  static let readers = Mutex<Set<pthread_t>>([])
  static let writers = Mutex<[[UInt8]: Set<pthread_t>]>([:])
  private let values = Mutex<[[UInt8]: [UInt8]]>([:])

  init(at path: String, options: StoreOptions) throws {}

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    let key = Self.copy(key)
    Self.readers.withLock { _ = $0.insert(pthread_self()) }
    guard let value = values.withLock({ $0[key] }) else { return nil }
    guard let lie = Self.lie.withLock({ $0 }) else { return value }
    return lie(value)
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    let (key, value) = (Self.copy(key), Self.copy(value))
    Self.writers.withLock { _ = $0[key, default: []].insert(pthread_self()) }
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
  private func configuration(
    _ directory: String, _ kind: StoreKind = .cairn, threadCount: Int = 1
  ) -> WorkerConfiguration {
    WorkerConfiguration(
      store: kind, directory: directory, keyCount: 200, valueByteCount: 100, seed: 1,
      threadCount: threadCount)
  }

  private func worker(_ directory: String) -> Worker<LyingStore> {
    Worker(configuration(directory))
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
    "fails the run when a store returns anything other than what was written",
    arguments: lies.indices,
    [
      Workload.get, .getZeroCopy, .getMany, .getTwoThreads, .getZeroCopyTwoThreads, .mixed95to5,
      .mixed95to5TwoThreads,
    ])
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

  @Test(
    "reads on as many threads as requested, or as the row's name says",
    arguments: [
      (Workload.get, 3), (.getZeroCopy, 3), (.getZipf, 3), (.getMissing, 3), (.mixed95to5, 3),
      (.getTwoThreads, 2), (.getMissingTwoThreads, 2), (.mixed95to5TwoThreads, 2),
    ])
  func threads(workload: Workload, count: Int) throws {
    let directory = try TemporaryDirectory()
    let worker = Worker<LyingStore>(configuration(directory.path, threadCount: 3))
    _ = try worker.answer(.prepare)
    LyingStore.readers.withLock { $0 = [] }
    LyingStore.writers.withLock { $0 = [:] }
    _ = try worker.answer(.run(workload, round: 0, milliseconds: 20))
    #expect(LyingStore.readers.withLock { $0.count } == count)
    if workload.changesMain {
      let writers = LyingStore.writers.withLock { $0 }
      #expect(writers.count > 10 && writers.values.allSatisfy { $0.count == 1 })
      #expect(Set(writers.values.joined()).count == count)
    }
    _ = try worker.answer(.check(workload))
  }

  @Test("reads again only after every value was read in the reopened store")
  func readingAgain() throws {
    let directory = try TemporaryDirectory()
    let worker = Worker<CairnStoreAdapter>(configuration(directory.path, .cairnFirstRead))
    _ = try worker.answer(.prepare)
    let filled = try worker.openMain()
    let result = try worker.answer(.run(.getZeroCopyAgain, round: 0, milliseconds: 2))
    #expect((result?.operationCount ?? 0) > 0)
    let opened = try worker.openMain()
    #expect(filled !== opened)
    _ = try worker.answer(.run(.getZeroCopyAgain, round: 1, milliseconds: 2))
    #expect(try worker.openMain() === opened)
    try worker.finish()
  }

  @Test(
    "keeps overwriting for as long as requested; other rows end as usual",
    arguments: [Workload.overwrite, .churn, .mixed95to5, .mixed50to50])
  func leastTime(workload: Workload) throws {
    let directory = try TemporaryDirectory()
    func run(_ milliseconds: Int, _ workload: Workload) throws -> RoundResult {
      var configuration = configuration(directory.path)
      configuration.leastMilliseconds = milliseconds
      let worker = Worker<LyingStore>(configuration)
      _ = try worker.answer(.prepare)
      let result = try #require(try worker.answer(.run(workload, round: 0, milliseconds: 1)))
      _ = try worker.answer(.check(workload))
      #expect(result.latencies.count > 0)
      return result
    }
    #expect(try run(60, workload).nanoseconds >= 60_000_000)
    #expect(try run(60, .delete).operationCount <= 200)
    #expect(try run(0, .overwrite).operationCount <= 200)
  }

  @Test("syncs once a second in the rows named so, and in no others")
  func intervals() {
    for kind in StoreKind.allCases {
      let worker = Worker<LyingStore>(configuration("", kind))
      let isSynced = kind == .cairnInterval || kind == .lmdbInterval
      #expect(
        worker.storeOptions(.process).durability
          == (isSynced ? .interval(.seconds(1)) : .process))
      #expect(worker.storeOptions(.durable).durability == .durable)
      if isSynced { #expect(!kind.supports(.durablePut)) }
    }
  }
}
