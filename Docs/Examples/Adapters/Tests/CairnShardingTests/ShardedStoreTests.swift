import Cairn
import CairnSharding
import Foundation
import Synchronization
import Testing

@Suite("A store in shards")
final class ShardedStoreTests {
  private let root = NSTemporaryDirectory() + "/shards-\(UUID().uuidString)"
  private var catalogue: String { root + "/catalogue" }

  init() throws {
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  private func place(_ number: Int) -> String { "\(root)/disk\(number)" }

  private func withShards(
    _ count: Int, places: Int...,
    body: (ShardedStore) async throws -> Void
  ) async throws {
    try await withShards(count, at: places.map(place), body)
  }

  private func withShards(
    _ count: Int, at places: [String], _ body: (ShardedStore) async throws -> Void
  ) async throws {
    var configuration = ShardedStore.standardConfiguration
    configuration.durability = .process
    configuration.segmentByteLimit = 1 << 20
    let shards = try await ShardedStore.open(
      catalogue: catalogue, places: places, shardCount: count,
      configuration: configuration)
    do { try await body(shards) } catch {
      try await shards.close()
      throw error
    }
    try await shards.close()
  }

  @Test("Each key is in its shard, even after a restart")
  func keys() async throws {
    try await withShards(16, places: 1, 2) { shards in
      #expect(shards.misplacedShards.isEmpty)
      for number in 0..<1000 {
        let key = "user/\(number)"
        _ = try await shards.write(forKey: key) { store in
          try await store.setValue("value \(number)", forKey: key)
        }
      }
    }
    var stores: Set<String> = []
    try await withShards(16, places: 1, 2) { shards in
      for number in 0..<1000 {
        let key = "user/\(number)"
        let value = try shards.read(forKey: key) { store in
          stores.insert(store.path)
          return try store.value(forKey: key)
        }
        #expect(value == Array("value \(number)".utf8))
      }
    }
    #expect(stores.count == 16)
    #expect(Set(stores.map { URL(filePath: $0).deletingLastPathComponent().path }).count == 2)
  }

  @Test("Shards move to a new place, and no other shard moves")
  func rebalancing() async throws {
    try await withShards(32, places: 1, 2) { shards in
      for number in 0..<500 { try await set(number, in: shards) }
    }
    try await withShards(32, places: 1, 2, 3) { (shards) async throws in
      let misplaced = shards.misplacedShards
      #expect(misplaced.allSatisfy { shards.map.place(ofShard: $0) == place(3) })
      #expect((4...18).contains(misplaced.count))
      for shard in misplaced { try await shards.move(shard, to: shards.map.place(ofShard: shard)) }
      #expect(shards.misplacedShards.isEmpty)
      for number in 0..<500 { #expect(try value(number, in: shards) == "value \(number)") }
    }
    try await withShards(32, places: 1, 2, 3) { (shards) async throws in
      #expect(shards.misplacedShards.isEmpty)
      for number in 0..<500 { #expect(try value(number, in: shards) == "value \(number)") }
    }
  }

  private func set(_ number: Int, in shards: ShardedStore) async throws {
    let key = "user/\(number)"
    _ = try await shards.write(forKey: key) { store in
      try await store.setValue("value \(number)", forKey: key)
    }
  }

  private func value(_ number: Int, in shards: ShardedStore) throws -> String? {
    let key = "user/\(number)"
    return try shards.read(forKey: key) { try $0.value(forKey: key) }
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// The values that a writer has written.
  private struct Known: Sendable {
    var counts: [String: Int64] = [:]
    var values: [String: String?] = [:]
  }

  @Test("Shards that move repeatedly while they are written and read lose nothing")
  func movingUnderWrites() async throws {
    let isMoved = Flag()
    var known = Known()
    try await withShards(4, places: 1, 2) { shards in
      known = try await withThrowingTaskGroup(of: Known.self) { group in
        for writer in 0..<6 {
          group.addTask { try await Self.write(as: writer, to: shards, until: isMoved) }
        }
        for reader in 0..<2 {
          group.addTask {
            try await Self.read(counter: "\(reader)/count/0", of: shards, until: isMoved)
            return Known()
          }
        }
        for round in 0..<5 {
          for shard in 0..<4 { try await shards.move(shard, to: place(3 + round % 2)) }
        }
        isMoved.set()
        return try await group.reduce(into: Known()) { all, known in
          all.counts.merge(known.counts) { $1 }
          all.values.merge(known.values) { $1 }
        }
      }
      try check(known, in: shards)
      #expect((0..<4).allSatisfy { shards.place(ofShard: $0) == place(3) })
    }
    try await withShards(4, places: 1, 2) { try check(known, in: $0) }
    for number in [1, 2, 4] {
      // The map may have given a place no shard at all.
      let left = try? FileManager.default.contentsOfDirectory(atPath: place(number))
      #expect(left ?? [] == [])
    }
  }

  private func check(_ known: Known, in shards: ShardedStore) throws {
    #expect(known.counts.values.reduce(0, +) > 100)
    for (key, count) in known.counts {
      // Reads the bytes, because incrementing by 0 would be a write.
      let value = try shards.read(forKey: key) { try $0.value(forKey: key) }
      var bytes: [UInt8] = []
      for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: count >> (8 * shift))) }
      #expect(value == bytes, "\(key)")
    }
    for (key, value) in known.values {
      let found = try shards.read(forKey: key) { try $0.value(forKey: key) }
      #expect(found == value.map { Array($0.utf8) }, "\(key)")
    }
  }

  /// Counts, sets and removes until the moves have ended.
  private static func write(
    as writer: Int, to shards: ShardedStore, until isMoved: Flag
  ) async throws -> Known {
    var known = Known()
    var turn = 0
    while !isMoved.isSet || turn < 200 {
      turn += 1
      let counter = "\(writer)/count/\(turn % 7)"
      let count = try await shards.write(forKey: counter) { store in
        try await store.increment(forKey: counter)
      }
      #expect(count == known.counts[counter, default: 0] + 1)
      known.counts[counter] = count
      let key = "\(writer)/value/\(turn % 50)"
      let value = turn.isMultiple(of: 3) ? nil : "\(turn)"
      try await shards.write(forKey: key) { store in
        if let value {
          try await store.setValue(value, forKey: key)
        } else {
          try await store.removeValue(forKey: key)
        }
      }
      known.values[key] = .some(value)
      let found = try shards.read(forKey: key) { try $0.value(forKey: key) }
      #expect(found == value.map { Array($0.utf8) })
    }
    return known
  }

  /// Checks that a counter never decreases.
  private static func read(
    counter: String, of shards: ShardedStore, until isMoved: Flag
  ) async throws {
    var last: UInt64 = 0
    while !isMoved.isSet {
      let value = try shards.read(forKey: counter) { try $0.value(forKey: counter) }
      let count = value?.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) } ?? 0
      #expect(count >= last)
      last = count
      await Task.yield()
    }
  }

  @Test("A move keeps lifetimes, metadata and extensions")
  func options() async throws {
    try await withShards(1, places: 1) { shards in
      let keys = ["until", "extended", "forever"]
      for key in keys {
        _ = try await shards.write(forKey: key) { store in
          try await store.setValue(
            "value", forKey: key,
            options: EntryOptions(
              lifetime: key == "forever" ? .unlimited : .hours(1), metadata: [1, 2, 3]))
        }
      }
      _ = try await shards.write(forKey: "extended") { store in
        try await store.setLifetime(.seconds(7200), forKey: "extended")
      }
      let infos = try keys.map { key in try shards.read(forKey: key) { try $0.info(forKey: key) } }
      try await shards.move(0, to: place(2))
      for (key, info) in zip(keys, infos) {
        let entry = try #require(try shards.read(forKey: key) { try $0.entry(forKey: key) })
        #expect(entry.info.expires == info?.expires)
        #expect(entry.metadata == [1, 2, 3])
      }
      #expect(infos[1]?.expires != infos[0]?.expires)
    }
  }

  @Test("Places that are spelled differently after a restart are the same places")
  func otherSpellings() async throws {
    try await withShards(16, places: 1, 2) { shards in
      for number in 0..<50 { try await set(number, in: shards) }
    }
    try FileManager.default.createSymbolicLink(atPath: place(9), withDestinationPath: place(2))
    let spellings = [
      [place(1) + "/", place(2) + "/"], [root + "/./disk1", place(1) + "/../disk2"],
      [place(1), place(9)],
    ]
    for places in spellings {
      try await withShards(16, at: places) { shards in
        #expect(shards.misplacedShards.isEmpty)
        #expect(Set(shards.map.places) == [place(1), place(2)])
        for shard in 0..<16 {
          let place = shards.place(ofShard: shard) == place(1) ? places[0] : places[1]
          try await shards.move(shard, to: place)
        }
        for number in 0..<50 { #expect(try value(number, in: shards) == "value \(number)") }
      }
    }
    try await withShards(16, places: 1, 2) { (shards) async throws in
      for number in 0..<50 { #expect(try value(number, in: shards) == "value \(number)") }
    }
  }

  @Test("Places that end in a slash are places too")
  func finalSlash() async throws {
    for _ in 1...2 {
      try await withShards(4, at: [place(1) + "/", place(2) + "/"]) { shards in
        #expect(shards.misplacedShards.isEmpty)
      }
    }
  }

  @Test("A failed move leaves the shard at its old place; remains of a move do no harm")
  func failures() async throws {
    try await withShards(1, places: 1) { shards in
      try await set(1, in: shards)
      // A file is in the directory's place.
      try Data().write(to: URL(filePath: place(2)))
      await #expect(throws: (any Error).self) { try await shards.move(0, to: place(2)) }
      #expect(shards.place(ofShard: 0) == place(1))
      try await set(2, in: shards)
      // The remains of a move by a process that died.
      let left = ShardedStore.directory(0, at: place(3))
      try FileManager.default.createDirectory(
        atPath: place(3), withIntermediateDirectories: true)
      let other = try await Store(path: left)
      try await other.setValue("old", forKey: "user/1")
      try await other.close()
      try await shards.move(0, to: place(3))
      for number in 1...2 { #expect(try value(number, in: shards) == "value \(number)") }
    }
  }

  @Test("A catalogue is refused if it has another number of shards, or lacks an existing store")
  func catalogues() async throws {
    try await withShards(2, places: 1) { shards in
      for number in 0..<20 { try await set(number, in: shards) }
    }
    await #expect(throws: ShardError.otherCount("2")) {
      try await withShards(3, places: 1) { _ in }
    }
    try FileManager.default.removeItem(atPath: catalogue)
    await #expect(throws: ShardError.self) { try await withShards(2, places: 1) { _ in } }
  }

  @Test("256 shards open as many files as documented")
  func fileCount() async throws {
    try await withShards(256, places: 1, 2, 3) { (shards) async throws in
      let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        return path?.contains(".cairn") == true && path?.contains(root.suffix(36)) == true
      }
      #expect((256...7 * 256).contains(open.count), "\(open.count)")
    }
  }
}

/// Tells all tasks that an event has happened.
private final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}
