import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// What may happen between the steps of a memory-only placement, and what calls see of such an
/// entry.
@Suite("Memory-only placement, and calls between its steps", .timeLimit(.minutes(10)))
struct PlacementRaceTests {
  let scene = TieredScene()

  private func key(_ key: String) -> TierKey<String> { TierKey(key) }

  private struct Down: Error {}

  /// Places a value in memory as if the disk had no value of its key, and this newest version.
  private func place(
    _ value: Int, at version: UInt64, _ cache: DiskCache<String, Int>
  ) throws -> Bool {
    let held = cache.tier.held
    let entry = PublishedEntry(value, key("a"), .standard, in: held)
    try entry.place(in: held, byteCount: 1) { place in place(version) }
    return held.peekValue(forKey: key("a")) == value
  }

  // MARK: Versions

  @Test("An entry placed beside an unpublished batch comes after the batch", arguments: 0..<3)
  func besideBatch(kind: Int) async throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.store.asideOperationCount = 100 }
    let placed = Record<UInt64>()
    scene.pause.withLock {
      $0 = {
        // The index has nothing of the batch yet.
        #expect((try? cache.storedValue(forKey: "a")) == .some(nil))
        placed.add((try? cache.setValue(2, forKey: "a", options: .alone)) ?? 0)
      }
    }
    try cache.synchronous { cache in
      try cache.write { batch in
        for number in 0..<4000 { try batch.setValue(0, forKey: "other \(number)") }
        try batch.setValue(1, forKey: "a")
      }
    }
    #expect(placed.all.count == 1 && placed.all != [0])
    #expect(try cache.value(forKey: "a") == 2 && cache.storedValue(forKey: "a") == nil)
    switch kind {
    case 0: cache.tier.removeAll()
    case 1: #expect(try cache.synchronous { try $0.removeValue(forKey: "a") })
    default:
      try cache.synchronous { try $0.setValue(3, forKey: "a") }
      #expect(try cache.value(forKey: "a") == 3)
      #expect(try cache.synchronous { try $0.removeValue(forKey: "a") })
    }
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.audit() == [])
  }

  @Test("A write from before the placement does not enter memory once the entry has left it")
  func olderAfterwards() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let old = PublishedEntry(1, key("a"), .standard, in: cache.tier.held)
    #expect(try place(2, at: 10, cache))
    cache.tier.trim(toCount: 0)
    // The old value's writer updates memory only now, when the disk no longer has the value.
    old.publish(to: cache.tier.held, version: 9, byteCount: 1)
    #expect(try cache.value(forKey: "a") == nil)
    // A later write enters memory.
    let new = PublishedEntry(3, key("a"), .standard, in: cache.tier.held)
    new.publish(to: cache.tier.held, version: 11, byteCount: 1)
    #expect(cache.tier.held.peekValue(forKey: key("a")) == 3)
  }

  @Test("Nothing is placed below a version that memory knows: the store was recreated meanwhile")
  func storeMadeAnew() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    cache.tier.held.noteShown(21, of: key("a"))
    #expect(try !place(1, at: 10, cache))
    #expect(try place(2, at: 20, cache))
  }

  @Test("A refused placement leaves no older value, and a made-up version refuses none")
  func refused() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let held = cache.tier.held
    func stripe(_ name: String) -> Int {
      held.lock.withLock { $0.stripe(MemoryTable<TierKey<String>, Int>.hash(key(name))) }
    }
    let neighbour = try #require((0..<100_000).map { "\($0)" }.first { stripe($0) == stripe("a") })
    #expect(try place(1, at: 10, cache))
    held.noteShown(21, of: key(neighbour))
    #expect(try !place(2, at: 10, cache))
    #expect(held.peekValue(forKey: key("a")) == nil)

    let other: DiskCache<String, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("other"))
    try other.setValue(1, forKey: "a", options: .alone)
    #expect(try other.synchronous { try !$0.compareAndRemove(forKey: "a", expecting: .max) })
    try other.setValue(2, forKey: "a", options: .alone)
    #expect(try other.value(forKey: "a") == 2)
  }

  @Test("The old value leaves the disk when the new one is in memory, so no read finds neither")
  func noGap() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    let seen = Record<Int?>()
    cache.observe { event in
      // A read of an absent key with the same hash bits makes no difference.
      _ = cache.tier.held.noteAbsent(self.key("b"))
      if case .removed("a", _) = event { seen.add(cache["a"]) }
    }
    try cache.setValue(2, forKey: "a", options: .alone)
    #expect(seen.all == [2])
  }

  // MARK: Loads

  @Test("A key that is removed while its loaded value is being placed stays removed")
  func removedBeforePlacement() async throws {
    let removal = Lock<(@Sendable () -> Void)?>(nil)
    let values = ValueCoder<Int>.custom { value in
      // The load has checked whether it is outdated.
      removal.withLock { $0.take() }?()
      return [UInt8(value)]
    } decode: { bytes in
      Int([UInt8](copying: bytes)[0])
    }
    let cache: DiskCache<String, Int> = try scene.cache(keys: .standard, values: values)
    removal.withLock { $0 = { _ = try? cache.removeValue(forKey: "a") } }
    #expect(try await cache.value(forKey: "a", options: .alone) { 1 } == 1)
    #expect(removal.withLock { $0 == nil })
    #expect(try cache.value(forKey: "a") == nil)
    #expect(cache.loadStatistics.outdatedCount == 1)
  }

  @Test("A load that began while a value was being placed does not replace it")
  func loadDuringPlacement() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let gate = Gate()
    cache.memory?.observe { event, value in
      guard event == .inserted(key: "a"), value == 5 else { return }
      // This acts like a load whose lookup came just before.
      let load = SingleFlight<[UInt8], Loaded<Int>?>.Load {
        nil
      } load: { flight in
        await gate.wait()
        await cache.keep(Loaded(4), forKey: "a", replacing: nil, since: 0, nil, flight)
        return Loaded(4)
      }
      if let bytes = try? cache.bytes(of: "a") { cache.flights.begin(bytes, load) }
    }
    try cache.synchronous { _ = try $0.setValue(5, forKey: "a", options: .alone) }
    gate.open()
    await eventually { cache.loadActivity.taskCount == 0 }
    #expect(try cache.value(forKey: "a") == 5 && cache.storedValue(forKey: "a") == nil)
  }

  @Test("A value that expired on disk is not served after a memory-only one", arguments: 0..<2)
  func expiredBelow(kind: Int) async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.synchronous { try $0.setValue(1, forKey: "a", options: .lifetime(.seconds(1))) }
    scene.clock.advance(by: .seconds(2))
    if kind == 0 {
      try await cache.setValue(2, forKey: "a", options: .alone)
    } else {
      #expect(try await cache.value(forKey: "a", options: .alone) { 2 } == 2)
    }
    #expect(try cache.value(forKey: "a") == 2)
    cache.tier.removeAll()
    // Only now comes the first policy that serves such values.
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(3600)
    await #expect(throws: Down.self) {
      try await cache.value(forKey: "a", policy: policy) { throw Down() }
    }
  }

  @Test("A loaded value for the disk alone is written at once, whatever the admission")
  func diskBesideAdmission() async throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.admission = .secondRequest }
    let options = EntryOptions(placement: .disk)
    #expect(try await cache.value(forKey: "a", options: options) { 1 } == 1)
    #expect(try !cache.tier.contains("a") && cache.storedValue(forKey: "a") == 1)
    #expect(try cache.statistics().admissionRefusedCount == 0)
  }

  // MARK: Calls that go through the disk

  @Test("A read that finds nothing on disk leaves a memory-only entry in place")
  func readsLeaveIt() throws {
    let cache: DiskCache<String, [UInt8]> = try scene.cache()
    try cache.setValue([1, 2, 3], forKey: "a", options: .alone)
    let path = scene.disk("exported")
    #expect(try cache.exportValue(forKey: "a", to: path))
    #expect(try [UInt8](bytes(ofFile: path)) == [1, 2, 3])
    #expect(try !cache.exportValue(forKey: "b", to: path))
    // As `entry`, `info`, `lookUp` and others do if the value is placed just after they checked
    // memory.
    try cache.noteShown(nil, of: "a")
    #expect(try cache.value(forKey: "a") == [1, 2, 3])
    // A value that the disk should have leaves memory.
    try cache.setValue([4], forKey: "b")
    try cache.noteShown(nil, of: "b")
    #expect(try !cache.tier.contains("b"))
  }

  @Test("A call that compares versions finds none, and no read finds it later", arguments: 0..<5)
  func comparing(kind: Int) async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let version = try await cache.setValue(7, forKey: "b")
    try await cache.setValue(1, forKey: "a", options: .alone)
    var expected: Int?
    switch kind {
    case 0: #expect(try cache.synchronous { try $0.update(forKey: "a") { _ in nil } } == nil)
    case 1: #expect(try await cache.update(forKey: "a") { _ in nil } == nil)
    case 2:
      let result = try await cache.compareAndSet(2, forKey: "a", expecting: version)
      #expect(result == .mismatch(current: nil))
    case 3:
      #expect(try cache.synchronous { try !$0.compareAndRemove(forKey: "a", expecting: version) })
    default:
      #expect(try await cache.updateValue(2, forKey: "a") == nil)
      expected = 2
    }
    #expect(try cache.value(forKey: "a") == expected && cache.storedValue(forKey: "a") == expected)
  }

  @Test("Each call that finds a memory-only entry counts one hit and no miss", arguments: 0..<6)
  func counts(kind: Int) throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    func call(_ key: String) throws -> Bool {
      switch kind {
      case 0: try cache.value(forKey: key) != nil
      case 1: try cache.entry(forKey: key) != nil
      case 2: try cache.withValue(forKey: key) { _ in true } != nil
      case 3: try cache.takeValue(forKey: key) != nil
      case 4: try cache.exportValue(forKey: key, to: scene.disk("exported"))
      default: try cache.lookUp(key) != .absent
      }
    }
    try cache.setValue(1, forKey: "a", options: .alone)
    try cache.setValue(2, forKey: "b", options: EntryOptions(placement: .disk))
    for (key, isHit) in [("a", true), ("b", true), ("c", false)] {
      let before = try cache.statistics()
      #expect(try call(key) == isHit)
      let counted = try cache.statistics().since(before)
      #expect(counted.hitCount == (isHit ? 1 : 0) && counted.missCount == (isHit ? 0 : 1), "\(key)")
    }
  }

  @Test("Memory-only entries stay if a removal by a closure fails, and otherwise are removed too")
  func removingWhere() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", options: .alone)
    try cache.setValue(2, forKey: "b")
    #expect(throws: Down.self) { try cache.remove { _, _ in throw Down() } }
    #expect(try cache.value(forKey: "a") == 1 && cache.value(forKey: "b") == 2)
    #expect(try cache.remove { _, _ in false }.count == 0)
    #expect(try cache.value(forKey: "a") == nil && cache.value(forKey: "b") == 2)
  }
}
