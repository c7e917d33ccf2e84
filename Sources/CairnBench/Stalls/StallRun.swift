import Cairn
import CairnStore
import Synchronization

/// How long single gets and sets take while the cache does other work: a trim, a mass expiry,
/// writes that outrun compaction. Medians hide the delays that users of a server notice.
struct StallRun {
  let isQuick: Bool
  let seed: UInt64
  let directory: String

  struct Result {
    let situation: String
    var gets = LatencyHistogram()
    var sets = LatencyHistogram()
  }

  private typealias Disk = DiskCache<Int, [UInt8]>
  private typealias Memory = MemoryCache<Int, [UInt8]>

  private static let value = [UInt8](repeating: 0xC5, count: 100)
  private var entryCount: Int { isQuick ? 2_000 : 1_000_000 }
  private var nanosecondLimit: UInt64 { isQuick ? 20_000_000 : 3_000_000_000 }

  /// Calls `body` with the result of each situation.
  func run(_ body: (Result) throws -> Void) throws {
    let count = entryCount
    try onDisk("limit reached, reads elsewhere", limit: count / 10, body) { cache, isDone in
      var random = RandomSource(seed: seed)
      while !isDone() { _ = try cache.value(forKey: random.index(below: count / 10)) }
    } writing: { number in
      count + number
    }
    try onDisk("all entries in memory", held: count, body) { _, isDone in
      while !isDone() { pause(for: .milliseconds(1)) }
    }
    try onDisk("overwrites without a break", body) { _, isDone in
      while !isDone() { pause(for: .milliseconds(1)) }
    }
    try onDisk("trim to half", body) { cache, _ in try cache.trim(.toCount(count / 2)) }
    try onDisk("removal by a closure", body) { cache, _ in
      try cache.remove { key, _ in key % 2 == 0 }
    }
    try onDisk("removal of a tag", options: .tags(["tag"]), body) { cache, isDone in
      try cache.removeAll(tagged: "tag")
      while !isDone() { pause(for: .milliseconds(1)) }
    }
    try onDisk("end of all lifetimes", options: .lifetime(.seconds(1)), body) { cache, _ in
      try cache.trim(.expired)
    }
    try onDisk("values of 64 MiB", body) { cache, isDone in
      let large = [UInt8](repeating: 1, count: isQuick ? 1 << 20 : 64 << 20)
      while !isDone() { try cache.setValue(large, forKey: -1) }
    }
    try inMemory("memory: trim to half", body) { $0.trim(.toCount(count / 2)) }
    try inMemory("memory: removal by a closure", body) { $0.remove { key, _ in key % 2 == 0 } }
    try inMemory("memory: end of all lifetimes", lifetime: .seconds(1), body) {
      $0.trim(.expired)
    }
  }

  /// - Parameters:
  ///   - limit: the maximum number of entries on disk, or `nil` for `entryCount` entries and no
  ///     limit.
  ///   - held: the maximum number of entries in memory, or `nil` for `limit`, or for at most 10,000
  ///     if `limit` is `nil` too.
  ///   - work: the work during the measurement. The closure passed to it returns whether the time
  ///     is over.
  ///   - newKey: returns the key of each write, by its number; `nil`: one of the existing keys.
  private func onDisk(
    _ situation: String, limit: Int? = nil, held: Int? = nil, options: EntryOptions = .standard,
    _ body: (Result) throws -> Void,
    during work: @escaping @Sendable (Disk, () -> Bool) throws -> Void,
    writing newKey: (@Sendable (Int) -> Int)? = nil
  ) throws {
    let path = directory + "/stalls"
    var configuration = DiskCacheConfiguration(
      countLimit: limit, byteLimit: nil,
      memory: MemoryConfiguration(
        countLimit: held ?? limit ?? min(entryCount, 10_000), costLimit: nil))
    configuration.store.durability = .process
    configuration.store.log = .silent
    let cache = try Disk.open(.path(path), configuration: configuration)
    let keyCount = limit ?? entryCount
    for key in 0..<keyCount { try cache.setValue(Self.value, forKey: key, options: options) }
    let result = try measure(situation, keyCount) {
      try cache.value(forKey: $0)
    } set: {
      try cache.setValue(Self.value, forKey: newKey?($1) ?? $0)
    } during: {
      try work(cache, $0)
    }
    try cache.close()
    DirectoryTree.remove(path)
    try body(result)
  }

  private func inMemory(
    _ situation: String, lifetime: Lifetime = .standard, _ body: (Result) throws -> Void,
    during work: @escaping @Sendable (Memory) -> Void
  ) throws {
    let cache = Memory(configuration: MemoryConfiguration())
    for key in 0..<entryCount { cache.setValue(Self.value, forKey: key, lifetime: lifetime) }
    try body(
      try measure(situation, entryCount) {
        cache.value(forKey: $0)
      } set: { key, _ in
        cache.setValue(Self.value, forKey: key)
      } during: { _ in
        work(cache)
      })
  }

  private final class Flag: Sendable {
    private let isSet = Atomic(false)
    func set() { isSet.store(true, ordering: .releasing) }
    func callAsFunction() -> Bool { isSet.load(ordering: .acquiring) }
  }

  /// Gets and sets in turn on one thread, until the time is over and the other thread has done its
  /// work.
  private func measure(
    _ situation: String, _ keyCount: Int,
    get: @escaping @Sendable (Int) throws -> [UInt8]?,
    set: @escaping @Sendable (_ key: Int, _ number: Int) throws -> Void,
    during work: @escaping @Sendable (() -> Bool) throws -> Void
  ) throws -> Result {
    let (isTimeOver, isWorkDone) = (Flag(), Flag())
    let results = try ThreadTeam.run(2) { thread -> Result? in
      if thread == 0 {
        defer { isWorkDone.set() }
        try work { isTimeOver() }
        return nil
      }
      defer { isTimeOver.set() }
      var result = Result(situation: situation)
      var random = RandomSource(seed: seed)
      let start = monotonicNanoseconds()
      var number = 0
      while true {
        if monotonicNanoseconds() - start >= nanosecondLimit {
          isTimeOver.set()
          if isWorkDone() { break }
        }
        let key = random.index(below: keyCount)
        let began = monotonicNanoseconds()
        let value = try get(key)
        let read = monotonicNanoseconds()
        try set(key, number)
        result.gets.record(read - began)
        result.sets.record(monotonicNanoseconds() - read)
        if let value, value != Self.value {
          throw BenchFailure.mismatch(
            store: "cairn", workload: situation, key: "\(key)", detail: "the value is wrong")
        }
        number += 1
      }
      return result
    }
    guard let result = results.compactMap({ $0 }).first else {
      preconditionFailure("one thread returns a result")
    }
    return result
  }

  static let head = ["while", "get 99.9 %", "longest", "set 99.9 %", "longest"]

  static func row(_ result: Result) -> [String] {
    [result.situation]
      + [result.gets, result.sets].flatMap { latencies in
        [0.999, 1].map { Figures.duration(latencies.percentile($0)) }
      }
  }
}
