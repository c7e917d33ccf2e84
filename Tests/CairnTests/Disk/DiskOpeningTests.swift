import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("Opening and closing a cache on disk")
struct DiskOpeningTests {
  let scene = DiskScene()

  @Test(
    "A path that is already open is locked, even in the same process, and nothing happens to it")
  func locked() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    for quarantines in [false, true] {
      #expect(throws: StoreError.locked(path: scene.path, inThisProcess: true)) {
        let _: DiskCache<String, Int> = try scene.cache {
          $0.quarantinesCorruptStores = quarantines
        }
      }
    }
    #expect(try cache.value(forKey: "a") == 1)
    try cache.close()
    let next: DiskCache<String, Int> = try scene.cache()
    #expect(try next.value(forKey: "a") == 1)
  }

  @Test("A closed cache says so; a second close does nothing")
  func closed() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    try cache.close()
    try cache.close()
    let closed = StoreError.closed(path: scene.path)
    #expect(throws: closed) { try cache.value(forKey: "a") }
    #expect(throws: closed) { try cache.setValue(2, forKey: "a") }
    #expect(throws: closed) { try cache.setValues([(key: "a", value: 1)]) }
    #expect(throws: closed) { try cache.removeAll() }
    #expect(throws: closed) { try cache.trim(.toCount(0)) }
    #expect(throws: closed) { try cache.count() }
    #expect(throws: closed) { try cache.totalCost() }
    #expect(throws: closed) { try cache.statistics() }
    #expect(throws: closed) { try cache.keys() }
    #expect(throws: closed) { try cache.forEachEntry { _ in .next } }
    #expect(throws: closed) { try cache.remove { _, _ in true } }
    #expect(throws: closed) { try cache.sync() }
  }

  @Test("Order of use, costs, lifetimes and metadata survive a reopen")
  func reopened() throws {
    do {
      let cache: DiskCache<Int, String> = try scene.cache()
      // More than the few for which a close makes no checkpoint.
      for number in -20..<6 {
        try cache.setValue(
          "v", forKey: number, options: EntryOptions(cost: 5, lifetime: .seconds(60), metadata: [9])
        )
      }
      _ = try cache.value(forKey: 0)
      try cache.close()
    }
    let cache: DiskCache<Int, String> = try scene.cache(count: 3)
    let entry = try #require(try cache.entry(forKey: 5))
    #expect(entry.metadata == [9])
    #expect(entry.info.cost == 5)
    #expect(entry.info.expires == ManualClock.start.advanced(by: .seconds(60)))
    // A lower limit than before holds from the next write on.
    try cache.setValue("v", forKey: 6)
    #expect(try cache.keys().sorted() == [0, 5, 6])
  }

  @Test("Without a close, nothing acknowledged is lost")
  func notClosed() throws {
    var cache: DiskCache<Int, Int>? = try scene.cache()
    for number in 0..<100 { try cache?.setValue(number, forKey: number) }
    let copy = scene("copy")
    try FileManager.default.copyItem(atPath: scene.path, toPath: copy)
    cache = nil
    let other: DiskCache<Int, Int> = try scene.cache(at: copy)
    #expect(try other.keys().sorted() == Array(0..<100))
  }

  @Test("A subscript reads, sets and removes, and its failures are logged and counted")
  func subscripts() throws {
    let log = Record<String>()
    let cache: DiskCache<String, Int> = try scene.cache {
      $0.store.log = DiagnosticLog { log.add("\($0)") }
    }
    cache["a"] = 1
    #expect(cache["a"] == 1)
    cache["a"] = nil
    #expect(try cache.count() == 0)
    #expect(log.all == [])
    cache[""] = 3
    #expect(cache[""] == nil)
    #expect(try cache.statistics()["subscriptFailures"] == 2)
    let reason = "by subscript: not a valid key: it has 0 bytes; it must have 1 to 65535"
    #expect(
      log.all == ["writing", "reading"].map { "error: \($0): \(scene.path): \($0) \(reason)" })
  }

  @Test("Caches and their statistics are printed in readable form")
  func descriptions() async throws {
    let cache: DiskCache<String, String> = try scene.cache {
      $0.memory = MemoryConfiguration(countLimit: 10)
      $0.memory?.respondsToMemoryPressure = false
    }
    try await cache.setValue("v", forKey: "key")
    #expect(try await cache.value(forKey: "loaded") { "w" } == "w")
    #expect(try cache.value(forKey: "key") == "v")
    #expect(try cache.value(forKey: "none") == nil)
    cache[""] = "x"
    #expect("\(cache)" == "DiskCache cache at \(scene.path)")
    let statistics = try cache.statistics()
    let lines = "\(statistics)".split(separator: "\n")
    try #require(lines.count == 6)
    #expect(lines[0].hasPrefix("2 entries, \(statistics.liveByteCount) B live, "))
    #expect(lines[0].hasSuffix(" KiB on disk"))
    #expect(
      lines[1].hasPrefix(
        "\(statistics.hitCount) hit (") && lines[1].contains(" % of reads), 2 misses, "))
    #expect(lines[1].hasSuffix("2 insertions, 0 removed, 0 expired, 0 evicted"))
    #expect(lines[2] == "1 failed by subscript")
    #expect(lines[3].hasPrefix("memory: 2 entries, cost "))
    #expect(lines[4].hasPrefix("memory: 1 hit "))
    #expect(lines[5] == "1 load")
    let memory = MemoryCache<String, String>(
      configuration: MemoryConfiguration(countLimit: 10))
    memory.setValue("v", forKey: "key", options: .cost(1234))
    #expect("\(memory)" == "MemoryCache with 1 entry, cost 1,234")
  }

  @Test("Bytes are read in place, and written to a file")
  func inPlace() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("value", forKey: "key")
    let bytes = try cache.withValue(forKey: "key") { bytes -> [UInt8] in
      // Held while the key, and everything else, is removed.
      try cache.removeAll()
      return [UInt8](copying: bytes)
    }
    #expect(bytes == Array("value".utf8))
    #expect(try cache.withValue(forKey: "key") { _ in } == nil)
    struct Stop: Error {}
    try cache.setValue("value", forKey: "key")
    #expect(throws: Stop.self) { try cache.withValue(forKey: "key") { _ in throw Stop() } }
    #expect(throws: StoreError.closed(path: "mine")) {
      try cache.withValue(forKey: "key") { _ in throw StoreError.closed(path: "mine") }
    }

    let path = scene("out")
    try Data("before".utf8).write(to: URL(filePath: path))
    #expect(try !cache.exportValue(forKey: "other", to: path))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "before")
    #expect(try cache.exportValue(forKey: "key", to: path))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "value")
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    for bad in [scene("missing/out"), scene.directory, "/", ""] {
      #expect(throws: StoreError.self) { try cache.exportValue(forKey: "key", to: bad) }
    }
    #expect(try scene.names() == ["cache", "out"])
  }

  @Test(
    "The next export removes the leftover of a dead process's export there, and nothing else"
  )
  func leftovers() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("value", forKey: "key")
    try FileManager.default.createDirectory(
      atPath: scene("to"), withIntermediateDirectories: false)
    let stem = ".cairn-export-0123456789ab"
    let ours = [stem + "a", ".cairn-export-3w5e11264sgsf"]
    let kept = [
      // Names that somebody else may have chosen.
      ".cairn-", ".cairn-0", ".cairn-3w5e11264sgsf", ".cairn-encoded", ".cairn-export",
      ".cairn-export-",
      ".cairn-export-notes", stem, stem + "ab", stem + "A", stem + ".", "other", "x" + stem + "a",
      // Names like those of an export, on files that are not leftovers.
      stem + "d", stem + "l", stem + "m", stem + "t",
    ].sorted()
    func make(_ name: String, mode: Int = 0o600) throws {
      try Data("x".utf8).write(to: URL(filePath: scene("to/" + name)))
      try FileManager.default.setAttributes(
        [.posixPermissions: mode], ofItemAtPath: scene("to/" + name))
    }
    for name in kept + ours where name != stem + "d" && name != stem + "l" {
      try make(name, mode: name == stem + "m" ? 0o640 : 0o600)
    }
    try FileManager.default.createDirectory(
      atPath: scene("to/\(stem)d"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: scene("to/\(stem)l"), withDestinationPath: scene("to/other"))
    try FileManager.default.linkItem(atPath: scene("to/\(stem)t"), toPath: scene("two"))
    // This file is in use.
    let busyName = stem + "b"
    try make(busyName)
    let directory = try Directory(readingOnly: scene("to"), fileSystem: SystemFileSystem())
    let busy = try #require(try directory.openFile(busyName, mode: .readOnly))
    #expect(try busy.lock(exclusively: true))
    func names() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: scene("to")).sorted()
    }
    #expect(try cache.exportValue(forKey: "key", to: scene("to/out")))
    #expect(try names() == (kept + [busyName, "out"]).sorted())
    // Not every export has to look for leftovers.
    try make(stem + "a")
    #expect(try cache.exportValue(forKey: "key", to: scene("to/out")))
    #expect(try names() == (kept + [busyName, stem + "a", "out"]).sorted())
  }

  @Test("A backup is an independent cache")
  func backup() throws {
    let cache: DiskCache<Int, String> = try scene.cache()
    for number in 0..<50 { try cache.setValue("value", forKey: number) }
    try cache.removeValues(forKeys: 0..<10)
    #expect(try cache.backup(to: scene("copy")).entryCount == 40)
    try cache.compact()
    try cache.sync()
    let copy: DiskCache<Int, String> = try scene.cache(at: scene("copy"))
    #expect(try copy.keys().sorted() == Array(10..<50))
    #expect(try cache.statistics()["deadBytes"] == 0)
  }

  @Test("Many values are set as one batch, or none of them")
  func batch() throws {
    let cache: DiskCache<String, [UInt8]> = try scene.cache { $0.store.batchByteLimit = 10_000 }
    try cache.setValues([(key: "a", value: [1]), (key: "b", value: [2]), (key: "a", value: [3])])
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == [[3], [2], nil])
    let large = [UInt8](repeating: 0, count: 4000)
    let error = #expect(throws: StoreError.self) {
      try cache.setValues([
        (key: "x", value: large), (key: "y", value: large), (key: "z", value: large),
      ])
    }
    guard case .tooLarge("batch", _, _) = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    #expect(throws: StoreError.self) {
      try cache.setValues([(key: "x", value: [1]), (key: "", value: [2])])
    }
    #expect(try cache.keys().sorted() == ["a", "b"])
    try cache.setValues([(key: "t", value: [1])], options: .lifetime(.seconds(1)))
    scene.clock.advance(by: .seconds(2))
    #expect(try !cache.contains("t"))
    #expect(try cache.removeValues(forKeys: ["a", "t", "b", "a"]) == 2)
  }

  @Test("If several take a value, one gets it, and never one that was rewritten meanwhile")
  func taking() throws {
    let reference = Lock<DiskCache<String, String>?>(nil)
    let coder = ValueCoder<String>.custom(
      encode: { Array($0.utf8) },
      decode: { bytes in
        let text = String(decoding: [UInt8](copying: bytes), as: UTF8.self)
        if text == "old" { try reference.withLock { $0 }?.setValue("new", forKey: "key") }
        return text
      })
    let cache = try scene.cache(keys: KeyCoder<String>.string, values: coder)
    reference.withLock { $0 = cache }
    defer { reference.withLock { $0 = nil } }
    try cache.setValue("old", forKey: "key")
    #expect(try cache.takeValue(forKey: "key") == "new")
    #expect(try !cache.contains("key"))
    let taken = Record<String>()
    for round in 0..<50 {
      try cache.setValue("\(round)", forKey: "key")
      onThreads(4) { _ in
        if let value = try? cache.takeValue(forKey: "key") { taken.add(value) }
      }
    }
    #expect(taken.all.sorted() == (0..<50).map { "\($0)" }.sorted())
  }

  @Test("An iteration sees one moment, may write, and can be stopped")
  func iterating() throws {
    struct Stop: Error {}
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<100 { try cache.setValue(number, forKey: number) }
    var seen: [Int] = []
    let skipped = try cache.forEachEntry { entry in
      seen.append(entry.value)
      try cache.removeValue(forKey: (entry.key + 50) % 100)
      try cache.setValue(-1, forKey: 1000 + entry.key)
      return .next
    }
    #expect(skipped == 0)
    #expect(seen.sorted() == Array(0..<100))
    #expect(try cache.keys().sorted() == Array(1000..<1100))
    var count = 0
    try cache.forEachKey { _ in
      count += 1
      return count == 7 ? .stop : .next
    }
    #expect(count == 7)
    #expect(throws: Stop.self) { try cache.forEachKey { _ in throw Stop() } }
    #expect(throws: StoreError.cancelled) {
      try cache.forEachEntry { _ in throw StoreError.cancelled }
    }
  }

  @Test("Generic code works with a cache on disk as with one in memory")
  func generic() throws {
    func use<Cache: ContractCache<String, Int>>(_ cache: Cache) throws -> [Int?] {
      try cache.setValue(1, forKey: "a", options: .standard)
      try cache.setValue(
        2, forKey: "b", options: EntryOptions(cost: 5, lifetime: .standard, idleLimit: nil))
      try cache.setValues([(key: "c", value: 3), (key: "d", value: 4)])
      try cache.removeValue(forKey: "a")
      try cache.trim(.toCount(2))
      return try cache.values(forKeys: ["a", "b", "c", "d"])
    }
    let disk: DiskCache<String, Int> = try scene.cache()
    #expect(try use(disk) == [nil, nil, 3, 4])
    #expect(
      try use(MemoryCache<String, Int>(configuration: .init())) == [nil, nil, 3, 4])
  }
}
