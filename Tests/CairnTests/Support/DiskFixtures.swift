import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// The scene of a test of a cache on disk: its own directory, which is removed with the last
/// reference, and control of the time and of background work.
final class DiskScene: Sendable {
  let clock = ManualClock()
  let background = ManualBackgroundQueue()
  let directory: String

  init() {
    // The directory is in memory if possible, where syncs cost nothing.
    let parent = FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
    directory = "\(parent)/cairn-cache-tests.\(UUID().uuidString)"
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: false)
    } catch {
      Issue.record("no directory for the test: \(error)")
    }
  }

  deinit {
    background.discardAll()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The full path of a name in the directory.
  func callAsFunction(_ name: String) -> String { directory + "/" + name }

  var path: String { self("cache") }

  /// Opens the cache at `path` with these coders, limits and other options.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    at path: String? = nil, keys: KeyCoder<Key>, values: ValueCoder<Value>, count: Int? = nil,
    bytes: Int? = nil, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> DiskCache<Key, Value> {
    var configuration = DiskCacheConfiguration(countLimit: count, byteLimit: bytes)
    configuration.store.clock = clock
    configuration.store.log = .silent
    configuration.store.segmentByteLimit = 256 << 10
    change(&configuration)
    return try DiskCache(
      path: path ?? self.path, configuration: configuration, keyCoder: keys, valueCoder: values,
      environment: Environment(
        fileSystem: SystemFileSystem(), background: background, maintenance: background,
        pause: { _ in }))
  }

  /// Opens the cache with the standard coders.
  func cache<Key: Hashable & Sendable & Codable, Value: Sendable & Codable>(
    at path: String? = nil, count: Int? = nil, bytes: Int? = nil,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> DiskCache<Key, Value> {
    try cache(
      at: path, keys: .standard, values: .standard, count: count, bytes: bytes, change)
  }

  /// The store under a cache that is not open.
  func store() throws -> Store {
    var configuration = StoreConfiguration()
    configuration.clock = clock
    configuration.log = .silent
    return try Store(path: path, configuration: configuration)
  }

  /// The names in the directory that begin with a prefix.
  func names(_ prefix: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0.hasPrefix(prefix) }.sorted()
  }
}

/// The bytes of each file in a directory, by name.
func contents(ofDirectory path: String) throws -> [String: Data] {
  var contents: [String: Data] = [:]
  for name in try FileManager.default.contentsOfDirectory(atPath: path) {
    contents[name] = try bytes(ofFile: path + "/" + name)
  }
  return contents
}

/// The bytes of a file. Foundation leaks some memory when it reads an empty file, such as `LOCK`.
func bytes(ofFile path: String) throws -> Data {
  let attributes = try FileManager.default.attributesOfItem(atPath: path)
  if attributes[.size] as? Int == 0 { return Data() }
  return try Data(contentsOf: URL(filePath: path))
}

/// Flips a bit of a file, so that it is corrupt.
func damage(_ path: String, at offset: Int) throws {
  var bytes = try bytes(ofFile: path)
  bytes[offset] ^= 0x10
  try bytes.write(to: URL(filePath: path))
}

extension DiskCache {
  /// Counts each key as just read, in this order, like a memory tier that returned the values.
  ///
  /// - Returns: how many of them have a value.
  @discardableResult
  func touch(_ keys: some Sequence<Key>) throws -> Int {
    var count = 0
    for key in keys {
      let isThere = try bytes(of: key).withBytes { (bytes) throws(StoreError) in
        try store.touch(bytes)
      }
      if isThere { count += 1 }
    }
    return count
  }
}

extension DiskCache {
  /// Whether the cache has observers.
  var isObserved: Bool { events.isObserved.load(ordering: .relaxed) }
}
