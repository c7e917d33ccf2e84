import CairnLibC
import CairnStore
import Dispatch
import FuzzSupport
import Synchronization
import Testing

@Suite("Limits that hold with every write")
struct EvictionTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// The order of recency: the time of each key's last access.
  struct Order {
    private var accesses: [Int: Int] = [:]
    private var last = 0

    mutating func access(_ key: Int) {
      last += 1
      accesses[key] = last
    }

    mutating func remove(_ key: Int) { accesses[key] = nil }

    var count: Int { accesses.count }

    /// Keeps only this many of the most recently accessed keys.
    mutating func keep(_ count: Int) {
      let sorted = accesses.sorted { $0.value > $1.value }
      accesses = Dictionary(uniqueKeysWithValues: sorted.prefix(count).map { ($0.key, $0.value) })
    }

    var keys: [Int] { accesses.keys.sorted() }
  }

  func numbers(_ store: Store) throws -> [Int] {
    try store.contents().keys.compactMap { Int($0) }.sorted()
  }

  @Test(
    "The least recently used are evicted, in the exact order, and no write returns above the limit",
    arguments: [1, 2, 7, 100, 3000])
  func exactOrder(limit: Int) throws {
    var random = Seed.generator("\(#function)\(limit)")
    // The order by the system's clock is not exact.
    let store = try Store(directory.store, .small(clock: ManualClock()) { $0.countLimit = limit })
    var order = Order()
    for step in 0..<max(2000, limit * 5) {
      let key = Int.random(in: 0..<(limit * 3), using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        try store.removeValue(forKey: "\(key)")
        order.remove(key)
      case 1..<4:
        if try store.value(forKey: "\(key)") != nil { order.access(key) }
      default:
        try store.setValue("v", forKey: "\(key)")
        order.access(key)
      }
      let count = try store.count()
      #expect(count <= limit, Seed.comment)
      #expect(count >= min(order.count, limit - limit / 100), Seed.comment)
      // The remaining ones are those accessed last, whatever their number.
      if order.count > count { order.keep(count) }
      if step % max(50, limit / 2) == 0 {
        #expect(try numbers(store) == order.keys, Seed.comment)
      }
    }
    #expect(try numbers(store) == order.keys, Seed.comment)
  }

  @Test("Limits hold with every write even if the few entries are read all the time")
  func allBeingRead() throws {
    let store = try Store(directory.store, .small { $0.countLimit = 4 })
    let ended = Atomic(false)
    let most = Mutex(0)
    DispatchQueue.concurrentPerform(iterations: 3) { thread in
      if thread == 0 {
        for number in 0..<6000 {
          _ = try? store.setValue("v", forKey: "key\(number % 6)")
          if let count = try? store.count() { most.withLock { $0 = max($0, count) } }
        }
        ended.store(true, ordering: .relaxed)
      }
      while !ended.load(ordering: .relaxed) {
        for number in 0..<6 { _ = try? store.value(forKey: "key\(number)") }
      }
    }
    #expect((1...4).contains(most.withLock { $0 }))
  }

  @Test("A trim to zero leaves nothing")
  func trimToZero() throws {
    let store = try Store(directory.store, .small())
    for trim in [{ try store.trim(.toCount(0)) }, { try store.trim(.toBytes(0)) }] {
      for number in 0..<100 { try store.setValue("v", forKey: "key\(number)") }
      #expect(try trim().count == 100)
      #expect(try store.count() == 0)
    }
  }

  @Test("The order stays exact while the next victims are being collected")
  func exactOrderOfMany() throws {
    // So many entries that a list has only some of them.
    let limit = 20_000
    var random = Seed.generator()
    let store = try Store(
      directory.store,
      .small(clock: ManualClock()) {
        $0.countLimit = limit
        $0.segmentByteLimit = 4 << 20
      })
    var order = Order()
    for number in 0..<limit {
      try store.setValue("v", forKey: "\(number)")
      order.access(number)
    }
    for step in 0..<30_000 {
      let key = Int.random(in: 0..<(limit * 2), using: &random)
      if step % 3 == 0 {
        if try store.value(forKey: "\(key)") != nil { order.access(key) }
        continue
      }
      try store.setValue("v", forKey: "\(key)")
      order.access(key)
      if step % 5000 == 1 {
        let count = try store.count()
        #expect((limit - limit / 100...limit).contains(count), Seed.comment)
        order.keep(count)
        #expect(try numbers(store) == order.keys, Seed.comment)
      }
    }
  }

  @Test("A batch of more than the limit leaves its last ones")
  func batch() throws {
    let store = try Store(directory.store, .small { $0.countLimit = 10 })
    try store.setValue("v", forKey: "before")
    try store.setValues((0..<25).map { (key: "\($0)", value: "v") })
    #expect(try numbers(store) == Array(15..<25))
  }

  @Test("An observer of evictions may use the store, even to write")
  func observer() throws {
    let told = Mutex<[RemovalEvent]>([])
    let reference = Mutex<Store?>(nil)
    let store = try Store(
      directory.store,
      .small {
        $0.countLimit = 5
        $0.removalObserver = { event in
          let isFirst = told.withLock {
            $0.append(event)
            return $0.count == 1
          }
          guard isFirst, let store = reference.withLock({ $0 }) else { return }
          _ = try? store.setValue("v", forKey: "by the observer")
        }
      })
    reference.withLock { $0 = store }
    for number in 0..<7 { try store.setValue("v", forKey: "\(number)") }
    reference.withLock { $0 = nil }
    let keys = told.withLock { events in
      events.map { event -> String in
        guard case .entry(let key, _, .evicted(.countLimit)) = event else { return "\(event)" }
        return String(decoding: key, as: UTF8.self)
      }
    }
    #expect(keys == ["0", "1", "2"])
    #expect(try store.contains("by the observer"))
    #expect(try store.count() == 5)
  }

  @Test("Evictions survive a close and a kill; a lower limit holds from the first write on")
  func reopened() throws {
    do {
      let store = try Store(directory.store, .small { $0.countLimit = 3000 })
      for number in 0..<5000 { try store.setValue("v", forKey: "\(number)") }
      try store.close()
    }
    let store = try Store(directory.store, .small { $0.countLimit = 10 })
    #expect((2970...3000).contains(try store.count()))
    try store.setValue("v", forKey: "5000")
    #expect(try numbers(store) == Array(4991...5000))
    try store.close()
    // The limit holds even if the first write is a removal (CrashFuzzer --seed 5004444).
    let lower = try Store(directory.store, .small { $0.countLimit = 5 })
    try lower.removeValue(forKey: "5000")
    #expect(try numbers(lower) == Array(4995...4999))
    try lower.close()
    let lowest = try Store(directory.store, .small { $0.countLimit = 2 })
    #expect(try lowest.removeValues(forKeys: ["4999", "none"]) == 1)
    #expect(try numbers(lowest) == Array(4997...4998))
  }

  @Test("A store that is opened at its limit collects the first victims in the background")
  func openedAtLimit() throws {
    let disk = SimulatedDisk()
    var configuration = StoreConfiguration.simulated(ManualClock())
    func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }
    let writer = SimulatedProcess.start(on: disk, seed: 1)
    _ = try writer.open(configuration)
    for number in 0..<990 {
      try writer.store?.setValue([1], forKey: key(number), durability: .process)
    }
    try writer.close()
    configuration.countLimit = 1000
    let process = SimulatedProcess.start(on: disk, seed: 2)
    defer { process.kill() }
    let store = try process.open(configuration)
    process.queue.runAll()
    var readCount = 0
    process.fileSystem.intervene = { call in
      let name = process.fileSystem.currentPath?.split(separator: "/").last
      if call == .read, name?.hasPrefix("ckpt-") == true { readCount += 1 }
      return nil
    }
    for number in 990..<1100 {
      try store.setValue([2], forKey: key(number), durability: .process)
      #expect(try store.count() <= 1000)
    }
    process.fileSystem.intervene = nil
    #expect(readCount == 0)
    #expect(try store.value(forKey: key(99)) == nil)
    #expect(try store.value(forKey: key(200)) == [1])
  }

  @Test(
    "A store that is opened at its limit evicts from the first write on, in exact order, with few reads",
    arguments: [false, true])
  func firstVictims(isDamaged: Bool) throws {
    let disk = SimulatedDisk()
    var random = Seed.generator("\(#function)\(isDamaged)")
    var configuration = StoreConfiguration.simulated(ManualClock())
    func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }
    var order = Order()
    let writer = SimulatedProcess.start(on: disk, seed: 1)
    do {
      let store = try writer.open(configuration)
      for number in (0..<1000).shuffled(using: &random) {
        try store.setValue([1], forKey: key(number), durability: .process)
        order.access(number)
      }
      for _ in 0..<500 {
        let number = Int.random(in: 0..<1000, using: &random)
        _ = try store.value(forKey: key(number))
        order.access(number)
      }
    }
    try writer.close()
    if isDamaged {
      let (path, bytes, _) = try #require(disk.listedCheckpoint)
      var damaged = bytes
      damaged[damaged.count - 20] ^= 1
      disk.setContents(damaged, of: path)
    }
    configuration.countLimit = 1000
    let process = SimulatedProcess.start(on: disk, seed: 2)
    defer { process.kill() }
    // Background work does not run.
    let store = try process.open(configuration)
    var readCount = 0
    process.fileSystem.intervene = { call in
      let name = process.fileSystem.currentPath?.split(separator: "/").last
      if call == .read, name?.hasPrefix("ckpt-") == true { readCount += 1 }
      return nil
    }
    for number in 1000..<1300 {
      readCount = 0
      try store.setValue([2], forKey: key(number), durability: .process)
      order.access(number)
      if !isDamaged { #expect(readCount <= 64, "of 256 shards") }
      let count = try store.count()
      #expect(count <= 1000)
      order.keep(count)
      for _ in 0..<3 {
        let number = Int.random(in: 0...number, using: &random)
        if try store.value(forKey: key(number)) != nil { order.access(number) }
      }
      if number % 50 == 49 {
        let kept = Set(order.keys)
        for other in 0...number {
          #expect(try store.contains(key(other)) == kept.contains(other), Seed.comment)
        }
      }
    }
    process.fileSystem.intervene = nil
  }

  @Test("Concurrent writers keep the limits together")
  func threads() throws {
    let store = try Store(directory.store, .small { $0.countLimit = 300 })
    try onThreads(4) { thread in
      for number in 0..<3000 {
        try store.setValue("v", forKey: "\(thread) \(number)")
        // Each of the other threads may have one more entry still to remove.
        #expect(try store.count() <= 304)
      }
    }
    #expect((297...300).contains(try store.count()))
  }

  @Test("The configured lifetime and idle limit apply to entries without their own")
  func defaultLifetime() throws {
    let clock = ManualClock()
    let store = try Store(
      directory.store,
      .small(clock: clock) {
        $0.lifetime = .seconds(100)
        $0.idleLimit = .seconds(10)
      })
    try store.setValue("v", forKey: "default")
    try store.setValue(
      "v", forKey: "own", options: EntryOptions(lifetime: .seconds(1000), idleLimit: .seconds(500)))
    try store.write { try $0.setValue("v", forKey: "of a batch") }
    clock.advance(by: .seconds(9))
    #expect(try store.value(forKey: "default") != nil)
    clock.advance(by: .seconds(9))
    #expect(try store.contains("default"))
    #expect(try !store.contains("of a batch"), "idle for 18 s")
    for _ in 0..<12 {
      clock.advance(by: .seconds(8))
      _ = try store.value(forKey: "default")
    }
    #expect(try !store.contains("default"), "read often, but 114 s old")
    #expect(try store.contains("own"))
  }

  @Test("Limits of less than 1 are refused")
  func configuration() throws {
    for (name, change) in [
      ("countLimit", { $0.countLimit = 0 } as (inout StoreConfiguration) -> Void),
      ("byteLimit", { $0.byteLimit = -1 }),
    ] {
      var configuration = StoreConfiguration.small()
      change(&configuration)
      let error = storeError { _ = try Store(directory.store, configuration) }
      guard case .invalidConfiguration(name, _) = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }

  /// If the chosen entries were forgotten, the next write would evict the entries after them.
  @Test(
    "If a read fails once, the least recently used go with the next write",
    arguments: [EIO, EMFILE])
  func failedRead(errorNumber: Int32) throws {
    let fileSystem = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.countLimit = 2000
        $0.mapsFiles = false
      }, fileSystem: fileSystem, background: ManualBackgroundQueue())
    for number in 0..<2000 { try store.setValue("v", forKey: "\(number)") }
    let failureCount = Mutex(0)
    fileSystem.setHook { event in
      guard event.call == .read else { return nil }
      return failureCount.withLock { count in
        count += 1
        return count == 1 ? errorNumber : nil
      }
    }
    _ = try? store.setValue("v", forKey: "2000")
    fileSystem.setHook(nil)
    #expect(failureCount.withLock { $0 } > 0)
    for number in 2001..<2010 { try store.setValue("v", forKey: "\(number)") }
    let numbers = try store.contents().keys.compactMap { Int($0) }.sorted()
    #expect(numbers.count <= 2000)
    #expect(numbers == Array((2010 - numbers.count)..<2010))
    try store.close()
  }

  @Test(
    "Without room for a tombstone, a write that throws noSpace has written nothing",
    arguments: [0, 20_000, 40_000, 60_000, 80_000, 100_000])
  func noRoomToEvict(filler: Int) throws {
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.countLimit = 2
        $0.segmentByteLimit = 4 << 20
      }, fileSystem: system)
    func key(_ number: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(number), count: 60_000)
    }
    try store.setValue([UInt8](repeating: 1, count: filler), forKey: "filler")
    try store.setValue("v", forKey: key(0))
    system.arm(.init(call: .allocate, index: 0, errorNumber: ENOSPC, isLasting: true))
    var failureCount = 0
    for number in 1..<30 {
      let error = storeError { try store.setValue("v", forKey: key(number)) }
      #expect(try store.contains(key(number)) == (error == nil))
      // One write may come before the lack of room is known.
      #expect(try store.count() <= 3)
      guard let error else { continue }
      failureCount += 1
      guard case .noSpace = error else {
        Issue.record("\(error)")
        return
      }
    }
    #expect(failureCount > 0)
    system.arm(nil)
    try store.setValue("v", forKey: "after")
    #expect(try store.count() <= 2)
    #expect(try store.contains("after"))
  }
}
