import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Values that only memory has, against a model", .timeLimit(.minutes(10)))
struct PlacementModelTests {
  /// What a read of a key may find.
  private enum Known: Equatable {
    case nothing
    /// This value, for certain.
    case certain(Int)
    /// This value, or none: only memory has it.
    case possible(Int)
  }

  /// A cache with a memory of three entries, and what is known of its keys.
  private struct Run {
    let scene = TieredScene()
    var cache: DiskCache<String, Int>
    var random: FuzzRandom
    var known: [String: Known] = [:]
    var tags: [String: String] = [:]
    /// The keys that were loaded since the cache was opened.
    var loaded: Set<String> = []
    var number = 0
    var counts: [String: Int] = [:]

    init(seed: UInt64) throws {
      cache = try Self.open(scene)
      random = FuzzRandom(seed: seed)
    }

    static func open(_ scene: TieredScene) throws -> DiskCache<String, Int> {
      try scene.cache(held: 3) { $0.admission = .secondRequest }
    }

    mutating func check(_ found: Int?, _ key: String, _ call: String) {
      switch known[key] ?? .nothing {
      case .nothing: #expect(found == nil, "\(call) \(key)")
      case .certain(let value): #expect(found == value, "\(call) \(key)")
      case .possible(let value):
        #expect(found == nil || found == value, "\(call) \(key)")
        counts[found == nil ? "lost" : "found", default: 0] += 1
        // Once a value is gone, it stays away.
        if found == nil { known[key] = .nothing }
      }
    }

    mutating func step() async throws {
      let key = "key \(random.below(8))"
      number += 1
      let new = number
      let tag = random.below(3) == 0 ? "tag \(random.below(2))" : nil
      switch random.below(20) {
      case 0..<5:
        let placement: EntryPlacement = random.element(of: [.standard, .memory, .disk])
        let options = EntryOptions(tags: tag.map { [$0] }, placement: placement)
        if random.below(2) == 0 {
          try await cache.setValue(new, forKey: key, options: options)
        } else {
          try cache.synchronous { _ = try $0.setValue(new, forKey: key, options: options) }
        }
        known[key] = placement == .memory ? .possible(new) : .certain(new)
        tags[key] = tag
      case 5..<8: check(try cache.value(forKey: key), key, "value")
      case 8: check(try cache.entry(forKey: key)?.value, key, "entry")
      case 9:
        let isThere = try cache.contains(key)
        if isThere || known[key] != nil { check(try cache.peekValue(forKey: key), key, "peek") }
      case 10..<14:
        let isNoted = loaded.contains(key)
        let before = known[key] ?? .nothing
        let isForMemory = random.below(4) == 0
        let options = EntryOptions(
          tags: tag.map { [$0] }, placement: isForMemory ? .memory : .standard)
        let found = try await cache.value(forKey: key, options: options) { new }
        if found != new {
          check(found, key, "load")
          return
        }
        #expect(before != .certain(found))
        if case .certain = before { Issue.record("loaded what the disk has") }
        if !isForMemory { loaded.insert(key) }
        known[key] = isNoted && !isForMemory ? .certain(new) : .possible(new)
        tags[key] = tag
      case 14:
        let isRemoved = try cache.synchronous { try $0.removeValue(forKey: key) }
        if case .certain = known[key] { #expect(isRemoved) }
        known[key] = .nothing
      case 15:
        check(try cache.synchronous { try $0.takeValue(forKey: key) }, key, "take")
        known[key] = .nothing
      case 16:
        let removed = "tag \(random.below(2))"
        try cache.synchronous { try $0.removeAll(tagged: removed) }
        for (key, tag) in tags where tag == removed { known[key] = .nothing }
      case 17:
        switch random.below(4) {
        case 0:
          try cache.synchronous { try $0.removeAll() }
          known = [:]
        case 1: cache.tier.removeAll()
        default: try cache.synchronous { try $0.maintain() }
        }
      case 18:
        if random.below(4) > 0 { return }
        try cache.synchronous { try $0.close() }
        cache = try Self.open(scene)
        loaded = []
        for case (let key, .possible) in known { known[key] = .nothing }
      default:
        // The keys that the disk has, and no others.
        let certain = known.filter { if case .certain = $0.value { true } else { false } }
        #expect(try Set(cache.keys()) == Set(certain.keys))
      }
    }
  }

  @Test(
    "No read finds anything older than the last write, whatever is in which tier",
    arguments: 0..<20)
  func model(number: Int) async throws {
    var run = try Run(seed: TestSeed.current &+ UInt64(number))
    for _ in 0..<600 { try await run.step() }
    for key in 0..<8 {
      run.check(try run.cache.value(forKey: "key \(key)"), "key \(key)", "at the end")
    }
    #expect(run.counts["found", default: 0] > 0 && run.counts["lost", default: 0] > 0)
  }

  @Test("Readers see each key's values only grow, while writers place them in either tier")
  func threads() throws {
    let scene = TieredScene()
    let cache: DiskCache<String, Int> = try scene.cache(held: 4)
    let faults = Record<String>()
    onThreads(4) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      var last = [Int](repeating: 0, count: 6)
      for step in 1...2000 {
        do {
          if thread < 2 {
            // Each key has one writer.
            let index = random.below(3) * 2 + thread
            let key = "key \(index)"
            switch random.below(10) {
            case 0: try cache.removeValue(forKey: key)
            case 1..<5: try cache.setValue(step, forKey: key, options: .alone)
            case 5: try cache.setValue(step, forKey: key, options: EntryOptions(placement: .disk))
            default: try cache.setValue(step, forKey: key)
            }
          } else {
            let index = random.below(6)
            let key = "key \(index)"
            let found =
              random.below(4) == 0
              ? try cache.entry(forKey: key)?.value : try cache.value(forKey: key)
            guard let found else { continue }
            if found < last[index] { faults.add("\(key): \(found) after \(last[index])") }
            last[index] = found
          }
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
  }

  @Test("In the end, no key is both memory-only and on disk, whatever threads did")
  func rest() throws {
    let scene = TieredScene()
    let cache: DiskCache<String, Int> = try scene.cache(held: 8) {
      $0.store.asideOperationCount = 8
    }
    let faults = Record<String>()
    onThreads(4) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      let tags = ["x"]
      for step in 1...1000 {
        let key = "key \(random.below(6))"
        do {
          switch random.below(12) {
          case 0..<3: try cache.setValue(step, forKey: key, options: .alone)
          case 3:
            let options = EntryOptions(tags: tags, placement: .memory)
            try cache.setValue(step, forKey: key, options: options)
          case 4: try cache.setValue(step, forKey: key, options: EntryOptions(placement: .disk))
          case 5: try cache.setValue(step, forKey: key, options: .tags(tags))
          case 6: try cache.removeValue(forKey: key)
          case 7: _ = try cache.takeValue(forKey: key)
          case 8:
            try cache.write { batch in
              for number in 0..<200 {
                try batch.setValue(step, forKey: "other \(thread) \(number)")
              }
              try batch.setValue(step, forKey: key)
              try batch.removeValue(forKey: "key \(random.below(6))")
            }
          case 9:
            if random.below(8) == 0 { try cache.removeAll(tagged: "x") }
            if random.below(8) == 0 { try cache.maintain() }
          case 10: _ = try cache.entry(forKey: key)
          default: _ = try cache.value(forKey: key)
          }
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [])
    try cache.maintain()
    #expect(try cache.audit() == [])
    for number in 0..<6 {
      try cache.removeValue(forKey: "key \(number)")
      #expect(try cache.value(forKey: "key \(number)") == nil)
    }
    cache.tier.removeAll()
    for number in 0..<6 { #expect(try cache.value(forKey: "key \(number)") == nil) }
  }
}
