import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("A corrupt store under a cache")
struct DiskQuarantineTests {
  let scene = DiskScene()

  /// A cache of some entries whose manifest is damaged.
  private func makeCorrupt() throws {
    let cache: DiskCache<Int, String> = try scene.cache()
    for number in 0..<20 { try cache.setValue("value \(number)", forKey: number) }
    try cache.close()
    try damage(scene.path + "/MANIFEST", at: 20)
  }

  private func contents() throws -> [String: Data] {
    try CairnTests.contents(ofDirectory: scene.path)
  }

  private func open(
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(CacheError) -> DiskCache<Int, String> {
    try scene.cache {
      $0.corruptStorePolicy = .quarantine
      change(&$0)
    }
  }

  @Test("It is left as it is unless something else was asked for")
  func refused() throws {
    try makeCorrupt()
    let before = try contents()
    let error = #expect(throws: CacheError.self) {
      let _: DiskCache<Int, String> = try scene.cache()
    }
    guard case .store(.corrupt) = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    #expect(try contents() == before)
    #expect(try scene.names() == ["cache"])
  }

  @Test("It is set aside as it was, and what is sound is in its place")
  func recovered() throws {
    try makeCorrupt()
    let before = try contents()
    let log = Record<String>()
    do {
      let cache = try open { $0.store.log = { log.add($0) } }
      #expect(try cache.keys().sorted() == Array(0..<20))
      #expect(try cache.value(forKey: 7) == "value 7")
      #expect(cache.salvageReport?.entryCount == 20)
      #expect(cache.salvageReport?.manifest == .damaged)
      try cache.setValue("new", forKey: 100)
      try cache.close()
    }
    let names = try scene.names("cache.quarantine-")
    #expect(names.count == 1)
    for (name, bytes) in before {
      let path = scene(try #require(names.first)) + "/" + name
      #expect(try CairnTests.bytes(ofFile: path) == bytes, "\(name)")
    }
    #expect(log.all.contains { $0.contains("20 entries were salvaged") && $0.contains(names[0]) })
    let cache = try open()
    #expect(cache.salvageReport == nil)
    #expect(try cache.count() == 21)
    #expect(try scene.names("cache.quarantine-") == names)
  }

  @Test("A second opener meanwhile finds it locked, and loses nothing of the first")
  func race() throws {
    try makeCorrupt()
    let attempts = Record<String>()
    let cache = try open {
      $0.store.log = { [scene] message in
        guard message.contains("what is sound is copied") else { return }
        do {
          let other: DiskCache<Int, String> = try scene.cache {
            $0.corruptStorePolicy = .quarantine
          }
          try other.setValue("acknowledged", forKey: 200)
          try other.close()
          attempts.add("opened")
        } catch {
          attempts.add("\(error)")
        }
      }
    }
    #expect(attempts.all == ["\(scene.path): the store is open in this process already"])
    #expect(try cache.count() == 20)
    #expect(try scene.names("cache.quarantine-").count == 1)
  }

  @Test("Of many openers at once none loses what another has written")
  func manyOpeners() throws {
    try makeCorrupt()
    let written = Record<Int>()
    let scene = scene
    onThreads(4) { thread in
      for round in 0..<20 {
        guard
          let cache: DiskCache<Int, String> = try? scene.cache({
            $0.corruptStorePolicy = .quarantine
          })
        else { continue }
        let key = 1000 + thread * 100 + round
        if (try? cache.setValue("w", forKey: key)) != nil { written.add(key) }
        try? cache.close()
      }
    }
    let cache = try open()
    #expect(try Set(cache.keys()) == Set(0..<20).union(written.all))
    #expect(try scene.names("cache.quarantine-").count == 1)
  }

  @Test("What an attempt has left that was not finished is used again; what was finished stays")
  func leftovers() throws {
    try makeCorrupt()
    for name in ["cache.quarantine-1", "cache.quarantine-2", "cache.quarantine-3"] {
      try FileManager.default.createDirectory(
        atPath: scene(name), withIntermediateDirectories: false)
    }
    try Data().write(to: URL(filePath: scene("cache.quarantine-2/UNFINISHED-COPY")))
    try Data([1]).write(to: URL(filePath: scene("cache.quarantine-2/seg-0000000000000001")))
    try Data([1]).write(to: URL(filePath: scene("cache.quarantine-3/MANIFEST")))
    try FileManager.default.removeItem(atPath: scene("cache.quarantine-1"))
    let cache = try open()
    #expect(try cache.count() == 20)
    #expect(try scene.names() == ["cache", "cache.quarantine-2", "cache.quarantine-3"])
    #expect(try Data(contentsOf: URL(filePath: scene("cache.quarantine-3/MANIFEST"))) == Data([1]))
  }

  @Test("Directories beside it that only look like an attempt's are left alone, with all they hold")
  func lookalikes() throws {
    try makeCorrupt()
    // Another cache's, somebody's copy that holds more, and one that is being written.
    for (name, file) in [
      ("cache.quarantine-old", "seg-0000000000000001"), ("cache.quarantine-5", "notes.txt"),
      ("cache.quarantine-6", "seg-0000000000000001"),
    ] {
      try FileManager.default.createDirectory(
        atPath: scene(name), withIntermediateDirectories: false)
      for file in [file, "UNFINISHED-COPY", "LOCK"] {
        try Data([1]).write(to: URL(filePath: scene("\(name)/\(file)")))
      }
    }
    let held = try Directory(
      path: scene("cache.quarantine-6"), fileSystem: SystemFileSystem(), readOnly: false)
    let lock = try #require(try held.openFile(FileName.lock, mode: .readOnly))
    #expect(try lock.lock(exclusively: true))
    #expect(try open().count() == 20)
    for (name, file) in [
      ("cache.quarantine-old", "seg-0000000000000001"), ("cache.quarantine-5", "notes.txt"),
      ("cache.quarantine-6", "seg-0000000000000001"),
    ] {
      #expect(try Data(contentsOf: URL(filePath: scene("\(name)/\(file)"))) == Data([1]))
    }
  }

  @Test("A path that is a link, and a store with a directory in it, are left as they are")
  func leftAlone() throws {
    try makeCorrupt()
    try FileManager.default.createDirectory(
      atPath: scene.path + "/pages", withIntermediateDirectories: false)
    let before = try scene.names()
    #expect(throws: CacheError.self) { try open() }
    #expect(try scene.names() == before)
    try FileManager.default.removeItem(atPath: scene.path + "/pages")
    try FileManager.default.moveItem(atPath: scene.path, toPath: scene("real"))
    try FileManager.default.createSymbolicLink(
      atPath: scene.path, withDestinationPath: scene("real"))
    #expect(throws: CacheError.self) { try open() }
    #expect(try scene.names().sorted() == ["cache", "real"])
  }

  @Test("Other failures of an open change nothing, whatever the policy")
  func otherFailures() throws {
    try FileManager.default.createDirectory(
      atPath: scene.path, withIntermediateDirectories: false)
    try Data([1, 2, 3]).write(to: URL(filePath: scene.path + "/holiday.jpg"))
    let before = try contents()
    #expect(throws: CacheError.self) { try open() }
    #expect(try contents() == before)
    #expect(try scene.names() == ["cache"])
  }
}

/// The same on a simulated disk: whatever call fails, wherever the process dies or the power goes.
@Suite("A corrupt store under a cache, on a disk that fails")
struct DiskQuarantineCrashTests {
  private static let path = "/cache"

  /// A process that may have the cache open.
  private final class Opener {
    let fileSystem: SimulatedFileSystem
    private let queue = ManualBackgroundQueue()

    init(_ disk: SimulatedDisk, seed: UInt64 = 1) {
      fileSystem = SimulatedFileSystem(disk: disk, seed: seed)
    }

    var environment: Environment { Environment(fileSystem: fileSystem, background: queue) }

    func open() throws(CacheError) -> DiskCache<Int, String> {
      var configuration = DiskCacheConfiguration.unlimited
      configuration.store = .simulated(ManualClock())
      configuration.corruptStorePolicy = .quarantine
      return try DiskCache(
        path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        environment: environment)
    }

    /// Ends the process, and forgets the jobs that hold what it had open.
    func end() {
      fileSystem.intervene = nil
      fileSystem.kill()
      queue.discardAll()
    }
  }

  /// A disk with a corrupt store of ten entries on it.
  private static func makeDisk() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let opener = Opener(disk)
    let cache = try opener.open()
    for number in 0..<10 { try cache.setValue("value \(number)", forKey: number) }
    try cache.close()
    opener.end()
    let settled = disk.settled()
    var manifest = try #require(settled.contents(of: "\(path)/MANIFEST"))
    manifest[20] ^= 1
    settled.setContents(manifest, of: "\(path)/MANIFEST")
    return settled
  }

  enum Trouble: CaseIterable {
    case fullDisk, inputOutput, death, powerCut
  }

  @Test("Nothing is lost", arguments: Trouble.allCases)
  func trouble(_ trouble: Trouble) throws {
    var random = FuzzRandom(seed: TestSeed.current)
    let base = try Self.makeDisk()
    let damaged = try #require(base.contents(of: "\(Self.path)/MANIFEST"))
    var step = 1
    var isThrough = false
    while !isThrough {
      var disk = base.settled()
      let opener = Opener(disk, seed: random.next())
      let fileSystem = opener.fileSystem
      fileSystem.intervene = { [unowned fileSystem] _ in
        guard fileSystem.callCount == step else { return nil }
        switch trouble {
        case .fullDisk: return .fail(SystemError.noSpace)
        case .inputOutput: return .fail(SystemError.inputOutput)
        case .death, .powerCut: return .die
        }
      }
      var isWritten = false
      do {
        let cache = try opener.open()
        try cache.setValue("acknowledged", forKey: 100, durability: .durable)
        isWritten = true
        // Also where the call that fails comes later.
        isThrough = fileSystem.callCount < step
      } catch {}
      opener.end()
      if trouble == .powerCut || step % 2 == 0 {
        var cut = RandomCut(random)
        disk = disk.afterPowerCut(&cut)
        random = FuzzRandom(seed: random.next())
      }
      let next = Opener(disk, seed: random.next())
      let cache = try next.open()
      let keys = Set(try cache.keys())
      // What could not be read at that time is left out, and is where the rest of the old store is.
      if trouble != .inputOutput {
        #expect(keys.isSuperset(of: 0..<10), "\(trouble) at call \(step)")
        #expect(try cache.value(forKey: 3) == "value 3")
      }
      #expect(keys.contains(100) || !isWritten, "\(trouble) at call \(step)")
      try cache.close()
      let quarantined = disk.names(at: "/").filter {
        disk.contents(of: "/\($0)/MANIFEST") == damaged
      }
      #expect(quarantined.count == 1, "\(trouble) at call \(step): \(disk.names(at: "/"))")
      #expect(quarantined.first?.hasPrefix("cache.quarantine-") == true)
      let salvaged = try Store.salvage(
        path: "/\(quarantined.first ?? "none")", to: "/salvaged",
        environment: next.environment)
      #expect(salvaged.entryCount == 10, "\(trouble) at call \(step)")
      next.end()
      step += 1
    }
    #expect(step > 50)
  }

  @Test(
    "Of two openers that find it corrupt at the same moment one sets it aside, and nothing is lost")
  func interleaved() throws {
    let disk = try Self.makeDisk()
    let opener = Opener(disk)
    let first = opener.fileSystem
    var written: Set<Int> = []
    /// Another process, which may or may not get to open it.
    func openElsewhere(_ key: Int) {
      let second = Opener(disk, seed: 2)
      do {
        let cache = try second.open()
        try cache.setValue("acknowledged", forKey: key)
        written.insert(key)
        try cache.close()
      } catch {}
      second.end()
    }
    var lockCount = 0
    first.intervene = { [unowned first] call in
      if call == .lock, first.currentPath == "\(Self.path)/LOCK" {
        lockCount += 1
        // The first two are those of opening it in vain.
        if lockCount == 3 { openElsewhere(100) }
      }
      if call == .exchange, first.currentPath == "\(Self.path)" { openElsewhere(200) }
      return nil
    }
    if let cache = try? opener.open() { try cache.close() }
    #expect(lockCount >= 3)
    opener.end()
    let last = Opener(disk, seed: 3)
    let cache = try last.open()
    #expect(try Set(cache.keys()) == Set(0..<10).union(written))
    #expect(disk.names(at: "/").filter { $0.hasPrefix("cache.quarantine-") }.count == 1)
    try cache.close()
    last.end()
  }

  /// What another process writes after the exchange and before, or without, the sync of it is not lost.
  @Test(
    "Who writes to the copy in its place does not lose it in a power cut", arguments: [true, false])
  func writtenBeforeSync(besideIt: Bool) throws {
    var writtenCount = 0
    for seed in 0..<40 as Range<UInt64> {
      let disk = try Self.makeDisk()
      let opener = Opener(disk)
      var isExchanged = false
      func write() throws -> Bool {
        let second = Opener(disk, seed: 2)
        defer { second.end() }
        guard let cache = try? second.open() else { return false }
        try cache.setValue("acknowledged", forKey: 100, durability: .durable)
        return true
      }
      var isWritten = false
      opener.fileSystem.intervene = { [unowned fileSystem = opener.fileSystem] call in
        if call == .exchange && fileSystem.currentPath == Self.path { isExchanged = true }
        guard isExchanged, call == .synchronize else { return nil }
        if besideIt { isWritten = (try? write()) ?? false }
        return .die
      }
      #expect(throws: (any Error).self) { try opener.open() }
      opener.end()
      if !besideIt { isWritten = try write() }
      if isWritten { writtenCount += 1 }
      var cut = RandomCut(FuzzRandom(seed: seed))
      let last = Opener(disk.afterPowerCut(&cut), seed: 3)
      let cache = try last.open()
      #expect(try cache.value(forKey: 100) == "acknowledged" || !isWritten, "cut \(seed)")
      #expect(try cache.value(forKey: 3) == "value 3")
      try cache.close()
      last.end()
    }
    // Beside it nobody gets in.
    #expect(writtenCount == (besideIt ? 0 : 40))
  }

  @Test("Attempts in vain leave no more than one empty directory")
  func exchangeFails() throws {
    let disk = try Self.makeDisk()
    for seed in 0..<3 as Range<UInt64> {
      let opener = Opener(disk, seed: seed)
      opener.fileSystem.intervene = { call in
        call == .exchange ? .fail(SystemError.inputOutput) : nil
      }
      #expect(throws: CacheError.self) { try opener.open() }
      opener.end()
    }
    let others = disk.names(at: "/").filter { $0 != "cache" }
    #expect(others.count == 1)
    #expect(disk.names(at: "/\(others.first ?? "")").isEmpty)
  }

  @Test("Where names cannot be exchanged, opening says so and leaves everything as it was")
  func noExchange() throws {
    let disk = try Self.makeDisk()
    disk.exchanges = false
    let names = disk.names(at: Self.path)
    let contents = names.map { disk.contents(of: "\(Self.path)/\($0)") }
    for _ in 0..<2 {
      let opener = Opener(disk)
      let error = #expect(throws: CacheError.self) { try opener.open() }
      guard case .store(.unsupportedFileSystem) = error else {
        return #expect(Bool(false), "it was \(error.debugDescription)")
      }
      opener.end()
      #expect(disk.names(at: Self.path) == names)
      #expect(names.map { disk.contents(of: "\(Self.path)/\($0)") } == contents)
      // One empty directory is left, which the next attempt uses.
      #expect(disk.names(at: "/").count == 2)
    }
  }
}
