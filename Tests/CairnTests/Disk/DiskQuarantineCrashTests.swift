import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Like `DiskQuarantineTests`, on a simulated disk: whatever call fails, wherever the process dies
/// or the power fails.
@Suite("A corrupt store under a cache, on a failing disk")
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
      configuration.store.log = .none
      configuration.store = .simulated(ManualClock())
      configuration.corruptStorePolicy = .quarantine
      return try DiskCache(
        path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        environment: environment)
    }

    /// Ends the process, and drops the jobs that hold what it had open.
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
        // The write may succeed even if the failing call comes later.
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
      // Entries that were unreadable at that time are left out, and stay in the rest of the old
      // store.
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
    "If two openers find the store corrupt at once, one sets it aside, and nothing is lost")
  func interleaved() throws {
    let disk = try Self.makeDisk()
    let opener = Opener(disk)
    let first = opener.fileSystem
    var written: Set<Int> = []
    /// Another process, which may or may not be able to open the cache.
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
        // The first two locks are those of the failed open.
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

  /// What another process writes after the exchange, before or without its sync, is not lost.
  @Test(
    "A writer to the copy in its new place loses nothing in a power cut", arguments: [true, false])
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
    // No other opener gets in meanwhile.
    #expect(writtenCount == (besideIt ? 0 : 40))
  }

  @Test("Failed attempts leave no more than one empty directory")
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

  @Test("If names cannot be exchanged, opening says so and leaves everything unchanged")
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
