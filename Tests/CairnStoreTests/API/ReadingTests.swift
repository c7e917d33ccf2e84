import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Reading and writing")
struct ReadingTests {
  let directory: TemporaryDirectory
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store)
  }

  @Test("A value is returned as it was written")
  func roundTrip() throws {
    try store.setValue([1, 2, 3], forKey: [7])
    #expect(try store.value(forKey: [7]) == [1, 2, 3])
  }

  @Test(
    "Many values at once equal those read one by one", arguments: [true, false],
    [true, false])
  func many(reopens: Bool, byCalls: Bool) throws {
    let clock = ManualClock()
    func open() throws -> Store {
      try Store(
        directory.store + " many",
        .small {
          $0.mapsFiles = !byCalls; $0.clock = clock
        })
    }
    var store = try open()
    for number in 0..<300 where !number.isMultiple(of: 7) {
      try store.setValue(
        [UInt8](repeating: UInt8(number & 255), count: number * 13 % 1000), forKey: "\(number)",
        lifetime: number.isMultiple(of: 5) ? .seconds(10) : .unlimited)
    }
    if reopens {
      try store.close()
      store = try open()
    }
    clock.advance(by: .seconds(20))
    for count in [0, 1, 15, 16, 17, 40, 300] {
      let keys = (0..<count).map { "\($0 * 31 % 310)" } + ["3", "3"]
      let values = try store.values(forKeys: keys)
      #expect(try values == keys.map { try store.value(forKey: $0) })
    }
  }

  @Test("A missing key is nil in every form of reading")
  func missing() throws {
    #expect(try store.value(forKey: "none") == nil)
    #expect(try store.entry(forKey: "none") == nil)
    #expect(try store.info(forKey: "none") == nil)
    #expect(try store.contains("none") == false)
    #expect(try store.withValue(forKey: "none") { $0.byteCount } == nil)
    #expect(try store.values(forKeys: ["none"]) == [nil])
    #expect(try store.removeValue(forKey: "none") == false)
  }

  @Test("A value of no bytes is a value")
  func emptyValue() throws {
    try store.setValue("", forKey: "empty")
    #expect(try store.value(forKey: "empty") == [])
    #expect(try store.contains("empty"))
    #expect(try store.withValue(forKey: "empty") { $0.byteCount } == 0)
  }

  @Test("Strings, slices and arrays of the same bytes are the same key")
  func byteSources() throws {
    try store.setValue("v", forKey: "key")
    #expect(try store.value(forKey: Array("key".utf8)) == [118])
    #expect(try store.value(forKey: Array("a key".utf8)[2...]) == [118])
    #expect(try store.value(forKey: "a key".dropFirst(2)) == [118])
  }

  @Test("Canonically equal strings with different bytes are different keys")
  func canonicalEquivalence() throws {
    try store.setValue("one", forKey: "\u{E9}")
    #expect(try store.value(forKey: "e\u{301}") == nil)
  }

  @Test(
    "A value of any length near a page or a segment is returned",
    arguments: [1, 7, 8, 9, 4000, 4096, 65_000, 65_400, 65_440, 65_464, 65_472, 65_536, 200_000])
  func lengths(count: Int) throws {
    var generator = FuzzRandom(seed: UInt64(count))
    let value = generator.bytes(count: count)
    try store.setValue(value, forKey: "before")
    try store.setValue(value, forKey: "key")
    try store.setValue(value, forKey: "after", durability: .durable)
    #expect(try store.value(forKey: "before") == value)
    #expect(try store.value(forKey: "key") == value)
    #expect(try store.value(forKey: "after") == value)
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.contents() == ["before": value, "key": value, "after": value])
  }

  @Test("A value larger than a segment gets its own segment")
  func ownSegment() throws {
    try store.setValue("small", forKey: "small")
    let before = try store.statistics().segmentCount
    try store.setValue([UInt8](repeating: 7, count: 300_000), forKey: "large")
    #expect(try store.statistics().segmentCount == before + 1)
    try store.setValue("next", forKey: "next")
    #expect(try store.value(forKey: "large") == [UInt8](repeating: 7, count: 300_000))
    #expect(try store.text("next") == "next")
    #expect(try store.text("small") == "small")
  }

  @Test("Many values at once are returned in the order of the keys")
  func many() throws {
    try store.setValues([(key: "a", value: "1"), (key: "b", value: "2"), (key: "c", value: "3")])
    let values = try store.values(forKeys: ["c", "none", "a"])
    #expect(values == [Array("3".utf8), nil, Array("1".utf8)])
    try store.setValues(
      [(key: "d", value: "4")],
      options: EntryOptions(lifetime: .seconds(60), idleLimit: .seconds(5)))
    let info = try #require(try store.info(forKey: "d"))
    #expect(info.expires != nil && info.idleLimit == .seconds(5))
  }

  @Test("Removing many keys returns how many existed")
  func removeMany() throws {
    try store.setValues([(key: "a", value: "1"), (key: "b", value: "2"), (key: "c", value: "3")])
    #expect(try store.removeValues(forKeys: ["a", "none", "c", "a"]) == 2)
    #expect(try store.contents() == ["b": Array("2".utf8)])
  }

  @Test("The newest value wins")
  func overwrite() throws {
    for number in 0..<100 { try store.setValue("\(number)", forKey: "key") }
    #expect(try store.text("key") == "99")
    #expect(try store.count() == 1)
  }

  @Test("A removed key is gone and can be set again, and its removal reports that it existed")
  func removeAndSet() throws {
    try store.setValue("one", forKey: "key")
    #expect(try store.removeValue(forKey: "key"))
    #expect(try store.value(forKey: "key") == nil)
    #expect(try store.removeValue(forKey: "key") == false)
    try store.setValue("two", forKey: "key")
    #expect(try store.text("key") == "two")
  }

  @Test("Removing an absent key writes nothing")
  func removeMissing() throws {
    try store.setValue("v", forKey: "key")
    let version = try store.statistics().lastVersion
    try store.removeValue(forKey: "none")
    #expect(try store.statistics().lastVersion == version)
  }

  @Test("Random operations return what a dictionary returns, even after each of several opens")
  func model() throws {
    var generator = Seed.generator()
    var model: [String: [UInt8]] = [:]
    try store.close()
    for _ in 0..<4 {
      let store = try Store(directory.store)
      #expect(try store.contents() == model, Seed.comment)
      for _ in 0..<800 {
        let key = "key\(Int.random(in: 0..<100, using: &generator))"
        switch Int.random(in: 0..<12, using: &generator) {
        case 0..<6:
          let value = generator.bytes(count: Int.random(in: 0..<600, using: &generator))
          try store.setValue(value, forKey: key)
          model[key] = value
        case 6..<8:
          #expect(try store.removeValue(forKey: key) == (model.removeValue(forKey: key) != nil))
        case 8:
          try store.write { batch in
            for offset in 0..<5 {
              try batch.setValue("batch\(offset)", forKey: "key\(offset)")
              model["key\(offset)"] = Array("batch\(offset)".utf8)
            }
            try batch.removeValue(forKey: "key3")
            model["key3"] = nil
          }
        case 9 where Int.random(in: 0..<40, using: &generator) == 0:
          try store.setValue([UInt8](repeating: 1, count: 80_000), forKey: key)
          model[key] = [UInt8](repeating: 1, count: 80_000)
        case 10 where Int.random(in: 0..<200, using: &generator) == 0:
          try store.removeAll()
          model = [:]
        default:
          #expect(try store.value(forKey: key) == model[key], Seed.comment)
        }
      }
      #expect(try store.count() == model.count, Seed.comment)
      #expect(try store.contents() == model, Seed.comment)
      try store.close()
      let report = try Store.verify(path: directory.store)
      #expect(report.errors == [], Seed.comment)
    }
  }

  @Test("System calls and mappings read and write the same bytes")
  func systemCalls() throws {
    try store.close()
    let configuration = StoreConfiguration.small { $0.mapsFiles = false }
    var expected: [String: [UInt8]] = [:]
    do {
      let store = try Store(directory.store, configuration)
      for number in 0..<60 {
        let value = [UInt8](repeating: UInt8(number), count: number * 100)
        try store.setValue(value, forKey: "key\(number)")
        expected["key\(number)"] = value
      }
      #expect(try store.contents() == expected)
      try store.close()
    }
    #expect(try Store(directory.store, configuration).contents() == expected)
    #expect(try Store(directory.store).contents() == expected)
  }

  @Test("With system calls, every record of a sealed segment is still readable")
  func systemCallsAfterSealing() throws {
    try store.close()
    let configuration = StoreConfiguration.small { $0.mapsFiles = false }
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, configuration, background: queue)
    for number in 0..<150 {
      try store.setValue([UInt8](repeating: UInt8(number), count: 1000), forKey: "key\(number)")
    }
    queue.runAll()
    #expect(try Image(of: directory.store).manifest.sealedSegments.count >= 1)
    for number in 0..<150 {
      let error = storeError {
        let value = try store.value(forKey: "key\(number)")
        #expect(value == [UInt8](repeating: UInt8(number), count: 1000))
      }
      #expect(error == nil, "key\(number)")
    }
  }

  @Test(
    "Without a mapping, looking up an entry does not read its value",
    arguments: ["contains", "info", "overwrite", "remove", "forEachKey", "count"])
  func looksReadHeadsOnly(operation: String) throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.mapsFiles = false }
    try store.setValue([UInt8].filled(4 << 20), forKey: "big", lifetime: .seconds(3600))
    let before = scene.fileSystem.readByteCount
    switch operation {
    case "contains": #expect(try store.contains("big"))
    case "info": #expect(try store.info(forKey: "big")?.valueByteCount == 4 << 20)
    case "overwrite": try store.setValue("small", forKey: "big")
    case "remove": #expect(try store.removeValue(forKey: "big"))
    case "forEachKey": try store.forEachKey { _ in .next }
    default: #expect(try store.count() == 1)
    }
    #expect(scene.fileSystem.readByteCount - before < 64 << 10)
  }
}
