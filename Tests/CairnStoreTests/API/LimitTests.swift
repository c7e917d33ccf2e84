import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("Limits")
struct LimitTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  func key(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x6B, count: count) }

  @Test("Keys of 1 and of 65,535 bytes are stored", arguments: [1, 2, 255, 4096, 65_534, 65_535])
  func longestKey(count: Int) throws {
    let store = try Store(directory.store)
    try store.setValue("v", forKey: key(count))
    #expect(try store.value(forKey: key(count)) == [118])
    #expect(try store.entry(forKey: key(count))?.key == key(count))
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.value(forKey: key(count)) == [118])
    #expect(try again.removeValue(forKey: key(count)))
  }

  @Test(
    "The longest keys can be removed from the smallest segments, with the next one made or not",
    arguments: [false, true])
  func longestRemovedKey(isNextMade: Bool) throws {
    let scene = try StoreScene()
    let store = try scene.open()
    let keys = (0..<4).map { number in [UInt8(number)] + key(65_534) }
    for key in keys { try store.setValue("v", forKey: key) }
    try store.setValue("kept", forKey: "kept")
    if isNextMade { scene.queue.runAll() }
    for key in keys {
      #expect(try store.removeValue(forKey: key, durability: .durable))
      #expect(try !store.removeValue(forKey: key))
    }
    try store.setValue("after", forKey: "after")
    let after = ["kept": Array("kept".utf8), "after": Array("after".utf8)]
    #expect(try store.contents() == after)
    let again = try scene.killed()
    #expect(try again.open().contents() == after)
    #expect(try Store.verify(path: again.path).errors == [])
    scene.queue.runAll()
    try store.compact()
    try store.close()
    #expect(try scene.open().contents() == after)
  }

  @Test(
    "Keys of no bytes and of more than 65,535 are invalid in every call", arguments: [0, 65_536])
  func invalidKey(count: Int) throws {
    let store = try Store(directory.store)
    let key = key(count)
    let invalid = StoreError.invalidKey(
      reason: "it has \(count) bytes; it must have 1 to 65535")
    #expect(throws: invalid) { try store.setValue("v", forKey: key) }
    #expect(throws: invalid) { try store.value(forKey: key) }
    #expect(throws: invalid) { try store.entry(forKey: key) }
    #expect(throws: invalid) { try store.info(forKey: key) }
    #expect(throws: invalid) { try store.contains(key) }
    #expect(throws: invalid) { try store.withValue(forKey: key) { _ in } }
    #expect(throws: invalid) { try store.removeValue(forKey: key) }
    #expect(throws: invalid) { try store.compareAndSet("v", forKey: key, expecting: nil) }
    #expect(throws: invalid) { try store.compareAndRemove(forKey: key, expecting: 1) }
    #expect(throws: invalid) { try store.write { try $0.setValue("v", forKey: key) } }
    #expect(throws: invalid) { try store.write { try $0.removeValue(forKey: key) } }
    #expect(throws: invalid) { try store.values(forKeys: [key]) }
    #expect(try store.count() == 0)
  }

  @Test("The configured limit on keys holds")
  func keyLimit() throws {
    let store = try Store(directory.store, .small { $0.keyByteLimit = 8 })
    try store.setValue("v", forKey: key(8))
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 9 bytes; it must have 1 to 8")
    ) {
      try store.setValue("v", forKey: key(9))
    }
  }

  @Test("The configured limit on values holds, even in a batch")
  func valueLimit() throws {
    let store = try Store(directory.store, .small { $0.valueByteLimit = 8 })
    try store.setValue(key(8), forKey: "k")
    let error = StoreError.tooLarge("value", byteCount: 9, limit: 8)
    #expect(throws: error) { try store.setValue(key(9), forKey: "k") }
    #expect(throws: error) { try store.write { try $0.setValue(key(9), forKey: "k") } }
    #expect(try store.value(forKey: "k")?.count == 8)
  }

  @Test("Metadata of 65,535 bytes is stored, more is refused")
  func metadataLimit() throws {
    let store = try Store(directory.store)
    try store.setValue("v", forKey: "k", options: .metadata(key(65_535)))
    #expect(try store.entry(forKey: "k")?.metadata == key(65_535))
    #expect(throws: StoreError.tooLarge("metadata", byteCount: 65_536, limit: 65_535)) {
      try store.setValue("v", forKey: "k", options: .metadata(key(65_536)))
    }
  }

  @Test("The longest key with the longest metadata is stored")
  func longestHead() throws {
    let store = try Store(directory.store)
    try store.setValue(
      "v", forKey: key(65_535),
      options: EntryOptions(
        cost: 1, lifetime: .seconds(100), idleLimit: .seconds(100), metadata: key(65_535)))
    try store.close()
    let entry = try Store(directory.store).entry(forKey: key(65_535))
    #expect(entry?.metadata == key(65_535))
    #expect(entry?.value == [118])
  }

  @Test("The configured limit on metadata holds")
  func smallMetadataLimit() throws {
    let store = try Store(directory.store, .small { $0.metadataByteLimit = 4 })
    try store.setValue("v", forKey: "k", options: .metadata(key(4)))
    #expect(throws: StoreError.tooLarge("metadata", byteCount: 5, limit: 4)) {
      try store.setValue("v", forKey: "k", options: .metadata(key(5)))
    }
  }

  @Test("A batch beyond its limit is refused before anything is written")
  func batchLimit() throws {
    let store = try Store(directory.store, .small { $0.batchByteLimit = 1000 })
    let error = storeError {
      try store.write { batch in
        for number in 0..<100 { try batch.setValue(key(100), forKey: "k\(number)") }
      }
    }
    guard case .tooLarge("batch", let byteCount, 1000) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(byteCount > 1000)
    #expect(try store.count() == 0)
    #expect(try store.statistics().lastVersion == 0)
  }

  @Test("A batch larger than a segment is stored")
  func largeBatch() throws {
    let store = try Store(directory.store)
    try store.write { batch in
      for number in 0..<200 { try batch.setValue(key(1000), forKey: "k\(number)") }
    }
    #expect(try store.count() == 200)
    try store.close()
    #expect(try Store(directory.store).count() == 200)
  }

  @Test("Options out of range are refused, by name, before anything is created")
  func configuration() throws {
    let changes: [(String, (inout StoreConfiguration) -> Void)] = [
      ("segmentByteLimit", { $0.segmentByteLimit = 65_535 }),
      ("segmentByteLimit", { $0.segmentByteLimit = (1 << 30) + 1 }),
      ("keyByteLimit", { $0.keyByteLimit = 0 }),
      ("keyByteLimit", { $0.keyByteLimit = 65_536 }),
      ("valueByteLimit", { $0.valueByteLimit = -1 }),
      ("valueByteLimit", { $0.valueByteLimit = 1 << 32 }),
      ("metadataByteLimit", { $0.metadataByteLimit = -1 }),
      ("metadataByteLimit", { $0.metadataByteLimit = 65_536 }),
      ("batchByteLimit", { $0.batchByteLimit = 0 }),
      ("batchByteLimit", { $0.batchByteLimit = (1 << 32) + 1 }),
      ("durability", { $0.durability = .interval(.zero) }),
      ("durability", { $0.durability = .interval(.seconds(-1)) }),
    ]
    for (name, change) in changes {
      let error = storeError { _ = try Store(directory.store, .small(change)) }
      guard case .invalidConfiguration(let option, _) = error else {
        Issue.record("\(name): \(String(describing: error))")
        continue
      }
      #expect(option == name)
    }
    #expect(throws: StoreError.noStore(path: directory.store)) {
      try Store(directory.store, readOnly: true)
    }
  }

  @Test("While a much lower limit is set, evictions are reported and other writes continue")
  func lowered() throws {
    let directory = try TemporaryDirectory()
    let seen = Lock<[Int]>([])
    let opened = Lock(Store?.none)
    let store = try Store(
      directory.store,
      .small(durability: .process) {
        $0.countLimit = 2000
        $0.removalObserver = { event in
          guard case .entry(_, _, .evicted) = event, let store = opened.withLock({ $0 }) else {
            return
          }
          _ = try? store.setValue("v", forKey: "beside")
          let count = try? store.count()
          seen.withLock { $0.append(count ?? 0) }
        }
      })
    for number in 0..<2000 { try store.setValue("v", forKey: "\(number)") }
    opened.withLock { $0 = store }
    try store.setLimits(countLimit: 10, byteLimit: nil)
    #expect(try store.count() == 10)
    let counts = seen.withLock { $0 }
    #expect(counts.count >= 1990)
    #expect(counts.first ?? 0 > 1800)
    opened.withLock { $0 = .none }
  }

  @Test("Limits can be changed while the store is open, and hold when the call returns")
  func changed() async throws {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small(durability: .process) { $0.countLimit = 100 })
    for number in 0..<100 {
      try await store.setValue([UInt8](repeating: 1, count: 100), forKey: "\(number)")
    }
    _ = try store.value(forKey: "0")
    try await store.setLimits(countLimit: 10, byteLimit: nil)
    #expect(try store.count() == 10)
    #expect(try store.contains("0") && store.contains("99"))
    try await store.setValue("v", forKey: "new")
    #expect(try store.count() == 10)
    // Raise the limit, and express it in bytes.
    try await store.setLimits(countLimit: nil, byteLimit: 2000)
    for number in 0..<100 { try await store.setValue("v", forKey: "up \(number)") }
    #expect(try store.count() > 10)
    #expect(try store.statistics().liveByteCount <= 2000)
    let refusal = await #expect(throws: StoreError.self) {
      try await store.setValue([UInt8](repeating: 1, count: 3000), forKey: "k")
    }
    guard case .tooLarge("value", byteCount: 3000, let limit) = refusal, limit < 2000 else {
      return #expect(Bool(false), "it was \(refusal.debugDescription)")
    }
    await #expect(throws: StoreError.self) {
      try await store.setLimits(countLimit: 0, byteLimit: nil)
    }
    #expect(try store.statistics().liveByteCount <= 2000)
    try await store.setLimits(countLimit: nil, byteLimit: nil)
    try await store.setValue([UInt8](repeating: 1, count: 3000), forKey: "k")
    try await store.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.setLimits(countLimit: 1, byteLimit: nil)
    }
    // The configuration applies again.
    let next = try Store(directory.store, .small { $0.countLimit = 5 })
    for number in 0..<10 { try await next.setValue("v", forKey: "next \(number)") }
    #expect(try next.count() == 5)
  }
}
