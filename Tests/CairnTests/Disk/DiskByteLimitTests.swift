import Cairn
import CairnRepair
import Foundation
import FuzzSupport
import Testing

/// A limit on the space of the files, which `byteLimit` is not.
@Suite("A limit in bytes on disk")
struct DiskByteLimitTests {
  private let scene = DiskScene()
  private var path: String { scene.path }

  private func open(_ limit: Int, spaceBound: Double = 1.5) throws -> DiskCache<Int, [UInt8]> {
    var configuration = DiskCacheConfiguration()
    configuration.diskByteLimit = limit
    configuration.store.spaceBound = spaceBound
    configuration.store.log = .silent
    return try .open(.path(path), configuration: configuration)
  }

  /// The space of the files, as `du` counts it.
  private func takenByteCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(0) { sum, name in
      var status = stat()
      // SAFETY: the structure lives across the call. A file may be removed between the two calls.
      guard unsafe lstat("\(path)/\(name)", &status) == 0 else { return sum }
      return sum + Int(status.st_blocks) * 512
    }
  }

  @Test(
    "The limit holds whenever a write returns, whatever the values' sizes, and the cache uses it",
    arguments: [(4 << 20, 200), (4 << 20, 20_000), (16 << 20, 3000), (16 << 20, 500_000)])
  func holds(limit: Int, valueByteCount: Int) throws {
    let cache = try open(limit)
    var random = SystemRandomNumberGenerator()
    let count = 4 * limit / (valueByteCount + 60)
    var most = 0
    for number in 0..<count {
      // Two in three are new, one is overwritten.
      let key = number % 3 == 2 ? Int.random(in: 0...number, using: &random) : number
      try cache.setValue([UInt8](repeating: UInt8(key & 255), count: valueByteCount), forKey: key)
      if number % 16 == 0 {
        #expect(try cache.value(forKey: key)?.first == UInt8(key & 255))
      }
      if number % max(1, count / 500) == 0 { most = max(most, try takenByteCount()) }
    }
    #expect(most <= limit)
    let live = try cache.totalCost()
    #expect(live > limit * 40 / 100, "\(live) of \(limit)")
    try cache.close()
    #expect(try takenByteCount() <= limit)
    #expect(try Store.verify(path: path).errors == [])
  }

  @Test(
    "A full cache holds almost as much as a folder, and hits almost as often",
    arguments: [(16, 1000, 75), (64, 16_000, 85), (64, 60_000, 85)])
  func isUsed(mebibytes: Int, valueByteCount: Int, share: Int) throws {
    let limit = mebibytes << 20
    let cache = try open(limit, spaceBound: 2)
    // Exact LRU over files of whole blocks.
    let folder = MemoryCache<Int, Bool>(
      configuration: MemoryConfiguration(
        countLimit: limit / ((valueByteCount + 4095) & ~4095), costLimit: nil))
    let count = 3 * limit / valueByteCount
    var random = FuzzRandom(seed: 1)
    var (hits, folderHits, least) = (0, 0, Int.max)
    for request in 0..<2 * count {
      // The square of a uniform number: some keys are read far more often than others.
      let unit = Double.random(in: 0..<1, using: &random)
      let key = Int(unit * unit * Double(count))
      let isHit = try cache.value(forKey: key) != nil
      if !isHit { try cache.setValue([UInt8](repeating: 1, count: valueByteCount), forKey: key) }
      let isFolderHit = folder.value(forKey: key) != nil
      if !isFolderHit { folder.setValue(true, forKey: key) }
      if request < count { continue }
      if isHit { hits += 1 }
      if isFolderHit { folderHits += 1 }
      if request % 64 == 0 { least = min(least, try cache.statistics().liveByteCount) }
    }
    #expect(least >= limit / 100 * share, "\(least) of \(limit)")
    #expect(hits >= folderHits - count * 3 / 100, "\(hits), \(folderHits) of \(count)")
    #expect(try takenByteCount() <= limit)
    try cache.close()
  }

  @Test("A full cache or store takes a value of a quarter of the limit", arguments: [false, true])
  func large(isBatch: Bool) throws {
    let limit = 16 << 20
    let cache = try open(limit)
    let large = [UInt8](repeating: 2, count: limit / 4)
    for number in 0..<6000 {
      try cache.setValue([UInt8](repeating: 1, count: 3000), forKey: number)
    }
    if isBatch {
      try cache.setValues([(key: -1, value: large)])
    } else {
      try cache.setValue(large, forKey: -1)
    }
    #expect(try cache.value(forKey: -1) == large)
    #expect(try cache.value(forKey: 5999) != nil)
    #expect(try takenByteCount() <= limit)
    try cache.close()
    var configuration = StoreConfiguration()
    configuration.diskByteLimit = limit
    configuration.durability = .process
    configuration.log = .silent
    let store = try Store(path: path, configuration: configuration)
    for number in 0..<6000 {
      try store.setValue([UInt8](repeating: 1, count: 3000), forKey: "\(number)")
    }
    if isBatch {
      try store.write { try $0.setValue(large, forKey: "large") }
    } else {
      try store.setValue(large, forKey: "large")
    }
    #expect(try store.value(forKey: "large") == large)
    #expect(try takenByteCount() <= limit)
    try store.close()
  }

  @Test("A batch that is larger than the limit fails, and evicts little")
  func tooLarge() throws {
    let cache = try open(4 << 20)
    for number in 0..<500 {
      try cache.setValue([UInt8](repeating: 1, count: 5000), forKey: number)
    }
    let count = try cache.count()
    let large = (0..<6).map { (key: -1 - $0, value: [UInt8](repeating: 2, count: 1 << 20)) }
    let error = #expect(throws: StoreError.self) { try cache.setValues(large) }
    guard case .noSpace(_, _, .quota)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try cache.count() > count / 2)
    try cache.close()
  }

  @Test("A lower byteLimit beside it counts live bytes alone")
  func beside() throws {
    var configuration = StoreConfiguration()
    configuration.diskByteLimit = 64 << 20
    configuration.durability = .process
    configuration.byteLimit = 100_000
    let store = try Store(path: path, configuration: configuration)
    for number in 0..<5000 { try store.setValue([1], forKey: "\(number)") }
    #expect((98_000...100_000).contains(try store.statistics().liveByteCount))
    try store.setLimits(countLimit: nil, byteLimit: 1000)
    #expect((900...1000).contains(try store.statistics().liveByteCount))
    try store.setValue([UInt8](repeating: 1, count: 900), forKey: "large")
    #expect(try store.contains("large"))
    try store.close()
  }

  @Test("The limit holds without background compaction: writes enforce it, and report this")
  func withoutBackground() throws {
    let limit = 4 << 20
    let cache: DiskCache<Int, [UInt8]> = try scene.cache(keys: .standard, values: .bytes) {
      $0.diskByteLimit = limit
    }
    for number in 0..<6000 {
      try cache.setValue([UInt8](repeating: 1, count: 3000), forKey: number)
      if number % 20 == 0 { #expect(try takenByteCount() <= limit) }
    }
    #expect(try cache.storeStatistics().delayedWriteCount > 0)
    #expect(try cache.totalCost() > limit / 3)
    try cache.close()
  }

  @Test("The limit holds with several writers")
  func threads() async throws {
    let limit = 8 << 20
    let cache = try open(limit)
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for number in 0..<2000 {
            do {
              try await cache.setValue(
                [UInt8](repeating: 1, count: 3000), forKey: number * 4 + writer)
              if number % 50 == 0 { #expect(try takenByteCount() <= limit) }
            } catch { Issue.record("\(error)") }
          }
        }
      }
    }
    try await cache.close()
  }

  @Test("A cache that is opened with a lower limit meets it with its next writes")
  func lowered() throws {
    do {
      let cache = try open(32 << 20)
      for number in 0..<4000 {
        try cache.setValue([UInt8](repeating: 1, count: 5000), forKey: number)
      }
      try cache.close()
    }
    let cache = try open(8 << 20)
    for number in 0..<2000 {
      try cache.setValue([UInt8](repeating: 2, count: 5000), forKey: -1 - number)
    }
    try cache.maintain()
    #expect(try takenByteCount() <= 8 << 20)
    #expect(try cache.value(forKey: -2000)?.first == 2)
  }

  @Test("A store keeps its limit too, while a snapshot holds overwritten values")
  func store() throws {
    var configuration = StoreConfiguration()
    configuration.diskByteLimit = 4 << 20
    configuration.durability = .process
    configuration.log = .silent
    let store = try Store(path: path, configuration: configuration)
    for number in 0..<100 { try store.setValue([1], forKey: "kept \(number)") }
    let snapshot = try store.snapshot()
    for number in 0..<3000 {
      try store.setValue([UInt8](repeating: 1, count: 5000), forKey: "\(number % 10)")
      if number % 10 == 0 { #expect(try takenByteCount() <= 4 << 20) }
    }
    #expect(try snapshot.count() == 100 && store.count() == 110)
    snapshot.close()
    try store.close()
  }

  @Test("A limit that is too low for any use is refused")
  func refused() throws {
    for limit in [0, -1, 100_000] {
      let error = #expect(throws: StoreError.self) { _ = try open(limit) }
      guard case .invalidConfiguration("diskByteLimit", _) = error else {
        return #expect(Bool(false), "\(String(describing: error))")
      }
    }
  }
}
