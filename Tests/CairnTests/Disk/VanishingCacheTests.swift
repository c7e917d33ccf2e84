import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// Holds up the first thread that creates a directory.
private final class HeldFileSystem: FileSystemDecorator {
  let base: any FileSystem = SystemFileSystem()
  let isHeld = Atomic(false)
  let arrived = DispatchSemaphore(value: 0)
  let released = DispatchSemaphore(value: 0)

  func makeDirectory(path: String) throws(SystemError) {
    if isHeld.exchange(false, ordering: .relaxed) {
      arrived.signal()
      _ = released.wait(timeout: .now() + .seconds(100))
    }
    try base.makeDirectory(path: path)
  }
}

/// Lets no sync of data return while the gate holds.
private final class SyncGate: FileSystemDecorator {
  let base: any FileSystem = SystemFileSystem()
  let isHolding = Atomic(false)

  func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    while isHolding.load(ordering: .relaxed) { usleep(1000) }
    try base.synchronizeData(descriptor)
  }
}

@Suite("A cache recreates its directory if that is removed while it is open")
struct VanishingCacheTests {
  private let scene = TieredScene()
  private var path: String { scene.disk.path }

  /// Removes the directory, like a cleaner of `~/.cache`, and lets a second pass, after which the
  /// cache notices the loss.
  private func removeDirectory() throws {
    try FileManager.default.removeItem(atPath: path)
    scene.clock.advance(by: .seconds(1))
  }

  @Test("A write goes to a new directory, and the old contents are gone")
  func write() throws {
    let messages = Mutex<[String]>([])
    let cache: DiskCache<String, String> = try scene.disk.cache {
      $0.store.log = DiagnosticLog { message in messages.withLock { $0.append(message.text) } }
    }
    for number in 0..<10 { try cache.setValue("old", forKey: "\(number)") }
    try removeDirectory()
    try cache.setValue("new", forKey: "a")
    #expect(try cache.value(forKey: "a") == "new")
    #expect(try cache.value(forKey: "0") == nil)
    #expect(try cache.count() == 1)
    scene.disk.background.runAll()
    #expect(messages.withLock { $0.count { $0.contains("it was recreated") } } == 1)
    try cache.close()
    let second: DiskCache<String, String> = try scene.disk.cache()
    #expect(try second.value(forKey: "a") == "new")
    try second.close()
  }

  @Test("A durable write whose sync notices the loss is repeated in the new directory")
  func durable() throws {
    for held in [nil, 100] {
      let cache: DiskCache<String, Int> = try scene.cache {
        $0.store.durability = .durable
        if held == nil { $0.memory = nil }
      }
      try cache.setValue(1, forKey: "a")
      // No second has passed: the write itself does not check.
      try FileManager.default.removeItem(atPath: path)
      try cache.setValue(2, forKey: "a")
      #expect(try cache.value(forKey: "a") == 2)
      #expect(try cache.compareAndSet(3, forKey: "b", expecting: nil) != .mismatch(current: nil))
      try FileManager.default.removeItem(atPath: path)
      try cache.write { try $0.setValue(4, forKey: "c") }
      #expect(try cache.value(forKey: "c") == 4 && cache.count() == 1)
      try cache.close()
      let again: DiskCache<String, Int> = try scene.cache { $0.memory = nil }
      #expect(try again.value(forKey: "c") == 4)
      try again.close()
    }
  }

  @Test("The directory is recreated repeatedly")
  func again() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    var last: UInt64 = 0
    for number in 0..<5 {
      let version = try cache.setValue(number, forKey: "key")
      #expect(version > last)
      last = version
      #expect(try cache.value(forKey: "key") == number)
      #expect(try cache.count() == 1)
      try removeDirectory()
    }
    try cache.setValue(5, forKey: "key")
    try cache.close()
  }

  @Test("A batch is written to the new directory completely")
  func batch() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    try cache.setValue(0, forKey: "old")
    try removeDirectory()
    try cache.write { batch in
      for number in 0..<100 { try batch.setValue(number, forKey: "\(number)") }
    }
    for number in 0..<100 { #expect(try cache.value(forKey: "\(number)") == number) }
    #expect(try cache.count() == 100)
    try cache.close()
  }

  @Test("Observers are called as for a removal of all")
  func observers() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    for number in 0..<3 { try cache.setValue(number, forKey: "\(number)") }
    let events = Mutex<[String]>([])
    let observation = cache.observe { event in events.withLock { $0.append("\(event)") } }
    try removeDirectory()
    try cache.setValue(9, forKey: "a")
    #expect(events.withLock { $0.first }?.contains("removedAll(count: 3)") == true)
    #expect(events.withLock { $0.count } == 2)
    observation.cancel()
    try cache.close()
  }

  @Test("Memory holds nothing that was lost, and agrees with the new disk")
  func tiers() throws {
    let cache: DiskCache<String, String> = try scene.cache(held: 100)
    for number in 0..<10 { try cache.setValue("old", forKey: "\(number)") }
    #expect(try cache.value(forKey: "0") == "old")
    try removeDirectory()
    try cache.setValue("new", forKey: "a")
    #expect(try cache.value(forKey: "0") == nil)
    for _ in 0..<2 { #expect(try cache.value(forKey: "a") == "new") }
    try cache.setValue("newer", forKey: "a")
    #expect(try cache.value(forKey: "a") == "newer")
    #expect(cache.tier.count() == 1)
    #expect(try cache.audit().isEmpty)
    scene.advance(by: .seconds(2))
    try cache.close()
  }

  @Test("The cache's time continues, even if the clock was set back")
  func time() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    try cache.setValue(0, forKey: "old")
    scene.clock.advance(by: .seconds(-3600))
    #expect(try cache.value(forKey: "old") == 0)
    try removeDirectory()
    try cache.setValue(1, forKey: "a", lifetime: .after(.seconds(60)))
    #expect(
      try cache.info(forKey: "a")?.expires == ManualClock.start.advanced(by: .seconds(61)))
    try cache.close()
  }

  @Test("If the directory cannot be recreated, the write says why, and a later one works")
  func parentMissing() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    try cache.setValue(0, forKey: "old")
    try removeDirectory()
    try FileManager.default.removeItem(atPath: scene.disk.directory)
    try Data().write(to: URL(filePath: scene.disk.directory))
    #expect(throws: CacheError.self) { try cache.setValue(1, forKey: "a") }
    try FileManager.default.removeItem(atPath: scene.disk.directory)
    try cache.setValue(2, forKey: "a")
    #expect(try cache.value(forKey: "a") == 2)
    try cache.close()
  }

  @Test("A durable write made before another store took its place is repeated")
  func enteredBefore() async throws {
    let files = SyncGate()
    var configuration = DiskCacheConfiguration(countLimit: nil, byteLimit: nil)
    configuration.store.log = .none
    configuration.store.clock = scene.clock
    let cache = try DiskCache<String, Int>(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      environment: .init(fileSystem: files, background: ThreadBackgroundQueue()))
    try await cache.setValue(0, forKey: "old", durability: .durable)
    files.isHolding.store(true, ordering: .relaxed)
    let task = Task { try await cache.setValue(7, forKey: "key", durability: .durable) }
    while try cache.value(forKey: "key") == nil { try await Task.sleep(for: .milliseconds(1)) }
    try removeDirectory()
    scene.clock.advance(by: .seconds(1))
    // Notices the loss, and opens another store.
    try await cache.setValue(1, forKey: "other", durability: .process)
    files.isHolding.store(false, ordering: .relaxed)
    _ = try await task.value
    #expect(try cache.value(forKey: "key") == 7)
    try await cache.close()
  }

  @Test("Changed limits hold in the recreated store")
  func limits() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache(count: 100)
    try cache.setLimits(countLimit: 3, byteLimit: nil)
    cache.lifetime = .seconds(50)
    cache.idleLimit = .seconds(5)
    try cache.setValue(0, forKey: "old")
    try removeDirectory()
    scene.clock.advance(by: .seconds(1))
    for number in 0..<10 { try cache.setValue(number, forKey: "\(number)") }
    #expect(try cache.count() == 3)
    let info = try #require(try cache.info(forKey: "9"))
    #expect(info.expires == info.written.advanced(by: .seconds(50)))
    #expect(info.idleLimit == .seconds(5) && cache.idleLimit == .seconds(5))
    try cache.close()
  }

  @Test("A named cache recreates its missing parents too")
  func named() throws {
    let variables = ["XDG_CACHE_HOME": scene.disk("home")]
    var configuration = DiskCacheConfiguration.unlimited
    configuration.store.log = .none
    configuration.namespace = "app"
    configuration.store.clock = scene.clock
    let cache = try DiskCache<String, Int>.open(
      .name("pages"), configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      variables: variables)
    try cache.setValue(0, forKey: "old")
    // Housekeeping may create a file while the directory is being removed.
    while FileManager.default.fileExists(atPath: scene.disk("home")) {
      try? FileManager.default.removeItem(atPath: scene.disk("home"))
    }
    scene.clock.advance(by: .seconds(1))
    try cache.setValue(1, forKey: "a")
    #expect(try cache.value(forKey: "a") == 1)
    #expect(FileManager.default.fileExists(atPath: scene.disk("home/app/pages/LOCK")))
    try cache.close()
  }

  @Test("Closing a cache that was not recreated creates nothing")
  func closing() throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    try cache.setValue(0, forKey: "old")
    try removeDirectory()
    #expect(throws: CacheError.store(.vanished(path: path))) { try cache.close() }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A cache that is closed while it is recreated stays closed and releases the directory")
  func closedMeanwhile() throws {
    let files = HeldFileSystem()
    var configuration = DiskCacheConfiguration(countLimit: nil, byteLimit: nil)
    configuration.store.log = .none
    configuration.store.clock = scene.clock
    let cache = try DiskCache<String, Int>(
      path: path, configuration: configuration,
      keyCoder: .standard, valueCoder: .standard,
      environment: Environment(fileSystem: files, background: scene.disk.background))
    try cache.setValue(0, forKey: "old")
    try removeDirectory()
    files.isHeld.store(true, ordering: .relaxed)
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) { _ = try? cache.setValue(1, forKey: "new") }
    #expect(files.arrived.wait(timeout: .now() + .seconds(100)) == .success)
    let closer = DispatchGroup()
    DispatchQueue.global().async(group: closer) { try? cache.close() }
    // The close has to wait for the other thread.
    #expect(closer.wait(timeout: .now() + .milliseconds(300)) == .timedOut)
    files.released.signal()
    group.wait()
    closer.wait()
    #expect(throws: CacheError.store(.closed(path: path))) { try cache.setValue(2, forKey: "new") }
    scene.disk.background.discardAll()
    let second: DiskCache<String, Int> = try scene.disk.cache()
    try second.close()
  }

  @Test("Threads that write during the removal find one new directory")
  func threads() throws {
    let cache: DiskCache<Int, Int> = try scene.disk.cache()
    try cache.setValue(0, forKey: -1)
    try removeDirectory()
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for number in 0..<100 {
        do {
          try cache.setValue(number, forKey: thread * 100 + number)
          _ = try cache.value(forKey: number)
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(try cache.count() == 800)
    try cache.close()
  }
}
