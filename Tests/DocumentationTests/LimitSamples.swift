import Cairn
import Testing

/// What a program that shows pictures may have.
struct Image: Sendable {
  var width: Int
  var height: Int
}

@Suite("The samples of Limits and trimming")
struct LimitSamples {
  @Test("Values that the disk must not have")
  func tiers() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let configuration = DiskCacheConfiguration(
          memory: .init())
        let thumbnails = try await DiskCache<String, [UInt8]>.open(
          .name("thumbnails"), configuration: configuration)
        let (draft, poster): ([UInt8], [UInt8]) = ([1], [2, 3])

        let drafts = MemoryCache<String, [UInt8]>(
          configuration: MemoryConfiguration(countLimit: 100))
        drafts["lake"] = draft
        try await thumbnails.setValue(poster, forKey: "poster")

        #expect(try thumbnails.keys() == ["poster"] && drafts.keys() == ["lake"])
      }
    }
  }

  @Test("A cache with limits, lifetimes and trims")
  func limits() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = DiskCacheConfiguration(countLimit: 100_000, byteLimit: 1 << 30)
        configuration.lifetime = .seconds(7 * 86_400)
        configuration.idleLimit = .seconds(86_400)
        configuration.memory = MemoryConfiguration(costLimit: 64 << 20)
        let thumbnails = try await DiskCache<String, [UInt8]>.open(
          .name("thumbnails"), configuration: configuration)

        let image = [UInt8](repeating: 7, count: 1_000)

        try await thumbnails.setValue(
          image, forKey: "lake",
          options: EntryOptions(lifetime: .hours(1), idleLimit: .seconds(600)))
        try await thumbnails.setLifetime(.seconds(7200), forKey: "lake")

        let midnight = Timestamp.now.advanced(by: .seconds(9000))
        try await thumbnails.setValue(image, forKey: "offer", lifetime: .until(midnight))
        try await thumbnails.setValue(image, forKey: "logo", lifetime: .unlimited)

        #expect(try thumbnails.info(forKey: "offer")?.expires == midnight)
        #expect(try #require(try thumbnails.info(forKey: "logo")).expires == nil)
        try await thumbnails.removeValues(forKeys: ["offer", "logo"])
        let info = try #require(try thumbnails.info(forKey: "lake"))
        #expect(try #require(info.expires) > Timestamp.now.advanced(by: .seconds(7000)))
        #expect(info.idleLimit == .seconds(600))
        #expect(info.cost == 1_000)
        try await thumbnails.setValue(image, forKey: "draft/lake")
        try await thumbnails.setValue(image, forKey: "hill")
        #expect(try thumbnails.count() == 3)

        let usage = try thumbnails.statistics()
        print(usage.liveByteCount, "bytes are live,", usage.allocatedByteCount, "on disk")
        try await thumbnails.compact()

        #expect((3_000...4_000).contains(usage.liveByteCount))
        #expect(usage.allocatedByteCount > usage.liveByteCount)
        let observation = thumbnails.observe { event in
          if case .removed(let key, _) = event { print(key, "is gone") }
        }

        try await thumbnails.trim(.toCount(50_000))
        try await thumbnails.trim(.toBytes(512 << 20, order: .largestFirst))
        try await thumbnails.trim(.older(than: .seconds(30 * 86_400)))
        try await thumbnails.remove { key, info in key.hasPrefix("draft/") }
        let expired = try await thumbnails.trim(.expired)
        print(expired.count, "entries had expired")
        try await thumbnails.removeAll()

        observation.cancel()
        #expect(expired.count == 0)
        #expect(try thumbnails.count() == 0)
        // Two by their keys, one by the predicate, two with all the others.
        let metrics = try thumbnails.statistics().metrics
        #expect(metrics.first { $0.name == "removals" }?.value == 5)
      }
    }
  }

  @Test("The limit on bytes has one name in events, statistics and metrics")
  func byteLimit() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let cache = try await DiskCache<String, [UInt8]>.open(
          .name("small"),
          configuration: DiskCacheConfiguration(byteLimit: 1 << 20))
        let events = cache.events()
        for number in 0..<12 {
          try await cache.setValue([UInt8](repeating: 7, count: 100_000), forKey: "\(number)")
        }
        let statistics = try cache.statistics()
        #expect(statistics.evictionCount > 0)
        #expect(
          statistics.metrics.contains {
            $0.name == "evictions.bytes" && $0.isCounter
              && UInt64($0.value) == statistics.evictionCount
          })
        try await cache.close()
        var evictionCount: UInt64 = 0
        for await event in events {
          if case .removed(_, .evicted(let cause)) = event, "\(cause)" == "byteLimit" {
            evictionCount += 1
          }
        }
        #expect(evictionCount == statistics.evictionCount)
      }
    }
  }

  @Test("What values cost in memory")
  func costs() {
    let (photo, icon) = (Image(width: 640, height: 480), Image(width: 16, height: 16))

    let images = MemoryCache<String, Image>(
      configuration: MemoryConfiguration(costLimit: 64 << 20),
      costing: { _, image in image.width * image.height * 4 })
    images.setValue(photo, forKey: "lake")
    images.setValue(icon, forKey: "star", options: .cost(100))
    let cost = images.totalCost()

    #expect(cost == 640 * 480 * 4 + 100)
  }

  @Test("Space stays free on the disk")
  func freeSpace() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var considerate = DiskCacheConfiguration(byteLimit: 1 << 30)
        considerate.store.freeDiskSpaceFloor = 1 << 20
        let downloads = try await DiskCache<String, [UInt8]>.open(
          .name("downloads"), configuration: considerate)

        try await downloads.setValue([1], forKey: "a")
        try await downloads.maintain()
        #expect(try downloads.count() == 1)
      }
    }
  }

  @Test("The files stay within a limit")
  func bytesOnDisk() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var bounded = DiskCacheConfiguration()
        bounded.diskByteLimit = 1 << 30
        let previews = try await DiskCache<String, [UInt8]>.open(
          .name("previews"), configuration: bounded)

        try await previews.setValue([1], forKey: "a")
        #expect(try previews.count() == 1)
      }
    }
  }
}
