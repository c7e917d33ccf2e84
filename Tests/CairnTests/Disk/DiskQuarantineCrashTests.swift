import Cairn
import CairnRepair
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

    func open() throws(StoreError) -> DiskCache<Int, String> {
      var configuration = DiskCacheConfiguration()
      configuration.store.log = .silent
      configuration.store = .simulated(ManualClock())
      configuration.quarantinesCorruptStores = true
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
      let keys = try cache.keys()
      #expect(keys.isEmpty || keys == [100], "\(trouble) at call \(step)")
      #expect(keys == [100] || !isWritten, "\(trouble) at call \(step)")
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
      // Found corrupt, and not locked yet.
      if call == .lock, first.currentPath == Self.path {
        lockCount += 1
        openElsewhere(100)
      }
      if call == .exchange, first.currentPath == Self.path { openElsewhere(200) }
      return nil
    }
    if let cache = try? opener.open() { try cache.close() }
    #expect(lockCount == 1 && written.contains(100))
    opener.end()
    let last = Opener(disk, seed: 3)
    let cache = try last.open()
    #expect(try Set(cache.keys()) == written)
    #expect(disk.names(at: "/").filter { $0.hasPrefix("cache.quarantine-") }.count == 1)
    try cache.close()
    last.end()
  }

  /// What another process writes after the exchange, which no sync has put on disk yet.
  @Test("A write to the new store is not lost in a power cut, and neither is the corrupt store")
  func writtenAfterExchange() throws {
    for seed in 0..<40 as Range<UInt64> {
      let disk = try Self.makeDisk()
      let opener = Opener(disk)
      opener.fileSystem.intervene = { _ in
        let isExchanged = disk.contents(of: "\(Self.path)/MANIFEST") == nil
        return isExchanged ? .die : nil
      }
      #expect(throws: (any Error).self) { try opener.open() }
      opener.end()
      let second = Opener(disk, seed: 2)
      let cache = try second.open()
      try cache.setValue("acknowledged", forKey: 100, durability: .durable)
      second.end()
      var cut = RandomCut(FuzzRandom(seed: seed))
      let after = disk.afterPowerCut(&cut)
      let last = Opener(after, seed: 3)
      let found = try last.open()
      #expect(try found.value(forKey: 100) == "acknowledged", "cut \(seed)")
      #expect(after.names(at: "/").count == 2, "cut \(seed)")
      try found.close()
      last.end()
    }
  }

  @Test("If names cannot be exchanged, the store is renamed")
  func noExchange() throws {
    let disk = try Self.makeDisk()
    disk.exchanges = false
    let names = disk.names(at: Self.path)
    let contents = names.map { disk.contents(of: "\(Self.path)/\($0)") }
    let opener = Opener(disk)
    let cache = try opener.open()
    let path = try #require(cache.quarantinePath)
    #expect(disk.names(at: path) == names)
    #expect(names.map { disk.contents(of: "\(path)/\($0)") } == contents)
    #expect(try cache.count() == 0)
    try cache.close()
    opener.end()
  }

  @Test("If the store cannot be moved, the open says what is corrupt, and the store stays")
  func refused() throws {
    let disk = try Self.makeDisk()
    let names = disk.names(at: Self.path)
    let opener = Opener(disk)
    opener.fileSystem.intervene = { call in
      call == .exchange ? .fail(SystemError.inputOutput) : nil
    }
    let error = #expect(throws: StoreError.self) { try opener.open() }
    guard case .corrupt = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    opener.end()
    #expect(disk.names(at: Self.path) == names)
  }
}
