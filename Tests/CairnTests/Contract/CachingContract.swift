import Cairn
import CairnStore
import FuzzSupport
import Testing

// The promises about single keys, entries and events.
extension CachingContract {
  private func set(_ number: Int, _ options: EntryOptions = .standard) throws {
    try cache.setValue(value(number), forKey: key(number), options: options)
  }

  func checkPeeks() throws {
    #expect(try cache.peekValue(forKey: key(0)) == nil)
    try fill(4)
    #expect(try cache.peekValue(forKey: key(0)) == value(0))
    _ = try cache.value(forKey: key(1))
    try cache.trim(.toCount(2))
    #expect(try left(of: 4) == [1, 3])
    try set(5, .idleLimit(.seconds(100)))
    let accessed = try #require(try cache.info(forKey: key(5))).accessed
    advance(.seconds(60))
    #expect(try cache.peekValue(forKey: key(5)) == value(5))
    #expect(try cache.info(forKey: key(5))?.accessed == accessed)
    advance(.seconds(60))
    #expect(try cache.peekValue(forKey: key(5)) == nil)
  }

  func checkEntries() throws {
    #expect(try cache.entry(forKey: key(0)) == nil && cache.info(forKey: key(0)) == nil)
    let version = try cache.setValue(value(0), forKey: key(0), options: .cost(7))
    let entry = try #require(try cache.entry(forKey: key(0)))
    #expect(entry.key == key(0) && entry.value == value(0))
    #expect(entry.version == version && entry.info.cost == 7)
    #expect(try cache.info(forKey: key(0)) == entry.info)
  }

  func checkEverything() throws {
    try fill(5)
    try set(7, .lifetime(.seconds(10)))
    advance(.seconds(10))
    let all = Set((0..<5).map(key))
    #expect(try Set(cache.keys()) == all && cache.keys().count == 5)
    var seen: [[UInt8]: [UInt8]] = [:]
    let leftOutCount = try cache.forEachEntry { entry in
      seen[entry.key] = entry.value
      // The closure may use the cache.
      let info = try cache.info(forKey: entry.key)
      #expect(info == entry.info)
      return .next
    }
    #expect(leftOutCount == 0 && Set(seen.keys) == all && seen[key(3)] == value(3))
    var count = 0
    try cache.forEachEntry { _ in
      count += 1
      return count == 2 ? .stop : .next
    }
    #expect(count == 2)
    #expect(throws: Refused.self) { try cache.forEachEntry { _ in throw Refused() } }
    // This was not an access.
    try cache.trim(.toCount(2))
    #expect(try left(of: 5) == [3, 4])
  }

  func checkTakes() throws {
    try set(0)
    #expect(try cache.takeValue(forKey: key(0)) == value(0))
    #expect(try cache.takeValue(forKey: key(0)) == nil && cache.count() == 0)
    try set(0, .lifetime(.seconds(10)))
    advance(.seconds(10))
    #expect(try cache.takeValue(forKey: key(0)) == nil)
  }

  func checkUpdates() throws {
    func update(_ value: [UInt8]?) throws -> (value: [UInt8], version: UInt64)? {
      try cache.change(forKey: key(0), options: .standard) { old in value.map { (old ?? []) + $0 } }
    }
    #expect(try update([1])?.value == [1])
    let updated = try #require(try update([2]))
    #expect(updated.value == [1, 2])
    #expect(try cache.info(forKey: key(0))?.version == updated.version)
    #expect(throws: Refused.self) {
      try cache.change(forKey: key(0), options: .standard) { _ in throw Refused() }
    }
    #expect(try update(nil) == nil && cache.count() == 0)
  }

  func checkCompares() throws {
    func set(_ number: Int, expecting version: UInt64?) throws -> CompareAndSetResult {
      try cache.compareAndSet(value(number), forKey: key(0), expecting: version, options: .standard)
    }
    guard case .stored(let first) = try set(1, expecting: nil) else {
      return #expect(Bool(false), "there was none")
    }
    #expect(try set(2, expecting: nil) == .mismatch(current: first))
    guard case .stored(let second) = try set(3, expecting: first) else {
      return #expect(Bool(false), "it was the one")
    }
    #expect(try !cache.compareAndRemove(forKey: key(0), expecting: first))
    #expect(try cache.value(forKey: key(0)) == value(3))
    #expect(try cache.compareAndRemove(forKey: key(0), expecting: second))
    #expect(try set(4, expecting: second) == .mismatch(current: nil))
  }

  func checkSetLifetimes() throws {
    #expect(try !cache.setLifetime(.seconds(10), forKey: key(0)))
    try set(0, .lifetime(.seconds(10)))
    #expect(try cache.setLifetime(.seconds(100), forKey: key(0)))
    #expect(try cache.setLifetime(.seconds(50), forKey: key(0)))
    advance(.seconds(49))
    #expect(try cache.contains(key(0)))
    advance(.seconds(1))
    #expect(try !cache.setLifetime(.seconds(100), forKey: key(0)))
  }

  func checkPredicates() throws {
    try fill(6)
    try set(7, .cost(9))
    let written = Array("new".utf8)
    #expect(throws: Refused.self) { try cache.remove { _, _ in throw Refused() } }
    let summary = try cache.remove { key, info in
      // A value that is rewritten meanwhile stays.
      if key == self.key(3) { try cache.setValue(written, forKey: key, options: .standard) }
      return key == self.key(1) || key == self.key(3) || info.cost == 9
    }
    #expect(summary.count == 2)
    #expect(try left(of: 8) == [0, 2, 3, 4, 5] && cache.value(forKey: key(3)) == written)
  }

  func checkEvents() throws {
    let events = Record<CacheEvent<[UInt8]>>()
    let observation = cache.observe { events.add($0) }
    try set(0)
    try set(0)
    _ = try cache.takeValue(forKey: key(0))
    try set(1, .lifetime(.seconds(10)))
    advance(.seconds(10))
    try cache.trim(.expired)
    observation.cancel()
    try set(2)
    #expect(
      events.all == [
        .inserted(key: key(0)), .removed(key: key(0), cause: .replaced), .inserted(key: key(0)),
        .removed(key: key(0), cause: .removed), .inserted(key: key(1)),
        .removed(key: key(1), cause: .expired),
      ])
  }
}

private struct Refused: Error {}
