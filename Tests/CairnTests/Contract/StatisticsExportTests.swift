import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Statistics for Prometheus, and the difference from earlier ones", .timeLimit(.minutes(30)))
struct StatisticsExportTests {
  let scene = TieredScene()

  /// Statistics with a different value of each number.
  private func full() throws -> CacheStatistics {
    let cache: DiskCache<String, Int> = try scene.cache(held: 1)
    var statistics = try cache.statistics()
    for index in statistics.metrics.indices {
      statistics.metrics[index].value = Double(20_000 + index)
    }
    set("hits", 90_000, in: &statistics)
    set("loads.refreshed", 50_000, in: &statistics)
    statistics.loadDurations.counts = (1...17).map { $0 }
    statistics.loadDurations.total = .milliseconds(12_345)
    return statistics
  }

  private func set(_ name: String, _ value: Double, in statistics: inout CacheStatistics) {
    for index in statistics.metrics.indices where statistics.metrics[index].name == name {
      statistics.metrics[index].value = value
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
    let statistics = try full()
    let page = try PrometheusPage(statistics.prometheus(prefix: "pages"))
    let found = page.values.values.sorted()
    for metric in statistics.metrics where !["hits", "loads.refreshed"].contains(metric.name) {
      #expect(found.count { $0 == metric.value } == 1, "\(metric.name)")
    }
    let held = Double(statistics["memory.hits"])
    #expect(page["pages_hits_total", ["tier": "memory"]] == held)
    #expect(page["pages_hits_total", ["tier": "disk"]] == 90_000 - held)
    #expect(
      page["pages_evictions_total", ["tier": "disk", "cause": "free_disk_space"]]
        == Double(statistics["evictions.space"]))
    #expect(
      page["pages_evictions_total", ["tier": "memory", "cause": "memory_pressure"]]
        == Double(statistics["memory.evictions.pressure"]))
    let notModified = statistics["loads.notModified"]
    #expect(page["pages_loads_total", ["outcome": "not_modified"]] == Double(notModified))
    #expect(page["pages_loads_total", ["outcome": "refreshed"]] == Double(50_000 - notModified))
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
    var statistics = try full()
    set("hits", 0, in: &statistics)
    set("loads.refreshed", 0, in: &statistics)
    set("misses", .infinity, in: &statistics)
    set("liveBytes", -1, in: &statistics)
    #expect(statistics.missCount == .max && statistics.liveByteCount == .max)
    set("misses", .nan, in: &statistics)
    #expect(statistics.missCount == .max && !"\(statistics)".isEmpty)
    statistics.loadDurations.counts = [.max, .max]
    statistics.loadDurations.total = .seconds(-1)
    let text = statistics.prometheus(prefix: "x")
    #expect(text.contains("x_hits_total{tier=\"disk\"} 0\n"))
    #expect(text.contains("x_loads_total{outcome=\"refreshed\"} 0\n"))
    set("misses", 0, in: &statistics)
    statistics.loadDurations.counts = []
    #expect(
      try PrometheusPage(statistics.prometheus(prefix: "x"))["x_entries", ["tier": "disk"]]
        == Double(statistics.count))
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
        + names.statistics().prometheus(prefix: "names"))
    #expect(page["pages_hits_total", ["tier": "memory"]] == Double(statistics["memory.hits"]))
    #expect(
      page["pages_hits_total", ["tier": "disk"]]
        == Double(statistics.hitCount - statistics["memory.hits"]))
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
    #expect(page["s_store_scrub_found_places"] == 4)
    #expect(page["s_store_scrub_damaged_places"] == 5)
    #expect(page["s_store_scrub_last_completed_timestamp_seconds"] == 1_767_225_600.25)
  }

  @Test(
    "Any prefix makes valid names",
    arguments: [
      ("pages", "pages_entries"), ("my-cache.2", "my_cache_2_entries"), ("2nd", "_2nd_entries"),
      ("é\r\n{}", "______entries"), ("", "entries"),
    ])
  func prefixes(prefix: String, name: String) throws {
    let text = CacheStatistics(MemoryCounts().metrics + [Metric("count", 0, isCounter: false)])
      .prometheus(prefix: prefix)
    #expect(try PrometheusPage(text)[name, ["tier": "memory"]] == 0)
  }

  @Test(
    "Values of labels are parsed back unchanged",
    arguments: ["a\"b", "\\", "\\n", "\n", "a\r\nb", "é}"])
  func labels(value: String) throws {
    var text = PrometheusText(prefix: "a")
    text.add("b", "It.", [(["c": value, "d": ""], 1.5), (["c": "x", "d": value], -1)])
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
    #expect(before.since(before).hitRatio == nil && before.since(before)["memory.hits"] == 0)
    _ = try cache.value(forKey: "b")
    _ = try cache.value(forKey: "a")
    _ = try cache.value(forKey: "c")
    _ = try cache.value(forKey: "d")
    _ = try await cache.value(forKey: "e") { 5 }
    let now = try cache.statistics()
    let recent = now.since(before)
    #expect(recent.hitCount == 2 && recent.missCount == 3 && recent.hitRatio == 0.4)
    #expect(recent["memory.hits"] == 1 && recent["memory.misses"] == 4)
    #expect(recent["loads.fresh"] == 1 && recent.loadDurations.counts[0] == 1)
    // The held entries are the current ones.
    #expect(recent.count == now.count && recent.liveByteCount == now.liveByteCount)
    #expect(recent["memory.count"] == 1)
  }

  @Test("Since the same statistics, every counter is zero, and no gauge")
  func nothingSince() throws {
    let statistics = try full()
    let nothing = statistics.since(statistics)
    for metric in nothing.metrics {
      #expect((metric.value == 0) == metric.isCounter, "\(metric.name)")
    }
    #expect(nothing.metrics.count { $0.isCounter } == 13 + 11 + 12)
    #expect(
      nothing.loadDurations.counts.allSatisfy { $0 == 0 } && nothing.loadDurations.total == .zero)
  }

  @Test("Since statistics from before a restart, the result is everything since the restart")
  func sinceRestart() throws {
    let later = try full()
    for name in ["misses", "loads.started", "memory.hits"] {
      var earlier = later
      set(name, Double(later[name]) + 1, in: &earlier)
      #expect(later.since(earlier) == later)
    }
    // Statistics from before there was a memory tier have no counts of it.
    var without = later
    without.metrics.removeAll { $0.name.hasPrefix("memory.") }
    #expect(later.since(without)["memory.hits"] == later["memory.hits"])
    #expect(without.since(later)["memory.hits"] == 0)
  }
}
