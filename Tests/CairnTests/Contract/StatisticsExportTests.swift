import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Statistics for Prometheus, and the difference from earlier ones", .timeLimit(.minutes(30)))
struct StatisticsExportTests {
  let scene = TieredScene()

  /// Statistics with a different number in each count, from a hundred on.
  private static func distinct<Statistics: CountedStatistics>(
    _ statistics: Statistics, from first: UInt64
  ) -> Statistics {
    var statistics = statistics
    for (index, count) in Statistics.counts.enumerated() {
      statistics[keyPath: count.path] = first + UInt64(index)
    }
    return statistics
  }

  private static func full() -> DiskCacheStatistics {
    var statistics = distinct(DiskCacheStatistics(), from: 10_000)
    statistics.memory = distinct(MemoryCacheStatistics(), from: 200)
    statistics.loads = distinct(LoadStatistics(), from: 300)
    statistics.loads.refreshedCount = 5000
    statistics.loads.durations.counts = (1...17).map { $0 }
    statistics.loads.durations.total = .milliseconds(12_345)
    (statistics.heldCount, statistics.liveByteCount, statistics.deadByteCount) = (401, 402, 403)
    (statistics.allocatedByteCount, statistics.pinnedByteCount) = (404, 405)
    statistics.sweepingTagCount = 409
    statistics.memory?.heldCount = 406
    statistics.memory?.heldCost = 407
    statistics.memory?.overheadByteCount = 408
    return statistics
  }

  /// The declared counts, with their names.
  private static func numbers(_ statistics: DiskCacheStatistics) -> [(name: String, UInt64)] {
    let parts: [Any?] = [statistics, statistics.memory, statistics.loads]
    return parts.compactMap { $0 }.flatMap { part in
      Mirror(reflecting: part).children.compactMap { child in
        (child.value as? UInt64).map { (child.label ?? "", $0) }
      }
    }
  }

  // MARK: The format

  @Test(
    "The parser of the other tests refuses what is not in the format",
    arguments: [
      "a_total 1\n", "# TYPE a_total counter\na_total 1\n", "# HELP a_total x\na_total 1\n",
      "# HELP a x\n# TYPE a counter\na 1\n", "# HELP a x\n# TYPE a gauge\na 1",
      "# HELP a x\n# TYPE a gauge\n", "# HELP a x\n# TYPE a gauge\nb 1\n",
      "# HELP a x\n# TYPE a gauge\na 1\na 2\n", "# HELP a x\n# TYPE a gauge\na one\n",
      "# HELP a x\n# TYPE a gauge\na 1\n# HELP a x\n# TYPE a gauge\na{b=\"\"} 1\n",
      "# HELP a x\n# TYPE a gauge\na{b=\"\"\"} 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"\\q\"} 1\n",
      "# HELP a x\n# TYPE a gauge\na{b=\"c\n\"} 1\n", "# HELP 1 x\n# TYPE 1 gauge\n1 1\n",
      "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
      "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\n"
        + "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
    ])
  func malformed(text: String) {
    #expect(throws: PrometheusPage.Failure.self) { try PrometheusPage(text) }
  }

  @Test("Each number of the statistics is in the text once")
  func numbers() throws {
    let statistics = Self.full()
    let page = try PrometheusPage(statistics.prometheus(prefix: "pages"))
    let found = page.values.values.sorted()
    for (name, value) in statistics.metrics where !["hits", "loads.refreshed"].contains(name) {
      #expect(found.count { $0 == Double(value) } == 1, "\(name)")
    }
    #expect(page["pages_hits_total", ["tier": "memory"]] == 200)
    #expect(page["pages_hits_total", ["tier": "disk"]] == 9800)
    #expect(
      page["pages_evictions_total", ["tier": "disk", "cause": "free_disk_space"]]
        == Double(statistics.spaceEvictionCount))
    #expect(
      page["pages_evictions_total", ["tier": "memory", "cause": "memory_pressure"]]
        == Double(statistics.memory?.pressureEvictionCount ?? 0))
    let notModified = statistics.loads.notModifiedCount
    #expect(page["pages_loads_total", ["outcome": "not_modified"]] == Double(notModified))
    #expect(page["pages_loads_total", ["outcome": "refreshed"]] == Double(5000 - notModified))
    #expect(page["pages_load_duration_seconds_sum"] == 12.345)
    #expect(page["pages_load_duration_seconds_bucket", ["le": "1e-05"]] == 1)
    #expect(page["pages_load_duration_seconds_bucket", ["le": "5e-05"]] == 3)
    #expect(page["pages_load_duration_seconds_bucket", ["le": "0.01"]] == 28)
    #expect(page["pages_load_duration_seconds_bucket", ["le": "+Inf"]] == 153)
    // The evictions of a tier are the sum of those by cause.
    let evictions = page.samples.map(\.sample).filter {
      $0.name == "pages_evictions_total" && $0.labels["tier"] == "disk"
    }
    #expect(
      evictions.reduce(0) { $0 + page.values[$1, default: 0] } == Double(statistics.evictionCount))
  }

  @Test("Values set by a program do not trap")
  func unlikely() throws {
    var statistics = Self.full()
    statistics.hitCount = 0
    statistics.loads.refreshedCount = 0
    statistics.loads.durations.counts = [.max, .max]
    statistics.loads.durations.total = .seconds(-1)
    let text = statistics.prometheus(prefix: "x")
    #expect(text.contains("x_hits_total{tier=\"disk\"} 0\n"))
    #expect(text.contains("x_loads_total{outcome=\"refreshed\"} 0\n"))
    statistics.loads.durations.counts = []
    #expect(
      try PrometheusPage(statistics.prometheus(prefix: "x"))["x_entries", ["tier": "disk"]] == 401)
  }

  @Test(
    "Caches and stores with different prefixes share one response, with units in the names"
  )
  func together() async throws {
    let pages: DiskCache<String, Int> = try scene.cache(held: 1, count: 2)
    let users: DiskCache<String, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("users"))
    let names: MemoryCache<Int, Int> = MemoryScene().cache(count: 1)
    for name in ["a", "b", "c"] { try await pages.setValue(1, forKey: name) }
    _ = try pages.values(forKeys: ["a", "c", "c"])
    _ = try await pages.value(forKey: "d") { 4 }
    for number in 1...3 { names[number] = number }
    let statistics = try pages.statistics()
    let stored = try pages.storeStatistics()
    let page = try PrometheusPage(
      statistics.prometheus(prefix: "pages") + stored.prometheus(prefix: "pages")
        + users.statistics().prometheus(prefix: "users")
        + users.storeStatistics().prometheus(prefix: "users")
        + names.statistics().prometheus(prefix: "names")
        + names.loadStatistics.prometheus(prefix: "names"))
    let memory = try #require(statistics.memory)
    #expect(page["pages_hits_total", ["tier": "memory"]] == Double(memory.hitCount))
    #expect(
      page["pages_hits_total", ["tier": "disk"]] == Double(statistics.hitCount - memory.hitCount))
    #expect(page["pages_misses_total", ["tier": "disk"]] == 2)
    #expect(page["pages_evictions_total", ["tier": "disk", "cause": "count_limit"]] == 2)
    #expect(page["pages_loads_total", ["outcome": "fresh"]] == 1)
    #expect(page["pages_load_duration_seconds_count"] == 1)
    #expect(page["pages_entries", ["tier": "disk"]] == 2)
    #expect(page["names_evictions_total", ["tier": "memory", "cause": "count_limit"]] == 2)
    #expect(page["names_load_duration_seconds_count"] == 0)
    #expect(page["pages_store_keys"] == 2)
    #expect(page["pages_store_live_bytes"] == Double(stored.liveByteCount))
    #expect(page["pages_store_last_version"] == Double(stored.lastVersion))
    #expect(
      page[
        "pages_store_info",
        [
          "version": "0.1.0", "format_version": stored.formatVersion, "index": "created",
          "clean": "true",
        ]] == 1)
    #expect(page["users_hits_total", ["tier": "disk"]] == 0)
    for family in page.families {
      #expect(family.help.hasSuffix("."), "\(family)")
      #expect(!family.name.contains(/milli|micro|kilo|mib/), "\(family)")
    }
  }

  @Test("A store's delays, scrubs and clock are in base units")
  func storeNumbers() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    var stored = try cache.storeStatistics()
    stored.writeDelay = .milliseconds(1500)
    stored.delayedWriteCount = 3
    stored.compactedByteCount = 7
    stored.clockOffset = .seconds(-2)
    stored.reclaimableByteCount = 1 << 20
    stored.scrub.damageCount = 4
    stored.scrub.lastDamageCount = 5
    let text = stored.prometheus(prefix: "s")
    #expect(!text.contains("completed"))
    stored.scrub.lastCompleted = Timestamp(millisecondsSinceEpoch: 1_767_225_600_250)
    let page = try PrometheusPage(stored.prometheus(prefix: "s"))
    #expect(page["s_store_write_delay_seconds_total"] == 1.5)
    #expect(page["s_store_delayed_writes_total"] == 3)
    #expect(page["s_store_compacted_bytes_total"] == 7)
    #expect(page["s_store_clock_offset_seconds"] == -2)
    #expect(page["s_store_reclaimable_bytes"] == 1_048_576)
    #expect(page["s_store_scrub_damaged_places", ["cycle": "current"]] == 4)
    #expect(page["s_store_scrub_damaged_places", ["cycle": "last"]] == 5)
    #expect(page["s_store_scrub_last_completed_timestamp_seconds"] == 1_767_225_600.25)
  }

  @Test(
    "Any prefix makes valid names",
    arguments: [
      ("pages", "pages_entries"), ("my-cache.2", "my_cache_2_entries"), ("2nd", "_2nd_entries"),
      ("é\r\n{}", "______entries"), ("", "entries"),
    ])
  func prefixes(prefix: String, name: String) throws {
    let text = MemoryCacheStatistics().prometheus(prefix: prefix)
    #expect(try PrometheusPage(text)[name, ["tier": "memory"]] == 0)
  }

  @Test(
    "Values of labels are parsed back unchanged",
    arguments: ["a\"b", "\\", "\\n", "\n", "a\r\nb", "é}"])
  func labels(value: String) throws {
    var text = PrometheusText(prefix: "a")
    text.gauge("b", "It.", [(["c": value, "d": ""], 1.5), (["c": "x", "d": value], -1)])
    let page = try PrometheusPage(text.text)
    #expect(
      page["a_b", ["c": value, "d": ""]] == 1.5 && page["a_b", ["c": "x", "d": value]] == -1)
  }

  // MARK: Loads

  @Test(
    "Loaders are counted by duration, even those that fail",
    arguments: LoadingKind.allCases)
  func durations(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind)
    for (index, milliseconds) in [0, 5, 6, 249, 10_000, 10_001].enumerated() {
      _ = try await subject.cache.value(forKey: "\(index)") {
        scene.clock.advance(by: .milliseconds(milliseconds))
        return ""
      }
    }
    await #expect(throws: LoadFailure.self) {
      _ = try await subject.cache.value(forKey: "failing") {
        scene.clock.advance(by: .seconds(2))
        throw LoadFailure()
      }
    }
    // A present value is not loaded.
    _ = try await subject.cache.value(forKey: "0") { "" }
    #expect(subject.loads.durations.counts == [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1])
    #expect(subject.loads.durations.total == .milliseconds(22_261))
    #expect(subject.loads.durations.counts.count == DurationHistogram.bounds.count + 1)
  }

  @Test("A loader that exceeded its time limit is counted when it ends")
  func lateLoader() async throws {
    let scene = LoadScene()
    var policy = LoadPolicy()
    policy.timeLimit = .seconds(1)
    let subject = try scene.cache(.memory, policy)
    let gate = Gate()
    let waiter = Task {
      try await subject.cache.value(forKey: "a") {
        await gate.wait()
        return ""
      }
    }
    await eventually { gate.arrivedCount == 1 }
    scene.advance(by: .seconds(1))
    await #expect(throws: StoreError.loadTimedOut(limit: .seconds(1))) { try await waiter.value }
    #expect(subject.loads.timedOutCount == 1 && subject.loads.durations.total == .zero)
    scene.advance(by: .seconds(3))
    gate.open()
    await eventually { subject.loads.durations.total == .seconds(4) }
    #expect(subject.loads.durations.counts[14] == 1)
  }

  @Test("A clock that goes back makes no duration below zero")
  func clockBack() async throws {
    let scene = LoadScene()
    let subject = try scene.cache(.memory)
    _ = try await subject.cache.value(forKey: "a") {
      scene.clock.advance(by: .seconds(-5))
      return ""
    }
    #expect(subject.loads.durations.counts[0] == 1 && subject.loads.durations.total == .zero)
  }

  // MARK: Since

  @Test("The hit ratio since a moment is that of the reads since then, by tier")
  func ratioSince() async throws {
    let cache: DiskCache<String, Int> = try scene.cache(held: 1)
    for name in ["a", "b"] { try await cache.setValue(1, forKey: name) }
    for _ in 0..<10 { _ = try cache.value(forKey: "b") }
    let before = try cache.statistics()
    #expect(before.since(before).hitRatio == nil && before.since(before).memory?.hitRatio == nil)
    _ = try cache.value(forKey: "b")
    _ = try cache.value(forKey: "a")
    _ = try cache.value(forKey: "c")
    _ = try cache.value(forKey: "d")
    _ = try await cache.value(forKey: "e") { 5 }
    let now = try cache.statistics()
    let recent = now.since(before)
    #expect(recent.hitCount == 2 && recent.missCount == 3 && recent.hitRatio == 0.4)
    #expect(recent.memory?.hitCount == 1 && recent.memory?.hitRatio == 0.2)
    #expect(recent.loads.freshCount == 1 && recent.loads.durations.counts[0] == 1)
    // The held entries are the current ones.
    #expect(recent.heldCount == now.heldCount && recent.liveByteCount == now.liveByteCount)
    #expect(recent.memory?.heldCount == 1)
  }

  @Test("Since the same statistics, every count is zero")
  func nothingSince() throws {
    let statistics = Self.full()
    let nothing = statistics.since(statistics)
    let all = Self.numbers(statistics)
    #expect(all.count == 13 + 11 + 12)
    for (name, number) in all { #expect(number > 0, "\(name) is in no list") }
    for (name, number) in Self.numbers(nothing) { #expect(number == 0, "\(name)") }
    #expect(
      nothing.loads.durations.counts.allSatisfy { $0 == 0 }
        && nothing.loads.durations.total == .zero)
  }

  @Test("Since statistics from before a restart, the result is everything since the restart")
  func sinceRestart() {
    var earlier = Self.full()
    let later = Self.full()
    earlier.missCount += 1
    earlier.loads.startedCount += 1
    earlier.memory?.hitCount += 1
    #expect(later.since(earlier) == later)
    // Statistics from before there was a memory tier have no counts of it.
    var without = later
    without.memory = nil
    #expect(later.since(without).memory == later.memory)
    #expect(without.since(later).memory == nil)
  }
}
