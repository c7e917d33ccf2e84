import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

extension Store {
  /// Opens a store that announces its writes, for a test.
  static func announcing(
    _ path: String, _ configuration: StoreConfiguration = .small(),
    fileSystem: any FileSystem = SystemFileSystem(),
    background: any BackgroundQueue = ThreadBackgroundQueue()
  ) throws(StoreError) -> Store {
    var environment = Environment(fileSystem: fileSystem, background: background)
    if background is ManualBackgroundQueue { environment.pause = { _ in } }
    environment.announces = true
    return try Store(
      path: path, configuration: configuration, environment: environment, readOnly: false)
  }

  /// Follows a store for a test.
  static func following(
    _ path: String, _ freshness: Freshness = .everyRead,
    _ configuration: StoreConfiguration = .small(),
    fileSystem: any FileSystem = SystemFileSystem()
  ) throws(StoreError) -> Store {
    try Store(
      following: path, freshness: freshness, configuration: configuration,
      environment: Environment(fileSystem: fileSystem, background: ThreadBackgroundQueue()))
  }
}

@Suite("Following a store that another opener writes to")
final class FollowingTests {
  let directory: TemporaryDirectory
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  @Test("Each read finds everything written before it")
  func everyRead() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    let follower = try Store.following(directory.store)
    #expect(try follower.count() == 0)
    for number in 0..<3000 {
      try writer.setValue("value \(number)", forKey: "key \(number % 700)")
      #expect(try follower.text("key \(number % 700)") == "value \(number)")
      if number % 5 == 0 {
        try writer.removeValue(forKey: "key \(number % 700)")
        #expect(try follower.text("key \(number % 700)") == nil)
      }
      if number % 101 == 0 { queue.runAll() }
    }
    #expect(try follower.contents() == writer.contents())
    #expect(try follower.count() == writer.count())
    #expect(follower.lastVersion == writer.lastVersion)
    #expect(try follower.auditUsage() == [])
    #expect(
      storeError { try follower.setValue("", forKey: "a") } == .readOnly(path: directory.store))
    try follower.close()
    #expect(storeError { _ = try follower.text("key 1") } == .closed(path: directory.store))
    try writer.close()
  }

  @Test("A view that is not told to catch up stays unchanged")
  func manual() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    try writer.setValue("1", forKey: "a")
    let follower = try Store.following(directory.store, .manual)
    try writer.setValue("2", forKey: "a")
    try writer.setValue("1", forKey: "b")
    #expect(try follower.text("a") == "1")
    #expect(try follower.contains("b") == false)
    try writer.removeAll()
    queue.runAll()
    #expect(try follower.text("a") == "1")
    try follower.catchUp()
    #expect(try follower.count() == 0)
    try writer.close()
    #expect(try follower.count() == 0)
  }

  @Test(
    "Whatever the writer does, the follower finds what the writer finds",
    arguments: [true, false])
  func anything(mapsFiles: Bool) throws {
    var random = Seed.generator("anything \(mapsFiles)")
    let configuration = StoreConfiguration.small {
      $0.spaceBound = 1.2
      $0.deadByteFloor = 0
      $0.asideOperationCount = 20
    }
    var writer = try Store.announcing(directory.store, configuration, background: queue)
    let follower = try Store.following(
      directory.store, .everyRead, .small { $0.mapsFiles = mapsFiles })
    let late = try Store.following(
      directory.store, .manual, .small { $0.mapsFiles = mapsFiles })
    var model: [String: [UInt8]] = [:]
    func key() -> String { "key \(random.below(200))" }
    for step in 0..<200 {
      switch random.below(24) {
      case 0..<9:
        for _ in 0..<random.below(40) {
          let key = key()
          let value = [UInt8](repeating: UInt8(step & 255), count: random.below(600))
          try writer.setValue(value, forKey: key)
          model[key] = value
        }
      case 9..<12:
        for _ in 0..<random.below(30) {
          let key = key()
          try writer.removeValue(forKey: key)
          model[key] = nil
        }
      case 12..<15:
        var batch: [(String, [UInt8])] = []
        for _ in 0..<random.below(60) {
          batch.append((key(), [UInt8](repeating: UInt8(step & 255), count: random.below(100))))
        }
        try writer.write { changes in
          for (key, value) in batch { try changes.setValue(value, forKey: key) }
        }
        for (key, value) in batch { model[key] = value }
      case 15:
        let (key, value) = (key(), [UInt8](repeating: UInt8(step & 255), count: 100_000))
        try writer.setValue(value, forKey: key)
        model[key] = value
      case 16:
        let key = key()
        try writer.setValue("lives", forKey: key, lifetime: .seconds(3600))
        try writer.setLifetime(.seconds(7200), forKey: key)
        model[key] = Array("lives".utf8)
      case 17: try writer.compact()
      case 18: try writer.checkpoint()
      case 19: if random.below(4) == 0 { try writer.removeAll(); model = [:] }
      case 20:
        try writer.close()
        writer = try Store.announcing(directory.store, configuration, background: queue)
      case 22: try writer.sync()
      default: queue.runAll()
      }
      let context: Comment = "step \(step); \(Seed.comment)"
      #expect(try follower.count() == model.count, context)
      if step % 8 == 0 {
        try #require(try follower.contents() == model, context)
        #expect(try follower.auditUsage(mayCountMore: true) == [], context)
        #expect(try follower.ends() == writer.ends(), context)
        let snapshot = try follower.snapshot()
        #expect(try snapshot.count() == model.count, context)
      } else {
        let key = key()
        #expect(try follower.value(forKey: key) == model[key], context)
      }
      if random.below(30) == 0 {
        try late.catchUp()
        try #require(try late.contents() == model, context)
      }
    }
    try writer.close()
    #expect(try follower.contents() == model)
  }
}

extension FollowingTests {
  @Test("A read that begins while a batch is added waits for all of it")
  func batchIsEntered() throws {
    let fileSystem = FaultyFileSystem()
    let keys = (0..<12).map { "key \($0)" }
    let writer = try Store.announcing(directory.store, background: queue)
    for key in keys { try writer.setValue("before", forKey: key) }
    let follower = try Store.following(
      directory.store, .everyRead, .small { $0.mapsFiles = false }, fileSystem: fileSystem)
    #expect(try follower.count() == keys.count)
    try writer.write { batch in
      for key in keys { try batch.setValue("after", forKey: key) }
    }
    let readers = Mutex<[Background]>([])
    let isInside = Atomic(false)
    fileSystem.setHook { event in
      // Readers make system calls too.
      guard event.call == .read, !isInside.exchange(true, ordering: .relaxed) else { return nil }
      let reader = Background {
        let texts = try keys.map { try follower.text($0) }
        #expect(Set(texts).count == 1)
      }
      reader.waitUntilBlocked()
      readers.withLock { $0.append(reader) }
      isInside.store(false, ordering: .relaxed)
      return nil
    }
    #expect(try follower.text("key 0") == "after")
    fileSystem.setHook(nil)
    let waited = readers.withLock { $0 }
    #expect(waited.count > keys.count)
    for reader in waited {
      #expect(reader.finishes())
      #expect(reader.error == nil)
    }
    try writer.close()
  }
}
