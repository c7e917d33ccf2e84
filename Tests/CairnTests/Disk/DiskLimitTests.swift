import Cairn
import CairnStore
import FuzzSupport
import Testing

@Suite("Limits, lifetimes and trims of a cache on disk")
struct DiskLimitTests {
  let scene = DiskScene()

  @Test("The count limit holds after every write, and the least recently used goes")
  func countLimit() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 3)
    for number in 0..<10 {
      try cache.setValue(number, forKey: number)
      _ = try cache.value(forKey: 0)
      #expect(try cache.count() <= 3)
    }
    #expect(try cache.keys().sorted() == [0, 8, 9])
    #expect(try cache.statistics()["evictions.count"] == 7)
  }

  @Test("The byte limit holds after every write; a larger value is refused")
  func byteLimit() throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache(bytes: 10_000)
    let causes = Record<RemovalCause>()
    cache.observe { event in
      if case .removed(_, let cause) = event { causes.add(cause) }
    }
    for number in 0..<50 {
      try cache.setValue([UInt8](repeating: 0, count: 500), forKey: number)
      #expect(try cache.totalCost() <= 10_000)
    }
    #expect(try cache.contains(49))
    #expect(try !cache.contains(0))
    #expect(try cache.statistics()["evictions.bytes"] > 20)
    #expect(causes.all.count > 20 && Set(causes.all) == [.evicted(.byteLimit)])
    let error = #expect(throws: StoreError.self) {
      try cache.setValue([UInt8](repeating: 0, count: 10_000), forKey: 49)
    }
    guard case .tooLarge("value", _, _) = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    #expect(try cache.value(forKey: 49)?.count == 500)
  }

  @Test(
    "A small cache has small files",
    arguments: [
      (nil, 64 << 20), (1 << 40, 64 << 20), (512 << 20, 64 << 20), (40 << 20, 5 << 20),
      (1, 4 << 20),
      (Int.min, 4 << 20),
    ] as [(Int?, Int)])
  func segments(byteLimit: Int?, byteCount: Int) {
    let configuration = DiskCacheConfiguration(byteLimit: byteLimit)
    #expect(configuration.store.segmentByteLimit == byteCount)
  }

  @Test(
    "A small cache stays small on disk, whatever the size of its values",
    arguments: [5000, 3_000_000])
  func space(valueByteCount: Int) async throws {
    let limit = 8 << 20
    let cache = try await DiskCache<Int, [UInt8]>.open(
      .path(scene.path), configuration: DiskCacheConfiguration(byteLimit: limit))
    let value = [UInt8](repeating: 1, count: valueByteCount)
    for number in 0..<(100 << 20) / valueByteCount {
      try await cache.setValue(value, forKey: number)
    }
    let bound = limit * 3 / 2 + 4 * (4 << 20)
    let end = ContinuousClock.now.advanced(by: .seconds(60))
    while try cache.statistics().allocatedByteCount > bound, ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(try cache.statistics().allocatedByteCount <= bound)
    try await cache.close()
  }

  @Test(
    "Large values keep replacing each other even if the disk has little more room than the limit",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"),
    arguments: [
      (500, 12_000_000), (3000, 12_000_000), (100_000, 40_000_000), (3_000_000, 40_000_000),
    ])
  func smallDisk(valueByteCount: Int, limit: Int) throws {
    let disk = try TinyDisk(byteCount: limit * 5 / 2)
    let cache = try DiskCache<Int, [UInt8]>.open(
      .path(disk.path + "/cache"),
      configuration: DiskCacheConfiguration(byteLimit: limit))
    let value = [UInt8](repeating: 1, count: valueByteCount)
    // More than the disk has room for.
    let count = limit * 4 / (valueByteCount + 100)
    for number in 0..<count { try cache.setValue(value, forKey: number) }
    #expect(try cache.value(forKey: count - 1) == value)
    #expect(try cache.totalCost() > limit * 7 / 8)
    try cache.close()
  }

  @Test("Limits and costs have 64 bits")
  func largeNumbers() throws {
    let cache: DiskCache<String, String> = try scene.cache(count: 1 << 40, bytes: 5 << 30)
    try cache.setValue("value", forKey: "key", options: .cost(1 << 40))
    #expect(try cache.info(forKey: "key")?.cost == 1 << 40)
    #expect(try cache.trim(.toBytes(3 << 30)).count == 0)
    #expect(try cache.trim(.toBytes(.max)).count == 0)
    #expect(try cache.trim(.toCount(.max)).count == 0)
    #expect(try cache.trim(.unused(for: .seconds(Int64.max))).count == 0)
    #expect(try cache.value(forKey: "key") == "value")
  }

  @Test("A limit of 0 is refused")
  func zeroLimits() throws {
    for (count, bytes) in [(0, nil), (nil, 0), (-1, nil)] as [(Int?, Int?)] {
      let error = #expect(throws: StoreError.self) {
        let _: DiskCache<Int, Int> = try scene.cache(count: count, bytes: bytes)
      }
      guard case .invalidConfiguration(let option, _) = error else {
        return #expect(Bool(false), "it was \(error.debugDescription)")
      }
      #expect(option == (count == nil ? "byteLimit" : "countLimit"))
    }
  }

  @Test("A trim to a count, a cost or an age of zero leaves nothing")
  func zeroTrims() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    let trims: [() throws -> RemovalSummary] = [
      { try cache.trim(.toCount(0)) }, { try cache.trim(.toCount(-1)) },
      { try cache.trim(.toCount(0, order: .largestFirst)) }, { try cache.trim(.toBytes(0)) },
      { try cache.trim(.toBytes(.min)) },
      { try cache.trim(.unused(for: .zero)) }, { try cache.trim(.older(than: .zero)) },
      { try cache.trim(.unused(for: .seconds(-1))) },
    ]
    for trim in trims {
      for number in 0..<5 { try cache.setValue(number, forKey: number) }
      #expect(try trim().count == 5)
      #expect(try cache.count() == 0)
      #expect(try cache.totalCost() == 0)
    }
  }

  @Test("The largest go first if requested")
  func largestFirst() throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache()
    for number in 0..<10 {
      try cache.setValue([UInt8](repeating: 0, count: number * 100), forKey: number)
    }
    #expect(try cache.trim(.toCount(7, order: .largestFirst)).count == 3)
    #expect(try cache.keys().sorted() == Array(0..<7))
    let rest = try cache.totalCost()
    #expect(try cache.trim(.toBytes(Int(rest) - 1, order: .largestFirst)).count == 1)
    #expect(try cache.keys().sorted() == Array(0..<6))
  }

  @Test("A trim by age uses the last access or the write, as requested")
  func age() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "old, read")
    try cache.setValue(2, forKey: "old")
    scene.clock.advance(by: .seconds(100))
    try cache.setValue(3, forKey: "new")
    _ = try cache.value(forKey: "old, read")
    #expect(try cache.trim(.unused(for: .seconds(50))).count == 1)
    #expect(try cache.keys().sorted() == ["new", "old, read"])
    #expect(try cache.trim(.older(than: .seconds(50))).count == 1)
    #expect(try cache.keys() == ["new"])
  }

  @Test("A closure chooses entries to remove; its error comes out unchanged")
  func removeWhere() throws {
    struct Stop: Error {}
    let cache: DiskCache<Int, [UInt8]> = try scene.cache()
    for number in 0..<10 {
      try cache.setValue(
        [UInt8](repeating: 0, count: number), forKey: number, options: .cost(number * 10))
    }
    let summary = try cache.remove { key, info in
      key == 0 || info.valueByteCount > 7 || info.cost == 30
    }
    #expect(summary.count == 4)
    #expect(try cache.keys().sorted() == [1, 2, 4, 5, 6, 7])
    #expect(throws: Stop.self) { try cache.remove { _, _ in throw Stop() } }
    // Even an error that could be the cache's own is passed on.
    #expect(throws: StoreError.closed(path: "mine")) {
      try cache.remove { _, _ in throw StoreError.closed(path: "mine") }
    }
    #expect(try cache.count() == 6)
  }

  @Test(
    "No read finds an entry past its lifetime or idle limit, even before anything removes it")
  func expiry() throws {
    let cache: DiskCache<String, Int> = try scene.cache {
      $0.store.lifetime = .seconds(100)
      $0.store.maintenanceInterval = nil
    }
    try cache.setValue(1, forKey: "default")
    try cache.setValue(2, forKey: "short", lifetime: .seconds(10))
    try cache.setValue(3, forKey: "idle", options: .idleLimit(.seconds(10)))
    try cache.setValue(4, forKey: "at once", lifetime: .seconds(0))
    #expect(try cache.value(forKey: "at once") == nil)
    #expect(try cache.count() == 3)
    scene.clock.advance(by: .milliseconds(9_500))
    #expect(try cache.value(forKey: "idle") == 3)
    scene.clock.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "short") == nil)
    #expect(try cache.entry(forKey: "short") == nil)
    #expect(try cache.info(forKey: "short") == nil)
    #expect(try !cache.contains("short"))
    #expect(try cache.withValue(forKey: "short") { _ in } == nil)
    #expect(try cache.values(forKeys: ["short", "idle"]) == [nil, 3])
    #expect(try cache.keys().sorted() == ["default", "idle"])
    #expect(try cache.takeValue(forKey: "short") == nil)
    #expect(try !cache.removeValue(forKey: "short"))
    #expect(try !cache.setLifetime(.seconds(1000), forKey: "short"))
    // A peek is not an access.
    scene.clock.advance(by: .milliseconds(9_500))
    #expect(try cache.contains("idle"))
    #expect(try cache.info(forKey: "idle") != nil)
    scene.clock.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "idle") == nil)
    #expect(try cache.value(forKey: "default") == 1)
    #expect(try cache.setLifetime(.seconds(200), forKey: "default"))
    #expect(try !cache.setLifetime(.seconds(200), forKey: "idle"))
    scene.clock.advance(by: .seconds(100))
    #expect(try cache.value(forKey: "default") == 1)
    #expect(try cache.statistics().count > 1)
    #expect(try cache.trim(.expired).count == 3)
    #expect(try cache.statistics().count == 1)
    #expect(try cache.statistics()["expirations"] == 3)
  }

  @Test("Expired entries are removed automatically, at the interval")
  func maintenance() throws {
    let cache: DiskCache<String, Int> = try scene.cache {
      $0.store.maintenanceInterval = .seconds(60)
    }
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    try cache.setValue(2, forKey: "b")
    scene.clock.advance(by: .seconds(60))
    scene.background.runAll(dueAfter: .seconds(60))
    #expect(try cache.statistics().count == 1)
  }

  @Test(
    "If the disk has too little free space, the least recently used are evicted, with that cause")
  func freeDiskSpace() throws {
    // More than any disk has.
    let messages = Record<String>()
    let cache: DiskCache<Int, Int> = try scene.cache {
      $0.store.freeDiskSpaceFloor = 1 << 60
      $0.store.log = DiagnosticLog { messages.add($0.text) }
      $0.store.maintenanceInterval = nil
    }
    for number in 0..<5 { try cache.setValue(number, forKey: number) }
    let events = Record<CacheEvent<Int>>()
    cache.observe { events.add($0) }
    try cache.maintain()
    #expect(try cache.count() == 0)
    scene.background.runAll()
    #expect(messages.all.count { $0.hasPrefix("freeDiskSpaceFloor: 5 entries were removed") } == 1)
    #expect(
      events.all == (0..<5).map { .removed(key: $0, cause: .evicted(.freeDiskSpace)) })
    #expect(try cache.statistics()["evictions.space"] == 5)
    for number in 0..<5 { try cache.setValue(number, forKey: number) }
    for floor in [0, -1, .min] { #expect(try cache.trim(.toFreeDiskSpace(floor)).count == 0) }
    #expect(try cache.count() == 5)
    #expect(try cache.trim(.toFreeDiskSpace(1 << 60)).count == 5)
  }
}
