import Cairn
import CairnMoving
import Foundation
import StoreCopying

/// Spreads keys over many stores. Each store can move to another place while reads and writes
/// continue.
///
///     let users = try await ShardedStore.open(
///       catalogue: "/disk1/users.catalogue", places: ["/disk1/users", "/disk2/users"])
///     try await users.write(forKey: "user/17") { try await $0.setValue("alice", forKey: "user/17") }
///     let name = try users.read(forKey: "user/17") { try $0.value(forKey: "user/17") }
///     for shard in users.misplacedShards {
///       try await users.move(shard, to: users.map.place(ofShard: shard))
///     }
///
/// A place is a directory, for example one per disk, that no other sharded store uses. The
/// catalogue is a small store that records the place of each shard. A move takes effect when the
/// catalogue records it. Batches are atomic within one shard.
///
/// Each store has about 7 open files, so 256 stores need `ulimit -n 4096`.
public struct ShardedStore: Sendable {
  /// Maps keys to shards, and shards to the places where they should be. Has the catalogue's
  /// spelling of a place, if there is one.
  public let map: ShardMap
  private let catalogue: Store
  private let configuration: StoreConfiguration
  private let shards: [MovableStore]

  /// A configuration with segments of 4 MiB, so that an empty shard is small.
  public static var standardConfiguration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.segmentByteLimit = 4 << 20
    return configuration
  }

  /// Opens all shards at the places in the catalogue, and creates the shards that are not in it.
  ///
  /// - Parameters:
  ///   - path: the catalogue, a separate store.
  ///   - places: where shards should be. A shard may be elsewhere: see `misplacedShards`.
  ///   - shardCount: the number of shards, which must never change.
  ///   - configuration: the configuration of each shard. Its limits apply to one shard.
  /// - Throws: `StoreError`; `ShardError` if the catalogue has another number of shards, or if a
  ///   store with data is not in it.
  public static func open(
    catalogue path: String, places: [String], shardCount: Int = 256,
    configuration: StoreConfiguration = standardConfiguration
  ) async throws -> ShardedStore {
    var map = ShardMap(places: places, shardCount: shardCount)
    let catalogue = try await Store(path: path)
    var shards: [MovableStore] = []
    do {
      try await checkCount(shardCount, in: catalogue)
      map.places = try spelled(places, in: catalogue, shardCount)
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

  /// The places, each spelled as in the catalogue, because the map depends on the spelling.
  private static func spelled(
    _ places: [String], in catalogue: Store, _ count: Int
  ) throws -> [String] {
    var known: [DirectoryID: String] = [:]
    for number in 0..<count {
      guard let bytes = try catalogue.value(forKey: "shard \(number)") else { continue }
      let place = String(decoding: bytes, as: UTF8.self)
      if let id = DirectoryID(place), known[id] == nil { known[id] = place }
    }
    return places.map { DirectoryID($0).flatMap { known[$0] } ?? $0 }
  }

  private static func opened(
    _ number: Int, _ map: ShardMap, _ catalogue: Store, _ configuration: StoreConfiguration
  ) async throws -> Store {
    var configuration = configuration
    if let place = try catalogue.value(forKey: "shard \(number)") {
      // If the store is missing, throw instead of creating an empty one.
      configuration.createsStore = false
      let place = String(decoding: place, as: UTF8.self)
      return try await Store(path: directory(number, at: place), configuration: configuration)
    }
    let place = map.place(ofShard: number)
    let path = directory(number, at: place)
    try FileManager.default.createDirectory(
      atPath: place, withIntermediateDirectories: true)
    let store = try await Store(path: path, configuration: configuration)
    guard try store.count() == 0 else {
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

  /// Calls `body` with the key's store, for reading. See `MovableStore.read`.
  public func read<Result>(forKey key: String, _ body: (Store) throws -> Result) throws -> Result {
    try shards[map.shard(forKey: key)].read(body)
  }

  /// Calls `body` with the key's store, for writing. See `MovableStore.write`.
  public nonisolated(nonsending) func write<Result>(
    forKey key: String, _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    try await shards[map.shard(forKey: key)].write(body)
  }

  /// The current place of a shard.
  public func place(ofShard shard: Int) -> String {
    URL(filePath: shards[shard].path).deletingLastPathComponent().path
  }

  /// The shards that should be elsewhere, because places were added or removed.
  public var misplacedShards: [Int] {
    shards.indices.filter { !DirectoryID.isSame(place(ofShard: $0), map.place(ofShard: $0)) }
  }

  /// Moves a shard to another place while it is read and written. First removes what an unfinished
  /// move left there. Does nothing if the shard is there already, however the place is spelled.
  ///
  /// If this call throws, or the process dies during it, the shard stays at its old place with all
  /// writes. After `MoveIsUncertain`, open the sharded store again: the catalogue then has one of
  /// the two places.
  ///
  /// - Returns: the old directory, if the shard has moved but the directory could not be removed.
  /// - Throws: the errors of `MovableStore.move`.
  @discardableResult
  public func move(_ number: Int, to place: String) async throws -> Remains? {
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    return try await shards[number].move(to: Self.directory(number, at: place), replacing: true) {
      try await catalogue.setValue(place, forKey: "shard \(number)")
    }
  }

  /// Closes all shards. Call it after the last read and write have ended.
  public func close() async throws {
    for shard in shards { try await shard.close() }
    try await catalogue.close()
  }
}

/// The reason why shards cannot be opened.
public enum ShardError: Error, Hashable {
  /// The catalogue has a different number of shards: this one.
  case otherCount(String)
  /// The store at this path has data, but is not in the catalogue.
  case unknownData(String)
}
