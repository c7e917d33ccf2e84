import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Admission to the disk", .timeLimit(.minutes(10)))
struct AdmissionTests {
  let scene = TieredScene()

  private func cache(
    held: Int? = nil, count: Int? = nil, admission: CacheAdmission = .secondRequest,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> DiskCache<String, String> {
    try scene.cache(held: held, count: count) {
      $0.admission = admission
      change(&$0)
    }
  }

  @Test("A value that is loaded once is in memory only, and goes to disk the second time")
  func secondLoad() async throws {
    let cache = try cache()
    #expect(try await cache.value(forKey: "a") { "first" } == "first")
    #expect(try await cache.value(forKey: "a") { "unasked" } == "first")
    #expect(try cache.storedValue(forKey: "a") == nil)
    #expect(try cache.statistics().admissionRefusedCount == 1)
    cache.tier.removeAll()
    #expect(try await cache.value(forKey: "a") { "second" } == "second")
    #expect(try cache.storedValue(forKey: "a") == "second")
    cache.tier.removeAll()
    #expect(try await cache.value(forKey: "a") { "unasked" } == "second")
    #expect(try cache.statistics().admissionRefusedCount == 1)
    #expect(try cache.audit() == [])
  }

  @Test("A value that is set is written at once, and so is every value by default")
  func set() async throws {
    let cache = try cache()
    try cache.synchronous { try $0.setValue("set", forKey: "a") }
    #expect(try cache.storedValue(forKey: "a") == "set")
    try await cache.close()
    let always: DiskCache<String, String> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("always"))
    _ = try await always.value(forKey: "b") { "loaded" }
    #expect(try always.storedValue(forKey: "b") == "loaded")
    #expect(try always.statistics().admissionRefusedCount == 0 && always.sketch == nil)
  }

  @Test("Without memory, a refused value is returned to the caller and loaded again")
  func diskOnly() async throws {
    let cache: DiskCache<String, String> = try scene.disk.cache { $0.admission = .secondRequest }
    #expect(try await cache.value(forKey: "a") { "first" } == "first")
    #expect(try cache.value(forKey: "a") == nil && cache.count() == 0)
    #expect(try await cache.value(forKey: "a") { "second" } == "second")
    #expect(try cache.value(forKey: "a") == "second")
    #expect(cache.loadStatistics.startedCount == 2)
    #expect(cache.loadStatistics.unkeptCount == 0 && cache.loadStatistics.outdatedCount == 0)
  }

  @Test("A key that the disk has is written, also after its lifetime, and nothing older is served")
  func stalePredecessor() async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(3600)
    let cache = try cache { $0.loadPolicy = policy }
    try cache.synchronous {
      try $0.setValue("old", forKey: "a", options: .lifetime(.seconds(1)))
    }
    scene.advance(by: .seconds(2))
    _ = try await cache.value(forKey: "a", lifetime: .seconds(1)) { "new" }
    #expect(try cache.storedValue(forKey: "a") == "new")
    cache.tier.removeAll()
    scene.advance(by: .seconds(2))
    struct Down: Error {}
    #expect(try await cache.value(forKey: "a") { throw Down() } == "new")
  }

  @Test("A day's budget bounds what loads write, and at most an hour's share is saved")
  func budget() async throws {
    // An hour's share is 1000 bytes. With their keys, values take 401.
    let cache = try cache(admission: .always) { $0.loadedBytesPerDay = 24_000 }
    func load(_ keys: String) async throws -> String {
      for key in keys {
        let value = String(repeating: key, count: 400)
        #expect(try await cache.value(forKey: String(key)) { value } == value)
        // Memory has the value in any case.
        #expect(try cache.value(forKey: String(key)) == value)
      }
      return try keys.filter { try cache.storedValue(forKey: String($0)) != nil }
    }
    #expect(try await load("abcde") == "abc")
    #expect(try cache.statistics().admissionRefusedCount == 2)
    // The cache has written 203 bytes more than the budget.
    scene.advance(by: .seconds(12 * 60))
    #expect(try await load("f") == "")
    scene.advance(by: .seconds(60))
    #expect(try await load("gh") == "g")
    scene.advance(by: .seconds(30 * 3600))
    #expect(try await load("ijklm") == "ijk")
    // The cache writes a value that is set, and does not count it.
    try cache.synchronous { try $0.setValue("set", forKey: "n") }
    #expect(try cache.storedValue(forKey: "n") == "set")
    scene.advance(by: .seconds(-3600))
    #expect(try await load("o") == "")
    #expect(try cache.audit() == [])
  }

  @Test("A value of a key that the disk has is written, whatever the budget", arguments: [nil, 10])
  func budgetOfStaleKey(held: Int?) async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(3600)
    let cache = try cache(held: held, admission: .always) {
      $0.loadedBytesPerDay = 24
      $0.loadPolicy = policy
    }
    _ = try await cache.value(forKey: "a", lifetime: .seconds(1)) { "old" }
    #expect(try cache.storedValue(forKey: "a") == "old")
    scene.advance(by: .seconds(2))
    #expect(try await cache.value(forKey: "a", lifetime: .seconds(1)) { "new" } == "new")
    #expect(try cache.storedValue(forKey: "a") == "new")
    #expect(try await cache.value(forKey: "b") { "b" } == "b")
    #expect(try cache.storedValue(forKey: "b") == nil)
    // Disk-only placement always writes, and does not count.
    _ = try await cache.loaded(forKey: "c") { _ in
      LoadResult.loaded("c", options: EntryOptions(placement: .disk))
    }
    #expect(try cache.storedValue(forKey: "c") == "c")
    scene.advance(by: .seconds(2))
    struct Down: Error {}
    #expect(try await cache.value(forKey: "a") { throw Down() } == "new")
  }

  @Test("A budget of zero or less is refused", arguments: [0, -1])
  func noBudget(bytesPerDay: Int) throws {
    #expect {
      _ = try cache { $0.loadedBytesPerDay = bytesPerDay }
    } throws: { error in
      guard case CacheError.store(.invalidConfiguration("loadedBytesPerDay", _)) = error else {
        return false
      }
      return true
    }
  }

  @Test("A memory-only value is refreshed ahead and served stale like others")
  func policy() async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(60)
    let cache = try cache { $0.loadPolicy = policy }
    struct Down: Error {}
    _ = try await cache.value(forKey: "a", lifetime: .seconds(1)) { "first" }
    scene.clock.advance(by: .seconds(2))
    #expect(try await cache.value(forKey: "a") { throw Down() } == "first")
    #expect(try cache.storedValue(forKey: "a") == nil)
    // Past the delay after the failure.
    scene.clock.advance(by: .seconds(30))
    let seen = Record<String?>()
    let loaded = try await cache.loaded(forKey: "a") { prior in
      seen.add(prior?.value)
      return .loaded("second", options: .lifetime(.seconds(100)))
    }
    #expect(loaded?.value == "second" && seen.all == ["first"])
    // That was the key's second load.
    #expect(try cache.storedValue(forKey: "a") == "second" && cache.value(forKey: "a") == "second")
  }

  @Test("A memory-only value is loaded again ahead of its end, and then goes to disk")
  func refreshAhead() async throws {
    var policy = LoadPolicy()
    policy.refreshAhead = 0.5
    let cache = try cache { $0.loadPolicy = policy }
    _ = try await cache.value(forKey: "a", lifetime: .seconds(10)) { "first" }
    scene.clock.advance(by: .seconds(6))
    #expect(try await cache.value(forKey: "a") { "second" } == "first")
    await eventually { (try? cache.storedValue(forKey: "a")) == "second" }
    #expect(try cache.value(forKey: "a") == "second" && cache.audit() == [])
  }

  @Test("A memory-only value that the origin finds unmodified stays in memory only")
  func notModified() async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(60)
    let cache = try cache { $0.loadPolicy = policy }
    _ = try await cache.value(forKey: "a", lifetime: .seconds(1)) { "first" }
    scene.clock.advance(by: .seconds(2))
    let loaded = try await cache.loaded(forKey: "a") { prior in
      guard let prior else { return .absent(for: .seconds(1)) }
      return prior.notModified(lifetime: .seconds(100))
    }
    #expect(loaded?.value == "first")
    #expect(try cache.value(forKey: "a") == "first" && cache.storedValue(forKey: "a") == nil)
    #expect(cache.loadStatistics.outdatedCount == 0)
    // A loader that receives the value and finds that the origin no longer has one.
    scene.clock.advance(by: .seconds(101))
    let absent = try await cache.loaded(forKey: "a") { _ in .absent(for: .seconds(1)) }
    #expect(absent == nil)
    #expect(try cache.memory?.count() == 0 && cache.value(forKey: "a") == nil)
  }

  @Test("A write, a removal or a tag's removal during the first load wins", arguments: 0..<4)
  func outdated(by kind: Int) async throws {
    let cache = try cache()
    let gate = Gate()
    let task = Task {
      try await cache.value(
        forKey: "a",
        orLoadEntry: {
          await gate.wait()
          return Loaded("loaded", options: .tags(["x"]))
        })
    }
    await eventually { gate.arrivedCount == 1 }
    switch kind {
    case 0: try cache.synchronous { try $0.setValue("set", forKey: "a") }
    case 1: try cache.synchronous { _ = try $0.removeValue(forKey: "a") }
    case 2: try cache.synchronous { try $0.removeAll(tagged: "x") }
    default: try cache.synchronous { try $0.setValue("set", forKey: "a", options: .alone) }
    }
    gate.open()
    #expect(try await task.value == "loaded")
    #expect(try cache.value(forKey: "a") == (kind == 0 || kind == 3 ? "set" : nil))
  }

  // MARK: The sketch

  @Test("The sketch knows the last hundred thousand keys, forgets old ones, and mistakes few")
  func sketch() {
    let sketch = AdmissionSketch(secret: [UInt8](0..<16))
    func note(_ number: Int) -> Bool {
      "page/\(number)".utf8Bytes.withBytes { sketch.note($0) }
    }
    var mistakes = 0
    for number in 0..<100_000 where note(number) { mistakes += 1 }
    #expect(mistakes < 400)
    #expect((0..<100_000).allSatisfy { note($0) })
    mistakes = 0
    for number in 100_000..<200_000 where note(number) { mistakes += 1 }
    #expect(mistakes < 2_000)
    // After the second hundred thousand, the first are gone.
    #expect((100_000..<200_000).allSatisfy { note($0) })
    for number in 200_000..<310_000 { _ = note(number) }
    var known = 0
    for number in 0..<10_000 where note(number) { known += 1 }
    #expect(known < 300)
  }

  // MARK: A trace

  /// The results of a trace.
  private struct Outcome {
    var hitRatio = 0.0
    var writtenByteCount = 0
    var statistics: DiskCacheStatistics
  }

  /// Pages of 1 KiB: six of ten requests by Zipf's law with exponent 0.9 over 5,000 keys, the
  /// others for keys that are never requested again.
  private static func trace(count: Int) -> [String] {
    var random = FuzzRandom(seed: 29)
    var sums: [Double] = []
    var sum = 0.0
    for rank in 1...5000 {
      sum += 1 / power(Double(rank), 0.9)
      sums.append(sum)
    }
    return (0..<count).map { number in
      if random.below(10) >= 6 { return "once/\(number)" }
      let wanted = Double(random.below(1 << 40)) / Double(1 << 40) * sum
      var (low, high) = (0, sums.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if sums[middle] > wanted { high = middle } else { low = middle + 1 }
      }
      return "page/\(low)"
    }
  }

  private func outcome(of trace: [String], _ admission: CacheAdmission) async throws -> Outcome {
    let scene = TieredScene()
    let page = String(repeating: "p", count: 1000)
    let cache: DiskCache<String, String> = try scene.cache(held: 200, count: 2000) {
      $0.admission = admission
    }
    var loadCount = 0
    for key in trace {
      let started = cache.loadStatistics.startedCount
      let value = try await cache.value(forKey: key) { key + page }
      #expect(value == key + page)
      if cache.loadStatistics.startedCount > started { loadCount += 1 }
    }
    let statistics = try cache.statistics()
    #expect(statistics.insertionCount + statistics.admissionRefusedCount == UInt64(loadCount))
    let onDisk = try cache.keys()
    // A Bloom filter mistakes a few new keys for known ones.
    if admission == .secondRequest { #expect(onDisk.count { $0.hasPrefix("once") } <= 5) }
    return Outcome(
      hitRatio: 1 - Double(loadCount) / Double(trace.count),
      writtenByteCount: Int(statistics.insertionCount) * 1000, statistics: statistics)
  }

  @Test("Keys that are requested once cost no write, and those requested again are hit more often")
  func oneHitWonders() async throws {
    let trace = Self.trace(count: 30_000)
    let always = try await outcome(of: trace, .always)
    let second = try await outcome(of: trace, .secondRequest)
    print(
      "admission: always \(always.hitRatio) \(always.writtenByteCount), "
        + "secondRequest \(second.hitRatio) \(second.writtenByteCount)")
    #expect(always.statistics.admissionRefusedCount == 0)
    // Less than a third of the bytes.
    #expect(second.writtenByteCount * 3 < always.writtenByteCount)
    #expect(second.hitRatio > always.hitRatio - 0.02)
  }
}

extension EntryOptions {
  /// Options for memory only.
  static var alone: EntryOptions { EntryOptions(placement: .memory) }
}

extension String {
  var utf8Bytes: [UInt8] { [UInt8](utf8) }
}

/// `base` to the power of `exponent`.
private func power(_ base: Double, _ exponent: Double) -> Double {
  // Newton's method for the tenth root: no mathematics library is imported here.
  let target = base
  var root = 1 + (base - 1) / 10
  for _ in 0..<60 {
    var ninth = 1.0
    for _ in 0..<9 { ninth *= root }
    root -= (ninth * root - target) / (10 * ninth)
  }
  var result = 1.0
  for _ in 0..<Int(exponent * 10) { result *= root }
  return result
}
