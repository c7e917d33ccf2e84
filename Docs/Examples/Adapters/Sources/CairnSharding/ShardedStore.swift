import Cairn
import CairnMoving
import Foundation

/// Spreads keys over many stores. Each store can move to another place while reads and writes go on.
///
///     let users = try await ShardedStore.open(
///       catalogue: "/disk1/users.catalogue", places: ["/disk1/users", "/disk2/users"])
///     try await users.write(forKey: "user/17") { try await $0.setValue("alice", forKey: "user/17") }
///     let name = try users.read(forKey: "user/17") { try $0.value(forKey: "user/17") }
///     for shard in users.misplacedShards {
///       try await users.move(shard, to: users.map.place(ofShard: shard))
///     }
///
/// A place is a directory, such as one for each disk. The catalogue is a small store that has the place of
/// each shard; a move is done when it is written there. Batches are atomic within one shard.
///
/// Each store takes some 7 open files, so 256 need `ulimit -n` of 4096.
public struct ShardedStore: Sendable {
  /// Which shard has a key, and where shards should be.
  public let map: ShardMap
  private let catalogue: Store
  private let configuration: StoreConfiguration
  private let shards: [MovableStore]

  /// What a shard needs little of: segments of 4 MiB, so that an empty one is small.
  public static var standardConfiguration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.segmentByteLimit = 4 << 20
    return configuration
  }

  /// Opens all shards where the catalogue says, and makes those that are not there yet.
  ///
  /// - Parameters:
  ///   - path: the catalogue: a store of its own.
  ///   - places: where shards should be. A shard may be elsewhere: see `misplacedShards`.
  ///   - shardCount: for ever the same.
  ///   - configuration: of each shard. Limits are those of one.
  /// - Throws: `StoreError`; `ShardError` if the catalogue is of another number of shards, or knows nothing of
  ///   data that is there.
  public static func open(
    catalogue path: String, places: [String], shardCount: Int = 256,
    configuration: StoreConfiguration = standardConfiguration
  ) async throws -> ShardedStore {
    let map = ShardMap(places: places, shardCount: shardCount)
    let catalogue = try await Store(path: path)
    var shards: [MovableStore] = []
    do {
      try await checkCount(shardCount, in: catalogue)
      for number in 0..<shardCount {
        let store = try await opened(number, map, catalogue, configuration)
        shards.append(MovableStore(store, configuration: configuration))
      }
    } catch {
      for shard in shards { try? await shard.close() }
      try? await catalogue.close()
      throw error
    }
    return ShardedStore(
      map: map, catalogue: catalogue, configuration: configuration, shards: shards)
  }

  private static func checkCount(_ count: Int, in catalogue: Store) async throws {
    if let known = try catalogue.value(forKey: "count") {
      let known = String(decoding: known, as: UTF8.self)
      guard known == String(count) else { throw ShardError.otherCount(known) }
    } else {
      try await catalogue.setValue(String(count), forKey: "count")
    }
  }

  private static func opened(
    _ number: Int, _ map: ShardMap, _ catalogue: Store, _ configuration: StoreConfiguration
  ) async throws -> Store {
    var configuration = configuration
    if let place = try catalogue.value(forKey: "shard \(number)") {
      // One that is missing is an error, and no reason to begin with an empty one.
      configuration.createsStore = false
      let place = String(decoding: place, as: UTF8.self)
      return try await Store(path: directory(number, at: place), configuration: configuration)
    }
    let place = map.place(ofShard: number)
    let path = directory(number, at: place)
    try FileManager.default.createDirectory(
      atPath: place, withIntermediateDirectories: true)
    let store = try await Store(path: path, configuration: configuration)
    guard try store.isEmpty else {
      try await store.close()
      throw ShardError.unknownData(path)
    }
    try await catalogue.setValue(place, forKey: "shard \(number)")
    return store
  }

  /// The directory of a shard at a place.
  public static func directory(_ shard: Int, at place: String) -> String {
    "\(place)/\(shard).cairn"
  }

  /// Calls `body` with the store that has a key, to read: `MovableStore.read`.
  public func read<Result>(forKey key: String, _ body: (Store) throws -> Result) throws -> Result {
    try shards[map.shard(forKey: key)].read(body)
  }

  /// Calls `body` with the store that has a key, to write: `MovableStore.write`.
  public nonisolated(nonsending) func write<Result>(
    forKey key: String, _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    try await shards[map.shard(forKey: key)].write(body)
  }

  /// Where a shard is.
  public func place(ofShard shard: Int) -> String {
    URL(filePath: shards[shard].path).deletingLastPathComponent().path
  }

  /// The shards that should be elsewhere, since places came or went.
  public var misplacedShards: [Int] {
    shards.indices.filter { place(ofShard: $0) != map.place(ofShard: $0) }
  }

  /// Moves a shard to another place while it is read and written. What was left there by a move that did not
  /// end is removed.
  ///
  /// If it throws, or the process dies, the shard is where it was, with all that was written.
  ///
  /// - Throws: as `MovableStore.move`.
  public func move(_ number: Int, to place: String) async throws {
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    try await shards[number].move(to: Self.directory(number, at: place), replacing: true) {
      try await catalogue.setValue(place, forKey: "shard \(number)")
    }
  }

  /// Closes all shards. Call it when the last read and write have ended.
  public func close() async throws {
    for shard in shards { try await shard.close() }
    try await catalogue.close()
  }
}

/// Why shards cannot be opened.
public enum ShardError: Error, Hashable {
  /// The catalogue is of so many shards.
  case otherCount(String)
  /// There is a store with data that the catalogue does not know.
  case unknownData(String)
}
