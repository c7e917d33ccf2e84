import CairnStore
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// What one call did, between two moments of a count that all threads share.
struct Observed: Sendable {
  enum Kind: Sendable, Equatable {
    /// A value was written, with this version.
    case wrote(UInt64)
    /// A version was seen.
    case saw(UInt64)
    /// A value was seen, by its number.
    case sawValue(Int)
    case sawNothing
    /// A call that removes whatever is there.
    case removed
    /// This version was removed.
    case removedVersion(UInt64)
    case extended
  }

  var start: Int
  var end: Int
  var kind: Kind
}

/// The operations on one key, in the order of their ends, and the contradictions between them.
///
/// The versions are the order of the writes on disk. So it is enough to look for contradictions:
/// something that was seen after something newer certainly existed.
struct KeyHistory {
  var events: [Observed] = []
  /// Whether the cache may remove values by itself.
  var mayVanish: Bool

  private func wasExtended(during other: Observed) -> Bool {
    events.contains { $0.kind == .extended && $0.start < other.end && $0.end > other.start }
  }

  func faults(versions: [Int: UInt64]) -> [String] {
    var faults: [String] = []
    // The newest version that existed, and the newest that was gone, among all calls that ended
    // before a moment.
    var events = events
    for index in events.indices {
      if case .sawValue(let number) = events[index].kind {
        guard let version = versions[number] else {
          faults.append("a value that nobody wrote: \(number)")
          continue
        }
        events[index].kind = .saw(version)
      }
    }
    let writes = events.compactMap { event -> (version: UInt64, start: Int, end: Int)? in
      if case .wrote(let version) = event.kind { (version, event.start, event.end) } else { nil }
    }
    // An extension writes the value of the newest write again, with a higher version.
    func written(_ version: UInt64) -> UInt64 {
      writes.map(\.version).filter { $0 <= version }.max() ?? version
    }
    for index in events.indices {
      switch events[index].kind {
      case .saw(let version): events[index].kind = .saw(written(version))
      case .removedVersion(let version): events[index].kind = .removedVersion(written(version))
      default: break
      }
    }
    for (index, event) in events.enumerated() {
      switch event.kind {
      case .saw(let version):
        for earlier in events[..<index] where earlier.end < event.start {
          switch earlier.kind {
          case .wrote(let other), .saw(let other):
            if other > version { faults.append("\(event) after \(earlier)") }
          case .removedVersion(let other):
            if other >= version { faults.append("\(event) after \(earlier)") }
          case .sawNothing where wasExtended(during: earlier):
            // The extension found the value alive by a time before its end.
            break
          case .removed, .sawNothing:
            // Everything that certainly existed before was gone.
            if writes.contains(where: { $0.version == version && $0.end < earlier.start }) {
              faults.append("\(event) after \(earlier)")
            }
          case .sawValue, .extended: break
          }
        }
        if let write = writes.first(where: { $0.version == version }), write.start > event.end {
          faults.append("\(event) before it was written")
        }
      case .sawNothing where !mayVanish:
        guard
          let write = writes.filter({ $0.end < event.start }).max(by: { $0.version < $1.version })
        else { break }
        let isRemoved = events.contains { other in
          switch other.kind {
          case .removed, .removedVersion: other.end > write.start && other.start < event.end
          default: false
          }
        }
        if !isRemoved { faults.append("\(event) after \(write), and nothing was removed") }
      default: break
      }
    }
    return faults
  }
}

@Suite("Both tiers with many threads", .timeLimit(.minutes(30)))
struct TieredConcurrencyTests {
  static let threads = 4
  static let keys = 5

  /// One kind of run.
  struct Trial: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var held: Int?
    var count: Int?
    var expires = false
    var idles = false
    var policy = EvictionPolicy.leastRecentlyUsed
  }

  @Test(
    "All calls at once: every read finds what was current, and the tiers agree in the end",
    arguments: [
      Trial(testDescription: "without limits"),
      Trial(testDescription: "little memory", held: 2),
      Trial(testDescription: "a small disk", held: 3, count: 4),
      Trial(testDescription: "lifetimes", held: 4, expires: true),
      Trial(testDescription: "SIEVE", held: 3, policy: .sieve),
      Trial(testDescription: "S3-FIFO", held: 3, policy: .s3FIFO),
      Trial(testDescription: "idle limits", held: 4, idles: true),
      Trial(testDescription: "idle limits and lifetimes", held: 3, expires: true, idles: true),
    ])
  func model(trial: Trial) throws {
    let scene = TieredScene()
    let cache: DiskCache<String, Int> = try scene.cache(held: trial.held, count: trial.count) {
      $0.memory?.policy = trial.policy
    }
    // An observer that reads is one of the threads.
    cache.observe { [weak cache] event in
      if case .removed(let key, .replaced) = event { _ = try? cache?.contains(key) }
    }
    let moment = Moment()
    let log = Record<(key: Int, event: Observed)>()
    let versions = Record<(number: Int, version: UInt64)>()
    let faults = Record<String>()
    let steps = 500
    // This lock prevents the clock from going back.
    let advancing = Shared(())
    onThreads(Self.threads) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      for step in 0..<steps {
        let index = random.below(Self.keys)
        let key = "key \(index)"
        let number = thread * steps + step
        func note(_ body: () throws -> Observed.Kind?) {
          let start = moment.next()
          do {
            if let kind = try body() {
              log.add((index, Observed(start: start, end: moment.next(), kind: kind)))
            }
          } catch { faults.add("\(error)") }
        }
        let lifetime: Lifetime =
          trial.expires && random.below(2) == 0 ? .milliseconds(1 + random.below(20)) : .standard
        let idleLimit: Duration? =
          trial.idles && random.below(2) == 0 ? .milliseconds(1 + random.below(20)) : nil
        switch random.below(40) {
        case 0..<8:
          note {
            let version = try cache.setValue(
              number, forKey: key, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
            versions.add((number, version))
            return .wrote(version)
          }
        case 8..<10:
          note {
            let version = try cache.setStored(
              number, forKey: key, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
            versions.add((number, version))
            return .wrote(version)
          }
        case 10..<12:
          note {
            let expected = try cache.info(forKey: key)?.version
            let result = try cache.compareAndSet(
              number, forKey: key, expecting: expected, options: .lifetime(lifetime))
            guard case .stored(let version) = result else { return nil }
            versions.add((number, version))
            return .wrote(version)
          }
        case 12:
          note {
            switch try cache.compareAndSet(number, forKey: key, expecting: .max) {
            case .stored: .sawValue(-1)
            case .mismatch(let version?): .saw(version)
            case .mismatch(nil): .sawNothing
            }
          }
        case 13:
          note {
            // A removal spares an entry that has just been idle for too long. An access that began
            // before the time was up may still renew it.
            try cache.removeValue(forKey: key) || !trial.idles ? .removed : nil
          }
        case 14:
          note { try cache.takeValue(forKey: key) != nil || !trial.idles ? .removed : nil }
        case 15:
          note {
            guard let version = try cache.info(forKey: key)?.version,
              try cache.compareAndRemove(forKey: key, expecting: version)
            else { return nil }
            return .removedVersion(version)
          }
        case 16:
          note {
            // If the call finds nothing, a removal may be in progress.
            try cache.removeValue(forKey: key) ? .removed : nil
          }
        case 17: note { try cache.contains(key) ? nil : .sawNothing }
        case 18: note { try cache.info(forKey: key).map { .saw($0.version) } ?? .sawNothing }
        case 19:
          note {
            guard let entry = try cache.entry(forKey: key) else { return .sawNothing }
            return random.below(2) == 0 ? .saw(entry.info.version) : .sawValue(entry.value)
          }
        case 20: cache.tier.trim(.toCount(random.below(3)))
        case 21: cache.tier.removeAll()
        case 22: cache.respond(to: MemoryPressure.allCases[random.below(3)])
        case 23:
          let passes = trial.expires || trial.idles
          let duration = Duration.milliseconds(passes ? random.below(5) : 0)
          advancing.with { _ in scene.clock.advance(by: duration) }
          scene.background.runAll(dueAfter: duration)
          if trial.idles { scene.disk.background.runAll(dueAfter: duration) }
        case 24:
          note {
            _ = try cache.setLifetime(.milliseconds(10), forKey: key); return .extended
          }
        case 25:
          note {
            _ = try cache.trim(.expired); return nil
          }
        case 26:
          note {
            try cache.compact(); return nil
          }
        case 27 where trial.count != nil:
          note {
            try cache.trim(.toCount(3)); return nil
          }
        default: note { try cache.value(forKey: key).map { .sawValue($0) } ?? .sawNothing }
        }
      }
    }
    let known = Dictionary(uniqueKeysWithValues: versions.all.map { ($0.number, $0.version) })
    #expect(faults.all == [], TestSeed.comment)
    var histories = [KeyHistory](
      repeating: KeyHistory(mayVanish: trial.expires || trial.idles || trial.count != nil),
      count: Self.keys)
    for (key, event) in log.all { histories[key].events.append(event) }
    for var history in histories {
      history.events.sort { $0.end < $1.end }
      #expect(Array(history.faults(versions: known).prefix(3)) == [], TestSeed.comment)
    }
    #expect(try cache.audit() == [], TestSeed.comment)
    if let held = trial.held { #expect(cache.tier.statistics().count <= held) }
    if let count = trial.count { #expect(try cache.count() <= count) }
    // Memory holds what the disk has.
    for index in 0..<Self.keys {
      let key = "key \(index)"
      #expect(try cache.value(forKey: key) == cache.storedValue(forKey: key), TestSeed.comment)
    }
  }

  @Test(
    "If several callers remove a value at once, one of them gets `true`", arguments: [false, true])
  func removalWinners(isHeld: Bool) throws {
    let scene = TieredScene()
    let cache: DiskCache<String, Int> = try scene.cache(held: isHeld ? nil : 0)
    let faults = Record<String>()
    for round in 0..<300 {
      let version = try cache.setValue(round, forKey: "a")
      let winners = Record<Int>()
      onThreads(Self.threads) { thread in
        do {
          let isRemoved =
            switch (thread + round) % 6 {
            case 0: try cache.removeValue(forKey: "a")
            case 1: try cache.takeValue(forKey: "a") == round
            case 2: try cache.removeValues(forKeys: ["b", "a", "a"]) == 1
            case 3: try cache.compareAndRemove(forKey: "a", expecting: version)
            case 4: try cache.removeValue(forKey: "a")
            default: try cache.remove { key, _ in key == "a" }.count == 1
            }
          if isRemoved { winners.add(thread) }
          // Memory may have what the disk no longer shows until the removal in progress is done.
          let isOfFront = (thread + round) % 6 < 4
          if isOfFront, try cache.contains("a") { faults.add("\(round): still there") }
        } catch { faults.add("\(error)") }
      }
      if winners.all.count != 1 { faults.add("\(round): \(winners.all)") }
      if try cache.contains("a") { faults.add("\(round): there in the end") }
    }
    #expect(faults.all == [])
  }

  /// What loading caches have in common.
  struct Loader: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var value:
      @Sendable (_ key: Int, _ load: @escaping @Sendable () async throws -> Int) async throws -> Int
    var remove: @Sendable (Int) throws -> Void
    var drop: @Sendable () -> Void = {}
  }

  @Test("A value that was loaded before a removal is not found after it", arguments: 0..<3)
  func invalidation(tiers: Int) async throws {
    let scene = TieredScene()
    let loader: Loader
    switch tiers {
    case 0:
      let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 4)
      loader = Loader(testDescription: "memory") { key, load in
        try await cache.value(forKey: key, orLoad: load)
      } remove: {
        cache.removeValue(forKey: $0)
      }
    case 1:
      let cache: DiskCache<Int, Int> = try scene.disk.cache()
      loader = Loader(testDescription: "disk") { key, load in
        try await cache.value(forKey: key, orLoad: load)
      } remove: {
        try cache.removeValue(forKey: $0)
      }
    default:
      let cache: DiskCache<Int, Int> = try scene.cache(held: 3)
      loader = Loader(testDescription: "both") { key, load in
        try await cache.value(forKey: key, orLoad: load)
      } remove: {
        try cache.removeValue(forKey: $0)
      } drop: {
        cache.tier.removeAll()
      }
    }
    // The origin of loads. Each key has one writer, so its numbers grow.
    let source = Shared([Int](repeating: 0, count: 6))
    // What every read must find at least, because older values were removed.
    let floors = Shared([Int](repeating: 0, count: 6))
    let faults = Record<String>()
    await withTaskGroup(of: Void.self) { group in
      for key in 0..<6 {
        group.addTask {
          for number in 1...150 {
            source.with { $0[key] = number }
            do { try loader.remove(key) } catch { faults.add("\(error)") }
            floors.with { $0[key] = number }
            if number % 20 == 0 { loader.drop() }
            await Task.yield()
          }
        }
      }
      for number in 0..<24 {
        let seed = TestSeed.current &+ UInt64(number)
        group.addTask {
          var random = FuzzRandom(seed: seed)
          for _ in 0..<200 {
            let key = random.below(6)
            let pauses = random.below(3)
            let least = floors.with { $0[key] }
            do {
              let found = try await loader.value(key) {
                let value = source.with { $0[key] }
                for _ in 0..<pauses { await Task.yield() }
                return value
              }
              if found < least { faults.add("\(key): \(found) instead of \(least)") }
            } catch { faults.add("\(error)") }
          }
        }
      }
    }
    #expect(faults.all == [], TestSeed.comment)
  }

  @Test("Batches, extensions and trims by many threads leave tiers that agree")
  func agreement() throws {
    let scene = TieredScene()
    let cache: DiskCache<Int, Int> = try scene.cache(held: 40, count: 60)
    let faults = Record<String>()
    onThreads(Self.threads) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      for step in 0..<600 {
        do {
          let key = random.below(90)
          switch random.below(14) {
          case 0..<3:
            try cache.setValues((0..<5).map { (key: key + $0, value: (key + $0) * 1000 + step) })
          case 3:
            try cache.setValue(
              key * 1000, forKey: key,
              options: EntryOptions(
                cost: 3, lifetime: .milliseconds(random.below(30)),
                idleLimit: random.below(2) == 0 ? .milliseconds(20) : nil))
          case 4: try cache.setLifetime(.milliseconds(50), forKey: key)
          case 5: try cache.removeValues(forKeys: key..<key + 3)
          case 6: try cache.trim(.toCount(50, order: .largestFirst))
          case 7: try cache.trim(.unused(for: .milliseconds(10)))
          case 8: if random.below(10) == 0 { try cache.removeAll() }
          case 9: scene.advance(by: .milliseconds(random.below(4)))
          case 10: try cache.remove { key, info in key % 7 == 0 && info.cost < 5 }
          case 11: cache.tier.trim(.toBytes(30))
          default:
            for (offset, value) in try cache.values(forKeys: key..<key + 5).enumerated() {
              if let value, value / 1000 != key + offset {
                faults.add("\(value) of \(key + offset)")
              }
            }
          }
        } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [], TestSeed.comment)
    #expect(try cache.audit() == [], TestSeed.comment)
    #expect(try cache.count() <= 60)
  }
}

/// A count that all threads share.
final class Moment: Sendable {
  private let count = Atomic(0)

  func next() -> Int { count.add(1, ordering: .sequentiallyConsistent).newValue }
}

/// A value that tasks share.
final class Shared<Value: Sendable>: Sendable {
  private let value: Lock<Value>

  init(_ value: Value) { self.value = Lock(value) }

  func with<Result>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
}
