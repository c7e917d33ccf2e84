import CairnStore
import FuzzSupport
import Testing

@Suite("What finding expired entries reads")
final class ExpiryCostTests: StoreSuite {
  let system = FaultyFileSystem()

  func open(_ path: String? = nil) throws -> Store {
    try Store(
      path ?? directory.store, .small(clock: clock) { $0.mapsFiles = false },
      fileSystem: system, background: queue)
  }

  /// Expects a result, and at most this many reads.
  func expect(
    _ expected: Int, reads limit: Int, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Int
  ) throws {
    system.arm(nil)
    #expect(try body() == expected, sourceLocation: sourceLocation)
    #expect(system.count(of: .read) <= limit, sourceLocation: sourceLocation)
  }

  @Test(
    "A round reads only what it removes, and a count reads nothing, however many keys can expire")
  func round() throws {
    let store = try open()
    let keyCount = 20_000
    for number in 0..<keyCount {
      let isShort = number % (keyCount / 25) == 0
      try store.setValue(
        "value \(number)", forKey: "\(number)",
        lifetime: .seconds(isShort ? 10 : 100 + number % 1000))
    }
    try expect(0, reads: 0) { try store.trim(.expired).count }
    clock.advance(by: .seconds(11))
    try expect(keyCount - 25, reads: 0) { try store.count() }
    // Each entry is read for its key, and once more when it is removed.
    try expect(25, reads: 75) { try store.trim(.expired).count }
    try expect(0, reads: 0) { try store.trim(.expired).count }
    try expect(keyCount - 25, reads: 0) { try store.count() }
    // Entries written to a segment in which nothing is due yet are found.
    try store.setValue("v", forKey: "new", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    try expect(1, reads: 3) { try store.trim(.expired).count }
    #expect(try store.statistics().count == keyCount - 25)
    clock.advance(by: .seconds(2000))
    try expect(0, reads: 0) { try store.count() }
    #expect(try store.trim(.expired).count == keyCount - 25)
  }

  @Test("A count reads only entries that expire at the moment of the count")
  func border() throws {
    let store = try open()
    for number in 0..<2000 {
      try store.setValue("v", forKey: "\(number)", lifetime: .milliseconds(100 * (number + 1)))
    }
    clock.advance(by: .milliseconds(50_000))
    try expect(1500, reads: 2) { try store.count() }
    clock.advance(by: .milliseconds(99))
    try expect(1500, reads: 2) { try store.count() }
    clock.advance(by: .milliseconds(1))
    try expect(1499, reads: 2) { try store.count() }
  }

  @Test("An entry with an idle limit that is read is checked once per idle limit")
  func idle() throws {
    let store = try open()
    for number in 0..<100 {
      try store.setValue("v", forKey: "\(number)", options: .idleLimit(.seconds(100)))
    }
    var lookCount = 0
    for _ in 0..<40 {
      clock.advance(by: .seconds(10))
      for number in 0..<100 { #expect(try store.value(forKey: "\(number)") != nil) }
      system.arm(nil)
      #expect(try store.trim(.expired).count == 0)
      if system.count(of: .read) > 0 { lookCount += 1 }
    }
    #expect(lookCount <= 4)
    clock.advance(by: .seconds(101))
    #expect(try store.count() == 0)
    // They are already known to have expired.
    try expect(0, reads: 0) { try store.count() }
    #expect(try store.trim(.expired).count == 100)
  }

  @Test("An extended entry is checked when its first end has come, and again when it ends")
  func extended() throws {
    let store = try open()
    for number in 0..<500 {
      try store.setValue("v", forKey: "\(number)", lifetime: .seconds(100))
    }
    for _ in 0..<9 {
      clock.advance(by: .seconds(10))
      for number in 0..<250 {
        #expect(try store.setLifetime(.seconds(100), forKey: "\(number)"))
      }
      try expect(0, reads: 0) { try store.trim(.expired).count }
    }
    clock.advance(by: .seconds(11))
    #expect(try store.count() == 250)
    try expect(250, reads: 0) { try store.count() }
    #expect(try store.trim(.expired).count == 250)
    clock.advance(by: .seconds(70))
    try expect(0, reads: 0) { try store.trim(.expired).count }
    clock.advance(by: .seconds(20))
    try expect(0, reads: 0) { try store.count() }
    #expect(try store.trim(.expired).count == 250)
  }

  @Test(
    "After an open, only heads of segments in which entries may have expired are read",
    arguments: [false, true])
  func opened(isKilled: Bool) throws {
    let shortCount = 100
    do {
      let store = try open()
      for number in 0..<5000 {
        try store.setValue(
          [UInt8](repeating: 1, count: 200), forKey: "\(number)", lifetime: .seconds(1_000_000))
      }
      for number in 0..<shortCount {
        try store.setValue("v", forKey: "short \(number)", lifetime: .seconds(10 + number))
      }
      if isKilled {
        try Image(of: directory.store).write(to: directory("killed"))
        queue.discardAll()
      }
      try store.close()
    }
    let store = try open(isKilled ? directory("killed") : nil)
    #expect(try store.statistics().segments.count > 10)
    // Nothing is due, so no shard of the index is needed.
    try expect(0, reads: 0) { try store.trim(.expired).count }
    try expect(5000 + shortCount, reads: 0) { try store.count() }
    clock.advance(by: .milliseconds(10_500))
    // Reads of the shards of a checkpoint, one or two segments, and the removed segment.
    try expect(4999 + shortCount, reads: 256 + 4) { try store.count() }
    try expect(1, reads: 3) { try store.trim(.expired).count }
    clock.advance(by: .seconds(25))
    try expect(4974 + shortCount, reads: 0) { try store.count() }
    try expect(25, reads: 75) { try store.trim(.expired).count }
    clock.advance(by: .seconds(1000))
    #expect(try store.trim(.expired).count == shortCount - 26)
    #expect(try store.count() == 5000)
    clock.advance(by: .seconds(1_000_000))
    #expect(try store.count() == 0)
    #expect(try store.trim(.expired).count == 5000)
    #expect(try store.auditUsage() == [])
  }

  @Test("A session that removed expired entries leaves none for the next one to check")
  func nextSession() throws {
    do {
      let store = try open()
      for number in 0..<2000 {
        try store.setValue(
          "v", forKey: "\(number)", lifetime: .seconds(number % 100 == 0 ? 10 : 100_000))
      }
      clock.advance(by: .seconds(11))
      #expect(try store.trim(.expired).count == 20)
      try store.close()
    }
    let store = try open()
    try expect(1980, reads: 0) { try store.count() }
    try expect(0, reads: 0) { try store.trim(.expired).count }
    clock.advance(by: .seconds(100_000))
    #expect(try store.count() == 0)
  }

  @Test("An open reads no more if keys can expire", arguments: [false, true])
  func opening(isDue: Bool) throws {
    func counts(_ name: String, _ lifetime: Lifetime) throws -> [FaultyFileSystem.Call: Int] {
      do {
        let store = try open(directory(name))
        for number in 0..<3000 {
          try store.setValue("v", forKey: "\(number)", lifetime: lifetime)
        }
        try store.close()
      }
      if isDue { clock.advance(by: .seconds(1000)) }
      system.arm(nil)
      let store = try open(directory(name))
      defer { try? store.close() }
      return system.counts
    }
    #expect(try counts("expiring", .seconds(100)) == counts("staying", .unlimited))
  }

  /// The older an access is, the less accurate its time. If that made the time too early, a read
  /// missed an entry that the count included.
  @Test("The count agrees with reads even if the times of accesses were thinned out")
  func thinned() throws {
    let store = try makeStore()
    for number in 0..<200 {
      try store.setValue("v", forKey: "\(number)", options: .idleLimit(.seconds(600)))
      clock.advance(by: .milliseconds(50))
    }
    try store.setValue("v", forKey: "other")
    #expect(try store.count() == 201)
    for step in 0..<24_000 {
      clock.advance(by: .milliseconds(25))
      _ = try store.value(forKey: "other")
      if step < 22_000 || step % 50 != 0 { continue }
      let found = try (0..<200).count { try store.contains("\($0)") } + 1
      #expect(try store.count() == found, "step \(step)")
    }
    clock.advance(by: .seconds(30))
    #expect(try store.count() == 1)
    #expect(try store.trim(.expired).count == 200)
  }

  @Test("The count is what reads find, and a removal leaves no expired entry")
  func exact() throws {
    var generator = Seed.generator()
    let keys = (0..<150).map { "key \($0)" }
    var path = directory.store
    var store = try makeStore()
    for step in 0..<3000 {
      let key = keys[Int.random(in: 0..<keys.count, using: &generator)]
      func duration() -> Duration {
        .milliseconds(Int.random(in: 1..<100_000, using: &generator))
      }
      func attributes() -> (Lifetime, Duration?) {
        (
          Bool.random(using: &generator) ? .after(duration()) : .standard,
          Int.random(in: 0..<3, using: &generator) == 0 ? duration() : nil
        )
      }
      switch Int.random(in: 0..<100, using: &generator) {
      case 0..<40:
        let (lifetime, idleLimit) = attributes()
        try store.setValue(
          "v", forKey: key, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
      case 40..<48: try store.removeValue(forKey: key)
      case 48..<60: try store.setLifetime(.after(duration()), forKey: key)
      case 60..<75: _ = try store.value(forKey: key)
      case 75..<80:
        let entries = (0..<10).map { (keys[$0 * 7], attributes()) }
        try store.write { batch in
          for (key, (lifetime, idleLimit)) in entries {
            try batch.setValue(
              "b", forKey: key, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
          }
        }
      case 80..<84: try store.compact()
      case 84: try store.checkpoint()
      case 85:
        try store.close()
        store = try Store(path, .small(clock: clock), background: queue)
      case 86:
        let killed = directory("killed \(step)")
        try Image(of: path).write(to: killed)
        path = killed
        store = try Store(path, .small(clock: clock), background: queue)
      case 87: try store.trim(.toCount(100))
      case 88 where step % 5 == 0: try store.removeAll()
      case 89..<92: try store.trim(.expired)
      default:
        clock.advance(by: .milliseconds(Int.random(in: 0..<20_000, using: &generator)))
      }
      if step % 5 != 0 { continue }
      let found = try keys.count { try store.contains($0) }
      #expect(try store.count() == found, "step \(step); \(Seed.comment)")
      if step % 50 == 0 {
        try store.trim(.expired)
        #expect(
          try store.statistics().count == found, "step \(step); \(Seed.comment)")
      }
    }
    #expect(try store.auditUsage() == [], Seed.comment)
  }
}
