import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import CairnStore

@Suite("The hash index")
struct HashIndexTests {
  /// An index, and a dictionary with the expected contents.
  struct Pair {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    /// The locations and flags for each hash, as far as the index keeps it: 48 bits.
    var model: [UInt64: [UInt64: UInt8]] = [:]
    var nextLocation: UInt64 = 1

    static func kept(_ hash: UInt64) -> UInt64 { hash & 0xFFFF_FFFF_FF00_00FF }

    /// Every location that the index returns for a hash.
    func locations(_ hash: UInt64) throws -> [UInt64: UInt8] {
      var found: [UInt64: UInt8] = [:]
      var entry = IndexEntry.empty
      while try index.find(hash, after: entry.location, touch: false, { entry = $0 }) {
        found[entry.location.rawValue] = entry.flags.rawValue
      }
      return found
    }

    mutating func insert(_ hash: UInt64, flags: UInt8) {
      let location = nextLocation
      nextLocation += 1
      index.insert(hash, location: Location(rawValue: location), flags: .init(rawValue: flags))
      model[Self.kept(hash), default: [:]][location] = flags
    }

    mutating func replace(_ hash: UInt64, flags: UInt8) {
      guard let old = model[Self.kept(hash)]?.keys.min() else { return }
      let location = nextLocation
      nextLocation += 1
      let isDone = index.replace(
        hash, old: Location(rawValue: old), new: Location(rawValue: location),
        flags: .init(rawValue: flags))
      #expect(isDone)
      model[Self.kept(hash)]?[old] = nil
      model[Self.kept(hash)]?[location] = flags
    }

    mutating func remove(_ hash: UInt64) {
      guard let old = model[Self.kept(hash)]?.keys.min() else {
        #expect(!index.remove(hash, location: Location(rawValue: 1 << 39)))
        return
      }
      #expect(index.remove(hash, location: Location(rawValue: old)))
      #expect(!index.remove(hash, location: Location(rawValue: old)))
      model[Self.kept(hash)]?[old] = nil
      if model[Self.kept(hash)]?.isEmpty == true { model[Self.kept(hash)] = nil }
    }

    var count: Int { model.values.reduce(0) { $0 + $1.count } }
  }

  @Test("An empty index takes 32 KiB: a process may have hundreds")
  func emptySize() {
    #if canImport(Darwin)
      // Darwin's mutex is larger.
      let limit = 48 << 10
    #else
      let limit = 32 << 10
    #endif
    #expect(HashIndex.shardCount * LockArray<IndexShard>.stride <= limit)
  }

  @Test("100,000 random operations have the results of a dictionary")
  func model() throws {
    var generator = Seed.generator()
    var pair = Pair()
    // A pool in which many hashes share their 48 kept bits, some at the very end of the table.
    var pool = (0..<6000).map { _ in generator.next() }
    for _ in 0..<400 {
      let twin = pool[Int.random(in: 0..<6000, using: &generator)]
      pool.append(Pair.kept(twin) | UInt64.random(in: 0..<0xFFFF, using: &generator) << 8)
    }
    pool += (0..<30).map { 0xFFFF_FFFF_FF00_0007 | $0 << 8 }
    pool += (0..<30).map { 0x0000_0000_0000_0007 | $0 << 8 }
    for step in 0..<100_000 {
      let hash = pool[Int.random(in: 0..<pool.count, using: &generator)]
      // Growing, then shrinking, then growing again.
      let insertions = (step / 25_000) % 2 == 0 ? 6 : 2
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<insertions: pair.insert(hash, flags: UInt8.random(in: 0...1, using: &generator))
      case insertions..<(insertions + 2):
        pair.replace(hash, flags: UInt8.random(in: 0...1, using: &generator))
      default: pair.remove(hash)
      }
      if step % 16 == 0 {
        let other = pool[Int.random(in: 0..<pool.count, using: &generator)]
        #expect(try pair.locations(other) == pair.model[Pair.kept(other)] ?? [:], Seed.comment)
      }
    }
    #expect(pair.index.count == pair.count, Seed.comment)
    let expirable = pair.model.values.joined().count { $0.value == 1 }
    #expect(pair.index.expirableCount == expirable, Seed.comment)
    for hash in Set(pool) {
      #expect(try pair.locations(hash) == pair.model[Pair.kept(hash)] ?? [:], Seed.comment)
    }
    var listed: [UInt64] = []
    for shard in 0..<HashIndex.shardCount {
      listed += try pair.index.entries(inShard: shard) { $0.rawValue }.compactMap(\.value)
    }
    #expect(listed.sorted() == pair.model.values.joined().map(\.key).sorted(), Seed.comment)
  }

  @Test("Many entries of one hash, anywhere in the table, are all found and all removed")
  func sameHash() throws {
    for hash in [0, 1, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FF00_0000, .max] as [UInt64] {
      var pair = Pair()
      for _ in 0..<200 { pair.insert(hash, flags: 0) }
      #expect(try pair.locations(hash).count == 200)
      for left in (0..<200).reversed() {
        pair.remove(hash)
        #expect(try pair.locations(hash).count == left)
      }
      #expect(pair.index.count == 0)
    }
  }

  @Test("Removing all leaves nothing and takes no memory")
  func removeAll() throws {
    var pair = Pair()
    for hash in UInt64(0)..<1000 { pair.insert(hash &* 0x9E37_79B9_7F4A_7C15, flags: 1) }
    pair.index.removeAll()
    #expect(pair.index.count == 0)
    #expect(pair.index.expirableCount == 0)
    #expect(pair.index.byteCount == 0)
    #expect(try pair.locations(0x9E37_79B9_7F4A_7C15) == [:])
  }

  @Test("Removing tombstones leaves the others")
  func removeTombstones() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    var generator = Seed.generator()
    let hashes = (0..<5000).map { _ in generator.next() }
    for (number, hash) in hashes.enumerated() {
      index.insert(
        hash, location: Location(rawValue: UInt64(number + 1)),
        flags: number % 3 == 0 ? .tombstone : [])
    }
    for shard in 0..<HashIndex.shardCount { try index.removeTombstones(inShard: shard) }
    #expect(index.count == hashes.indices.count { $0 % 3 != 0 })
    for (number, hash) in hashes.enumerated() {
      var location: UInt64?
      _ = try index.find(hash, touch: false) { location = $0.location.rawValue }
      #expect(location == (number % 3 == 0 ? nil : UInt64(number + 1)), Seed.comment)
    }
  }

  @Test("While keys are added, the index takes at most 40 bytes a key, and 32 on average")
  func memoryWhileGrowing() {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    var generator = Seed.generator()
    var sum = 0.0
    var samples = 0
    for count in 1...200_000 {
      index.insert(generator.next(), location: Location(rawValue: UInt64(count)), flags: [])
      if count >= 100_000, count % 1000 == 0 {
        let perKey = Double(index.byteCount) / Double(count)
        #expect(perKey <= 40, "at \(count) keys; \(Seed.comment)")
        sum += perKey
        samples += 1
      }
    }
    #expect(sum / Double(samples) <= 32, Seed.comment)
  }

  @Test("While keys are removed, the index takes at most 40 bytes a key")
  func memoryWhileShrinking() {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    var generator = Seed.generator()
    let hashes = (0..<100_000).map { _ in generator.next() }
    for (number, hash) in hashes.enumerated() {
      index.insert(hash, location: Location(rawValue: UInt64(number + 1)), flags: [])
    }
    var worst = 0.0
    for (number, hash) in hashes.enumerated().reversed() where number >= 20_000 {
      #expect(index.remove(hash, location: Location(rawValue: UInt64(number + 1))))
      if number % 500 == 0 { worst = max(worst, Double(index.byteCount) / Double(number)) }
    }
    #expect(worst <= 40, Seed.comment)
  }

  @Test("Shards do not all grow at the same time")
  func growth() {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    var generator = Seed.generator()
    var before = 0
    var largestStep = 0.0
    for count in 1...200_000 {
      index.insert(generator.next(), location: Location(rawValue: UInt64(count)), flags: [])
      // This measures each hundredth of a doubling.
      if count >= 100_000, count % 1000 == 0 {
        let bytes = index.byteCount
        if before > 0 { largestStep = max(largestStep, Double(bytes - before) / Double(before)) }
        before = bytes
      }
    }
    // 1 % if growth is spread evenly; nearly all if the shards grew together.
    #expect(largestStep < 0.1, Seed.comment)
  }

  @Test("A read makes an entry the newest, unless the entry can expire or the read does not count")
  func ticks() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    index.insert(1, location: Location(rawValue: 1), flags: [])
    index.insert(2, location: Location(rawValue: 2), flags: .canExpire)
    index.insert(3, location: Location(rawValue: 3), flags: [])
    func tick(_ hash: UInt64) throws -> UInt64 {
      var tick: UInt64?
      _ = try index.find(hash, touch: false) { tick = $0.tick }
      return try #require(tick)
    }
    let before = try tick(1)
    #expect(before < (try tick(3)))
    _ = try index.find(1, touch: false) { _ in }
    #expect(try tick(1) == before)
    _ = try index.find(1, touch: true) { _ in }
    #expect(try tick(1) > (try tick(3)))
    let expirable = try tick(2)
    _ = try index.find(2, touch: true) { _ in }
    #expect(try tick(2) == expirable)
    var entry = IndexEntry.empty
    _ = try index.find(2, touch: false) { entry = $0 }
    index.touch(2, entry)
    #expect(try tick(2) > (try tick(1)))
  }

  @Test("A read of the newest entry stores nothing")
  func newestIsLeftAlone() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    index.insert(1, location: Location(rawValue: 1), flags: [])
    var ticks: [UInt64] = []
    for touch in [false, true, false] {
      _ = try index.find(1, touch: touch) { ticks.append($0.tick) }
    }
    #expect(ticks.count == 3 && Set(ticks).count == 1)
  }

  @Test("An entry keeps each of its fields at the extremes")
  func entryFields() {
    for hash in [0, 1, (1 << 40) - 1] as [UInt64] {
      for location in [1, (1 << 40) - 1] as [UInt64] {
        for tick in [0, 1, 0xFF_FFFF, 0x100_0000, IndexEntry.tickLimit - 1] {
          for flags in UInt8(0)...15 {
            var entry = IndexEntry(
              hash: hash, location: Location(rawValue: location), tick: 0,
              flags: .init(rawValue: flags))
            entry.tick = tick
            #expect(entry.hash == hash)
            #expect(entry.location.rawValue == location)
            #expect(entry.tick == tick)
            #expect(entry.flags.rawValue == flags)
            #expect(!entry.isEmpty)
          }
        }
      }
    }
  }

  @Test(
    "Entries that stay are found without a lock while others come and go and tables grow and shrink",
    .timeLimit(.minutes(30)))
  func lookBesideChanges() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    // All hashes are in two shards, so that every change meets a lookup.
    @Sendable func hash(_ number: Int) -> UInt64 {
      UInt64(number) &* 0x9E37_79B9_7F4A_7C15 & ~0xFF | UInt64(number & 1)
    }
    let kept = 1...400
    for number in kept {
      try index.makeRoom(hash(number))
      index.insert(hash(number), location: Location(rawValue: UInt64(number)), flags: [])
    }
    final class Counts: Sendable { let seen = Atomic(0), missed = Atomic(0), wrong = Atomic(0) }
    let counts = Counts()
    try besideReaders(2) {
      for number in kept {
        guard let pin = Pin() else { continue }
        defer { pin.end() }
        guard let seen = index.look(hash(number), { Optional($0) }) else { continue }
        counts.seen.add(1, ordering: .relaxed)
        guard case .entry(let place) = seen.found else {
          counts.missed.add(1, ordering: .relaxed)
          continue
        }
        if place.entry.location.rawValue != number || seen.value != place.entry.location {
          counts.wrong.add(1, ordering: .relaxed)
        }
        if let tick = index.recency.tickOfRead(after: place.entry.tick) { _ = place.touch(tick) }
      }
    } write: {
      for round in 0..<30 {
        let others = 1000..<(1500 + round * 50)
        for number in others {
          try index.makeRoom(hash(number))
          index.insert(hash(number), location: Location(rawValue: UInt64(number)), flags: [])
        }
        for number in others {
          _ = index.remove(hash(number), location: Location(rawValue: UInt64(number)))
        }
      }
    }
    #expect(counts.missed.load(ordering: .relaxed) == 0)
    #expect(counts.wrong.load(ordering: .relaxed) == 0)
    #expect(counts.seen.load(ordering: .relaxed) > 0)
    for number in kept {
      var location = Location.none
      #expect(try index.find(hash(number), touch: false) { location = $0.location })
      #expect(location.rawValue == number)
    }
    #expect(index.count == kept.count)
  }

  @Test(
    "Lookups without a lock see a whole removal of all that hands its tables to a snapshot",
    .timeLimit(.minutes(30)))
  func lookBesideHandover() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    final class Counts: Sendable { let seen = Atomic(0), wrong = Atomic(0) }
    let counts = Counts()
    // All in one shard.
    @Sendable func hash(_ number: Int) -> UInt64 {
      UInt64(number) &* 0x9E37_79B9_7F4A_7C15 & ~0xFF
    }
    try besideReaders(2) {
      for number in 1...100 {
        guard let pin = Pin() else { continue }
        defer { pin.end() }
        guard let seen = index.look(hash(number), { Optional($0) }) else { continue }
        counts.seen.add(1, ordering: .relaxed)
        guard case .entry(let place) = seen.found else { continue }
        if place.entry.location.rawValue != number { counts.wrong.add(1, ordering: .relaxed) }
      }
    } write: {
      for _ in 0..<500 {
        for number in 1...100 {
          try index.makeRoom(hash(number))
          index.insert(hash(number), location: Location(rawValue: UInt64(number)), flags: [])
        }
        let snapshot = index.snapshot()
        index.removeAll()
        #expect(index.count == 0)
        snapshot.end()
        Reclamation.reclaim()
      }
    }
    #expect(counts.wrong.load(ordering: .relaxed) == 0)
    #expect(counts.seen.load(ordering: .relaxed) > 0)
  }

  @Test("A change that finds nothing leaves unloaded shards to lookups under the lock")
  func lookBeforeLoading() throws {
    final class Source: ShardSource {
      func entries(ofShard shard: Int) -> [IndexEntry] {
        let entry = IndexEntry(hash: 7, location: Location(rawValue: 9), tick: 1, flags: [])
        return shard == 5 ? [entry] : []
      }
    }
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    var counts = Array(repeating: (entries: 0, expirable: 0), count: HashIndex.shardCount)
    counts[5].entries = 1
    index.attach(Source(), counts: counts)
    let hash: UInt64 = 7 << 24 | 5
    #expect(!index.remove(hash, location: Location(rawValue: 8)))
    let pin = try #require(Pin())
    defer { pin.end() }
    #expect(index.look(hash) { Optional($0) }?.value == nil)
    if let seen = index.look(hash, { Optional($0) }) {
      Issue.record("told without the lock: \(seen.found)")
    }
    var location = Location.none
    #expect(try index.find(hash, touch: false) { location = $0.location })
    #expect(location.rawValue == 9)
    #expect(index.look(hash) { Optional($0) }?.value == location)
  }
}
