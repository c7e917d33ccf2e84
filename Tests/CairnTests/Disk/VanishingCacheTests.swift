import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// Counts the descriptors that are open.
private final class CountingFileSystem: FileSystemDecorator {
  let base: any FileSystem = SystemFileSystem()
  let openCount = Atomic(0)

  private func counted(_ descriptor: Int32) -> Int32 {
    openCount.add(1, ordering: .relaxed)
    return descriptor
  }

  func openDirectory(path: String) throws(SystemError) -> Int32 {
    counted(try base.openDirectory(path: path))
  }

  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    counted(try base.openDirectory(name, in: directory))
  }

  func open(_ name: String, in directory: Int32, mode: OpenMode) throws(SystemError) -> Int32 {
    counted(try base.open(name, in: directory, mode: mode))
  }

  func close(_ descriptor: Int32) {
    openCount.subtract(1, ordering: .relaxed)
    base.close(descriptor)
  }
}

@Suite("A cache whose directory is removed while it is open says so, and opens again")
struct VanishingCacheTests {
  private let scene = TieredScene()
  private var path: String { scene.disk.path }
  private var vanished: StoreError { .vanished(path: path) }

  /// Removes the directory, like a cleaner of `~/.cache`, and lets a second pass, after which the
  /// cache notices the loss.
  private func removeDirectory() throws {
    try FileManager.default.removeItem(atPath: path)
    scene.clock.advance(by: .seconds(1))
  }

  @Test("Writes throw, reads continue, loads return their values, and a reopening heals the cache")
  func write() async throws {
    let messages = Record<String>()
    let cache: DiskCache<String, String> = try scene.disk.cache {
      $0.store.log = DiagnosticLog { messages.add($0.text) }
    }
    let events = Record<String>()
    cache.observe { events.add("\($0)") }
    try await cache.setValue("old", forKey: "a")
    try removeDirectory()
    for _ in 0..<3 {
      #expect(throws: vanished) { try cache.synchronous { try $0.setValue("new", forKey: "a") } }
      await #expect(throws: vanished) { try await cache.setValue("new", forKey: "b") }
      #expect(throws: vanished) {
        try cache.synchronous { try $0.write { try $0.setValue("new", forKey: "c") } }
      }
      #expect(throws: vanished) { try cache.synchronous { try $0.removeAll() } }
      #expect(throws: vanished) { try cache.synchronous { try $0.removeAll(tagged: "x") } }
      #expect(try cache.value(forKey: "a") == "old" && cache.value(forKey: "b") == nil)
      #expect(try await cache.value(forKey: "d") { "loaded" } == "loaded")
    }
    #expect(!FileManager.default.fileExists(atPath: path))
    scene.disk.background.runAll()
    #expect(messages.all.count { $0.contains("the directory was removed") } == 1)
    // Nothing that reads find was removed.
    #expect(events.all.count == 1)
    await #expect(throws: vanished) { try await cache.close() }
    let second: DiskCache<String, String> = try scene.disk.cache()
    #expect(try second.count() == 0)
    try await second.setValue("new", forKey: "a")
    try await second.close()
  }

  @Test("A durable write whose sync notices the loss throws", arguments: [nil, 100])
  func durable(held: Int?) async throws {
    let cache: DiskCache<String, Int> = try scene.cache(held: held) {
      $0.store.durability = .durable
      if held == nil { $0.memory = nil }
    }
    try await cache.setValue(1, forKey: "a")
    // No second has passed: the write itself does not check.
    try FileManager.default.removeItem(atPath: path)
    #expect(throws: vanished) { try cache.synchronous { try $0.setValue(2, forKey: "a") } }
    await #expect(throws: vanished) { try await cache.setValue(2, forKey: "a") }
    await #expect(throws: vanished) { try await cache.sync() }
    await #expect(throws: vanished) { try await cache.close() }
  }

  @Test("Closed and opened again, the cache leaves no descriptor behind")
  func descriptors() throws {
    let files = CountingFileSystem()
    for _ in 0..<5 {
      let cache: DiskCache<String, Int> = try scene.cache(
        keys: .standard, values: .standard, files: files)
      try cache.setValue(1, forKey: "a")
      try removeDirectory()
      #expect(throws: vanished) { try cache.setValue(2, forKey: "a") }
      #expect(throws: vanished) { try cache.close() }
      scene.disk.background.discardAll()
      scene.background.discardAll()
    }
    Reclamation.reclaimIfDue()
    #expect(files.openCount.load(ordering: .relaxed) == 0)
  }

  @Test("A cache that is still open does not keep another from opening at its path")
  func beside() throws {
    let first: DiskCache<String, Int> = try scene.disk.cache()
    try first.setValue(1, forKey: "a")
    try removeDirectory()
    let second: DiskCache<String, Int> = try scene.disk.cache()
    try second.setValue(2, forKey: "a")
    #expect(throws: vanished) { try first.setValue(3, forKey: "a") }
    #expect(throws: vanished) { try first.close() }
    #expect(try second.value(forKey: "a") == 2)
    try second.close()
  }

  // MARK: What a dying store leaves

  @Test(
    "Whatever a dying store leaves, the path opens, and nothing of it is deleted",
    arguments: [
      ["seg-0000000000000007"], ["ckpt-0000000000000008", "MANIFEST.new"],
      ["quarantine/seg-0000000000000001", "seg-0000000000000001"],
      ["MANIFEST.next", "MANIFEST.next.new", "RESERVE", "FOLLOW"],
      ["LOCK", "seg-0000000000000001", "seg-0000000000000002", "RESERVE"],
    ])
  func leftovers(names: [String]) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/quarantine", withIntermediateDirectories: true)
    if !names.contains(where: { $0.hasPrefix("quarantine") }) {
      try FileManager.default.removeItem(atPath: path + "/quarantine")
    }
    for (number, name) in names.enumerated() {
      let bytes = name == "LOCK" ? [] : [UInt8(number + 1), 2, 3]
      try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
    }
    let segments = names.filter { FileName.identifier(in: $0) != nil }
    if !segments.isEmpty {
      // A store is no cache: what looks like data stays in its place.
      #expect(throws: StoreError.self) { try scene.disk.store() }
    }
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    #expect(try cache.storeStatistics().recovery.quarantinedFiles.sorted() == segments.sorted())
    #expect(try cache.count() == 0)
    try cache.setValue(1, forKey: "a")
    try cache.close()
    let kept = try contents(ofDirectory: path + "/quarantine", orNone: segments.isEmpty)
    for (number, name) in names.enumerated() where name.contains("-0") {
      #expect(kept.values.contains(Data([UInt8(number + 1), 2, 3])), "\(name)")
    }
    let again: DiskCache<String, Int> = try scene.disk.cache()
    #expect(try again.value(forKey: "a") == 1)
    try again.close()
  }

  @Test("A named cache is created again with its missing parents")
  func named() throws {
    let variables = ["XDG_CACHE_HOME": scene.disk("home")]
    var configuration = DiskCacheConfiguration()
    configuration.store.log = .silent
    configuration.namespace = "app"
    func open() throws -> DiskCache<String, Int> {
      try DiskCache<String, Int>.open(
        .name("pages"), configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        variables: variables)
    }
    let cache = try open()
    try cache.setValue(0, forKey: "old")
    // Housekeeping may create a file while the directory is being removed.
    while FileManager.default.fileExists(atPath: scene.disk("home")) {
      try? FileManager.default.removeItem(atPath: scene.disk("home"))
    }
    #expect(throws: StoreError.self) { try cache.close() }
    let again = try open()
    try again.setValue(1, forKey: "a")
    #expect(FileManager.default.fileExists(atPath: scene.disk("home/app/pages/LOCK")))
    try again.close()
  }
}

/// The bytes of each file in a directory, or nothing if it may be missing.
private func contents(ofDirectory path: String, orNone: Bool) throws -> [String: Data] {
  if orNone, !FileManager.default.fileExists(atPath: path) { return [:] }
  return try contents(ofDirectory: path)
}
