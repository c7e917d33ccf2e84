import CairnStore
import FuzzSupport
import Testing

/// If an iteration ended at the first damage, everything after it would be out of reach: one bad
/// byte would prevent listing, copying or counting the rest of a store.
@Suite("Iterations over damage")
struct DamagedIterationTests {
  private let directory: TemporaryDirectory
  private let keys = (0..<40).map { "key\($0)" }

  /// A store of 40 keys, half of them with a lifetime. The heads of keys 7 and 8 and the value of
  /// key 9 are damaged.
  init() throws {
    directory = try Self.makeStore(keys, damaging: ["key7", "key8"], ["key9"])
  }

  private static func makeStore(
    _ keys: [String], damaging heads: Set<String>, _ values: Set<String>
  ) throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small())
    for (number, key) in keys.enumerated() {
      try store.setValue(
        "a value of \(key)", forKey: key,
        lifetime: number % 2 == 0 ? .seconds(1 << 30) : .unlimited)
    }
    try store.close()
    let image = try Image(of: directory.store)
    var damaged = image
    for name in image.segmentNames {
      for record in try image.records(in: name) {
        let key = String(decoding: record.key, as: UTF8.self)
        if heads.contains(key) { damaged = damaged.flipping(name, at: record.offset + 4) }
        if values.contains(key) {
          damaged = damaged.flipping(name, at: record.valueRange.lowerBound)
        }
      }
    }
    try damaged.write(to: directory.store)
    return directory
  }

  private func isDamage(_ error: StoreError?) -> Bool {
    if case .corrupt? = error { true } else { false }
  }

  @Test("All other entries are visited, and then the damage is reported", arguments: [false, true])
  func others(inSnapshot: Bool) throws {
    let store = try Store(directory.store, .small())
    #expect(try store.statistics().recovery.source == .checkpoint)
    let snapshot = try store.snapshot()
    var found: Set<String> = []
    var count = 0
    func note(_ key: [UInt8]) -> Visit {
      found.insert(String(decoding: key, as: UTF8.self))
      count += 1
      return .next
    }
    let keyError = #expect(throws: StoreError.self) {
      if inSnapshot {
        try snapshot.forEachKey { note($0.copied()) }
      } else {
        try store.forEachKey { note($0.copied()) }
      }
    }
    #expect(isDamage(keyError))
    #expect(found == Set(keys).subtracting(["key7", "key8"]))
    #expect(count == 38)
    found = []
    let entryError = #expect(throws: StoreError.self) {
      if inSnapshot {
        try snapshot.forEachEntry { note($0.key) }
      } else {
        try store.forEachEntry { note($0.key) }
      }
    }
    #expect(isDamage(entryError))
    #expect(found == Set(keys).subtracting(["key7", "key8", "key9"]))
    #expect(count == 38 + 37)
  }

  @Test("An iteration that is stopped reports the damage that it has passed")
  func ended() throws {
    // Rarely, the two sound keys come first, and then there is no damage to report.
    var errors: [StoreError?] = []
    for _ in 0..<4 {
      let directory = try Self.makeStore(keys, damaging: Set(keys.dropLast(2)), [])
      let store = try Store(directory.store, .small())
      var count = 0
      errors.append(
        storeError {
          try store.forEachKey { _ in
            count += 1
            return count == 2 ? .stop : .next
          }
        })
      #expect(count == 2)
    }
    #expect(errors.contains { isDamage($0) })
    #expect(errors.allSatisfy { $0 == nil || isDamage($0) })
  }

  @Test(
    "A prefix that the damaged value's key lacks is unaffected; the caller's errors come out unchanged"
  )
  func prefixes() throws {
    let store = try Store(directory.store, .small())
    struct Mine: Error {}
    #expect(throws: Mine.self) { try store.forEachEntry { _ in throw Mine() } }
    // After a rewrite the heads are sound again, and one value is damaged.
    try store.setValue("7", forKey: "key7")
    try store.removeValue(forKey: "key8")
    var found: [String] = []
    try store.forEachEntry(prefix: "key1") { entry in
      found.append(String(decoding: entry.key, as: UTF8.self))
      return .next
    }
    #expect(found.sorted() == keys.filter { $0.hasPrefix("key1") }.sorted())
    try store.setValue("9", forKey: "key9")
    #expect(try store.contents().count == 39)
  }

  @Test("Damaged entries count, because a read of one throws")
  func counts() throws {
    let store = try Store(directory.store, .small())
    #expect(try store.count() == 40)
    #expect(try store.snapshot().count() == 40)
    #expect(isDamage(storeError { _ = try store.value(forKey: "key7") }))
  }
}
