import Cairn
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
public final class ShardedStore: Sendable {
  /// Which shard has a key, and where shards should be.
  public let map: ShardMap
  private let catalogue: Store
  private let configuration: StoreConfiguration
  private let shards: [Shard]

  /// What a shard needs little of: segments of 4 MiB, so that an empty one is small.
  public static var standardConfiguration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.segmentByteLimit = 4 << 20
    return configuration
  }

  private init(
    map: ShardMap, catalogue: Store, configuration: StoreConfiguration, shards: [Shard]
  ) {
    self.map = map
    self.catalogue = catalogue
    self.configuration = configuration
    self.shards = shards
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
    var shards: [Shard] = []
    do {
      try await checkCount(shardCount, in: catalogue)
      for number in 0..<shardCount {
        shards.append(try await Shard(opened(number, map, catalogue, configuration)))
      }
    } catch {
      for shard in shards { try? await shard.store.close() }
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

  /// Calls `body` with the store that has a key, to read. It may be called again, if the shard has moved
  /// meanwhile.
  public func read<Result>(forKey key: String, _ body: (Store) throws -> Result) throws -> Result {
    let shard = shards[map.shard(forKey: key)]
    while true {
      let store = shard.store
      do { return try body(store) } catch StoreError.closed(path: _) where shard.store !== store {
        continue
      }
    }
  }

  /// Calls `body` with the store that has a key, to write. It waits while a move comes to its end, for
  /// milliseconds. Use the store in `body` only; versions from another call are of no use after a move.
  public nonisolated(nonsending) func write<Result>(
    forKey key: String, _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    let shard = shards[map.shard(forKey: key)]
    let store = await shard.beginWrite()
    defer { shard.endWrite() }
    return try await body(store)
  }

  /// Where a shard is.
  public func place(ofShard shard: Int) -> String {
    URL(filePath: shards[shard].store.path).deletingLastPathComponent().path
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
  /// - Throws: `StoreError`, such as a full disk; `ShardError.isMoving`.
  public func move(_ number: Int, to place: String) async throws {
    let shard = shards[number]
    try shard.beginMove()
    defer { shard.endMove() }
    let source = shard.store
    let path = Self.directory(number, at: place)
    if path == source.path { return }
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    if FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
    let copy = try await ShardCopy.begin(of: source, at: path, configuration)
    do {
      // Each time, less was written meanwhile.
      var rounds = 0
      while rounds < 8, try await copy.catchUp() > 100 { rounds += 1 }
      await shard.pauseWrites()
      try await copy.catchUp()
      try await copy.store.sync()
      try await catalogue.setValue(place, forKey: "shard \(number)")
    } catch {
      shard.resumeWrites(in: source)
      try? await copy.abandon()
      throw error
    }
    shard.resumeWrites(in: copy.store)
    try? await copy.follower.close()
    try await source.close()
    try FileManager.default.removeItem(atPath: source.path)
  }

  /// Closes all shards. Call it when the last read and write have ended.
  public func close() async throws {
    for shard in shards { try await shard.store.close() }
    try await catalogue.close()
  }
}

/// Why shards cannot be opened or moved.
public enum ShardError: Error, Hashable {
  /// The catalogue is of so many shards.
  case otherCount(String)
  /// There is a store with data that the catalogue does not know.
  case unknownData(String)
  /// Another move of the shard is under way.
  case isMoving
}
