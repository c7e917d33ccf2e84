import CairnStore
import FuzzSupport
import Testing

@Suite("Deadlines in the index")
struct DeadlineTests {
  static let origin = ManualClock.start.millisecondsSinceEpoch

  /// An index, and a dictionary with the expected contents.
  struct Pair {
    struct Known {
      var hash: UInt64
      var canExpire: Bool
      var deadline: Deadline?
    }

    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    /// The entries by location.
    var known: [UInt64: Known] = [:]
    var locations: [UInt64] = []
    private var nextLocation: UInt64 = 1

    static func earliest(_ location: UInt64) -> Int64 { origin + Int64(location % 5000) * 1000 }

    /// A time, in the units that the index distinguishes.
    static func moment(_ time: Int64) -> Int64 { max(0, (time - origin) / 16) }

    private mutating func enter(_ hash: UInt64, using generator: inout FuzzRandom) -> (
      Location, Deadline?, IndexEntry.Flags
    ) {
      let location = nextLocation
      nextLocation += 1
      let canExpire = Int.random(in: 0..<3, using: &generator) > 0
      let isKnown = Int.random(in: 0..<4, using: &generator) > 0
      let time = origin + Int64.random(in: -10_000..<5_000_000, using: &generator)
      let deadline =
        canExpire && isKnown
        ? Deadline(time: time, isExact: Bool.random(using: &generator)) : nil
      known[location] = Known(hash: hash, canExpire: canExpire, deadline: deadline)
      locations.append(location)
      return (Location(rawValue: location), deadline, canExpire ? .canExpire : [])
    }

    mutating func insert(_ hash: UInt64, using generator: inout FuzzRandom) {
      let (location, deadline, flags) = enter(hash, using: &generator)
      index.insert(hash, location: location, flags: flags, deadline: deadline)
    }

    mutating func takeRandom(
      using generator: inout FuzzRandom
    ) -> (location: UInt64, known: Known)? {
      if locations.isEmpty { return nil }
      let location = locations.remove(at: Int.random(in: 0..<locations.count, using: &generator))
      return known.removeValue(forKey: location).map { (location, $0) }
    }

    mutating func replace(using generator: inout FuzzRandom) {
      guard let (old, known) = takeRandom(using: &generator) else { return }
      let (location, deadline, flags) = enter(known.hash, using: &generator)
      #expect(
        index.replace(
          known.hash, old: Location(rawValue: old), new: location, flags: flags,
          deadline: deadline))
    }

    mutating func remove(using generator: inout FuzzRandom) {
      guard let (location, known) = takeRandom(using: &generator) else { return }
      #expect(index.remove(known.hash, location: Location(rawValue: location)))
    }

    mutating func relocate(using generator: inout FuzzRandom) {
      guard let (old, known) = takeRandom(using: &generator) else { return }
      let location = nextLocation
      nextLocation += 1
      #expect(
        index.relocate(
          known.hash, from: Location(rawValue: old), to: Location(rawValue: location)))
      self.known[location] = known
      locations.append(location)
    }

    /// Compares the due entries with the expected ones.
    mutating func expectDue(by time: Int64) throws {
      var found: [UInt64: Deadline.State] = [:]
      var count = 0
      for shard in 0..<HashIndex.shardCount {
        count += try index.forEachDue(
          inShard: shard, by: Timestamp(millisecondsSinceEpoch: time), loads: true,
          visitsPassed: true, earliest: { Self.earliest($0.location.rawValue) },
          { entry, state in
            #expect(found.updateValue(state, forKey: entry.location.rawValue) == nil)
          })
      }
      var expected: [UInt64: Deadline.State] = [:]
      for (location, entry) in known where entry.canExpire {
        let deadline =
          entry.deadline ?? Deadline(time: Self.earliest(location), isExact: false)
        known[location]?.deadline = deadline
        let (moment, now) = (Self.moment(deadline.time), Self.moment(time))
        if moment > now { continue }
        expected[location] = !deadline.isExact ? .inexact : moment < now ? .passed : .passing
      }
      #expect(found == expected, "by \(time - origin); \(Seed.comment)")
      let passed = expected.filter { $0.value == .passed }
      #expect(count == known.count - passed.count, Seed.comment)
      var others: [UInt64: Deadline.State] = [:]
      for shard in 0..<HashIndex.shardCount {
        count -= try index.forEachDue(
          inShard: shard, by: Timestamp(millisecondsSinceEpoch: time), loads: true,
          visitsPassed: false, earliest: { _ in .min },
          { entry, state in others[entry.location.rawValue] = state })
      }
      #expect(count == 0, Seed.comment)
      #expect(others == expected.filter { $0.value != .passed }, Seed.comment)
    }
  }

  @Test("Whatever happens to the table, each entry keeps its own deadline")
  func model() throws {
    var generator = Seed.generator()
    var pair = Pair()
    for step in 0..<30_000 {
      // In two shards, so that they get large. Growing, then shrinking, then growing again.
      let hash = generator.next() & ~0xFE
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<((step / 10_000) % 2 == 0 ? 5 : 1): pair.insert(hash, using: &generator)
      case 5: pair.replace(using: &generator)
      case 6: pair.relocate(using: &generator)
      default: pair.remove(using: &generator)
      }
      if step % 500 == 0 {
        try pair.expectDue(
          by: Self.origin + Int64.random(in: -100..<6_000_000, using: &generator))
      }
    }
    try pair.expectDue(by: Self.origin + 10_000_000)
    pair.index.removeAll()
    pair.known = [:]
    #expect(pair.index.byteCount == 0)
    try pair.expectDue(by: Self.origin + 10_000_000)
  }

  /// The entries that are due in an index of few entries, by the numbers of their locations.
  private func due(
    _ index: HashIndex, by time: Int64, present: Int64? = nil
  ) throws -> [UInt64: Deadline.State] {
    var found: [UInt64: Deadline.State] = [:]
    for shard in 0..<HashIndex.shardCount {
      _ = try index.forEachDue(
        inShard: shard, by: Timestamp(millisecondsSinceEpoch: time),
        present: Timestamp(millisecondsSinceEpoch: present ?? time), loads: true,
        visitsPassed: true, earliest: { _ in .min },
        { entry, state in found[entry.location.rawValue] = state })
    }
    return found
  }

  @Test("Entries that are due in many years are checked once a year, and found in time")
  func years() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let day: Int64 = 86_400_000
    let days: [Int64] = [1, 150, 300, 390, 1000, 3650]
    for (number, count) in days.enumerated() {
      index.insert(
        7, location: Location(rawValue: UInt64(number + 1)), flags: .canExpire,
        deadline: Deadline(time: Self.origin + count * day, isExact: true))
    }
    var looks = 0
    for now in stride(from: Int64(0), to: 4000, by: 50) {
      let time = Self.origin + now * day + 1000
      for (location, state) in try due(index, by: time) {
        let end = days[Int(location) - 1]
        if end <= now {
          #expect(index.remove(7, location: Location(rawValue: location)))
          #expect(now - end < 50)
          continue
        }
        #expect(state == .inexact)
        looks += 1
        var entry = IndexEntry.empty
        _ = index.find(7, at: Location(rawValue: location)) { entry = $0 }
        index.settleDeadline(
          Deadline(time: Self.origin + end * day, isExact: true), of: 7, entry,
          by: Timestamp(millisecondsSinceEpoch: time))
      }
    }
    #expect(index.count == 0)
    #expect(looks <= 16)
  }

  @Test("After a clock that was years ahead, entries are checked once, and found in time")
  func clockAhead() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let day: Int64 = 86_400_000
    func insert(_ number: Int64) {
      index.insert(
        7, location: Location(rawValue: UInt64(number)), flags: .canExpire,
        deadline: Deadline(time: Self.origin + number * day, isExact: true))
    }
    for number in Int64(1)...3 { insert(number) }
    #expect(try due(index, by: Self.origin + 1000 * day).count == 3)
    // Before the origin of that moment.
    insert(4)
    let now = Self.origin + day / 2
    let found = try due(index, by: now)
    #expect(found == [1: .inexact, 2: .inexact, 3: .inexact, 4: .inexact])
    for number in Int64(1)...4 {
      var entry = IndexEntry.empty
      _ = index.find(7, at: Location(rawValue: UInt64(number))) { entry = $0 }
      index.settleDeadline(
        Deadline(time: Self.origin + number * day, isExact: true), of: 7, entry,
        by: Timestamp(millisecondsSinceEpoch: now))
    }
    #expect(try due(index, by: now) == [:])
    #expect(try due(index, by: Self.origin + 2 * day + 1000) == [1: .passed, 2: .passed])
  }

  @Test(
    "A look for entries that expired years ago leaves the others unread", arguments: [1, 2, 20])
  func retained(years: Int64) throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let (day, now) = (Int64(86_400_000), Self.origin + 1000)
    for number in Int64(1)...3 {
      index.insert(
        7, location: Location(rawValue: UInt64(number)), flags: .canExpire,
        deadline: Deadline(time: Self.origin + number * day, isExact: true))
    }
    for _ in 0..<2 {
      #expect(try due(index, by: now - years * 365 * day, present: now) == [:])
      #expect(try due(index, by: now) == [:])
    }
    #expect(try due(index, by: Self.origin + 2 * day + 1000) == [1: .passed, 2: .passed])
  }

  @Test("A check that was overtaken by an access changes nothing")
  func overtaken() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let location = Location(rawValue: 1)
    let deadline = Deadline(time: Self.origin + 1000, isExact: false)
    let settled = Deadline(time: Self.origin + 1000, isExact: true)
    let now = Timestamp(millisecondsSinceEpoch: Self.origin + 5000)
    index.insert(7, location: location, flags: .canExpire, deadline: deadline)
    var entry = IndexEntry.empty
    func look() { _ = index.find(7, at: location) { entry = $0 } }
    look()
    index.insert(8, location: Location(rawValue: 2), flags: [])
    index.touch(7, entry)
    index.settleDeadline(settled, of: 7, entry, by: now)
    #expect(try due(index, by: now.millisecondsSinceEpoch) == [1: .inexact])
    look()
    index.settleDeadline(settled, of: 7, entry, by: now)
    #expect(try due(index, by: now.millisecondsSinceEpoch) == [1: .passed])
    // Another thread found the entry in time, and reports its access now.
    index.insert(9, location: Location(rawValue: 3), flags: [])
    index.touch(7, entry)
    #expect(try due(index, by: now.millisecondsSinceEpoch) == [1: .inexact])
  }

  @Test("An access to an unexpired entry leaves its deadline unchanged")
  func access() throws {
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let now = Timestamp(millisecondsSinceEpoch: Self.origin + 5000)
    for number in UInt64(1)...2 {
      index.insert(
        7, location: Location(rawValue: number), flags: .canExpire,
        deadline: Deadline(time: Self.origin + Int64(number) * 4000, isExact: true))
    }
    for number in UInt64(1)...2 {
      var entry = IndexEntry.empty
      _ = index.find(7, at: Location(rawValue: number)) { entry = $0 }
      if number == 1 {
        index.settleDeadline(
          Deadline(time: Self.origin + 4000, isExact: true), of: 7, entry,
          by: now)
      } else {
        index.touch(7, entry)
      }
    }
    #expect(try due(index, by: Self.origin + 9000) == [1: .passed, 2: .passed])
  }

  @Test("A deadline takes 4 bytes per slot, and nothing if no entry can expire")
  func memory() {
    var generator = Seed.generator()
    let hashes = (0...60_000).map { _ in generator.next() }
    func byteCount(_ count: Int, expiring isExpiring: (Int) -> Bool) -> Int {
      let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
      for number in 1...count {
        let deadline =
          isExpiring(number) ? Deadline(time: Self.origin + 1000, isExact: true) : nil
        index.insert(
          hashes[number], location: Location(rawValue: UInt64(number)),
          flags: deadline == nil ? [] : .canExpire, deadline: deadline)
      }
      return index.byteCount
    }
    for count in [40_000, 60_000] {
      let without = byteCount(count) { _ in false }
      let all = byteCount(count) { _ in true } - without
      #expect(Double(all) / Double(count) < 10, "\(count); \(Seed.comment)")
      #expect(all * 3 < without, "\(count); \(Seed.comment)")
      let few = byteCount(count) { $0 % 1000 == 0 } - without
      #expect(few < count / 1000 * 600, "\(count); \(Seed.comment)")
    }
  }
}
