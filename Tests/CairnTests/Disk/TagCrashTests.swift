import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// A removal by tag and its sweep on a simulated disk: wherever the process dies or the power
/// fails.
@Suite("Entries with tags, on a failing disk", .timeLimit(.minutes(30)))
struct TagCrashTests {
  private static let path = "/cache"

  private final class Opener {
    let fileSystem: SimulatedFileSystem
    private let queue = ManualBackgroundQueue()

    init(_ disk: SimulatedDisk, seed: UInt64) {
      fileSystem = SimulatedFileSystem(disk: disk, seed: seed)
    }

    func open(_ durability: Durability, memory: Bool) throws -> DiskCache<Int, String> {
      var configuration = DiskCacheConfiguration()
      configuration.store = .simulated(ManualClock())
      configuration.store.durability = durability
      if memory { configuration.memory = .init() }
      return try DiskCache(
        path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        environment: Environment(
          fileSystem: fileSystem, background: queue, maintenance: queue, pause: { _ in }))
    }

    func end() {
      fileSystem.intervene = nil
      fileSystem.kill()
      queue.discardAll()
    }
  }

  enum End: CaseIterable {
    case death, powerCut
  }

  /// What is known to have happened at the end.
  private struct Progress {
    var isRemoved = false
    var isRewritten = false
    var isRemovingAgain = false
    var isRemovedAgain = false
  }

  @Test(
    "What a removal has hidden is not found afterwards, and what came later is",
    arguments: End.allCases, [false, true])
  func end(_ end: End, memory: Bool) throws {
    // A power cut takes back writes whose sync was not awaited.
    let durability: Durability = end == .powerCut ? .durable : .process
    var random = FuzzRandom(seed: TestSeed.current)
    let base = SimulatedDisk()
    do {
      let opener = Opener(base, seed: 1)
      let cache = try opener.open(durability, memory: memory)
      try cache.setValues((0..<20).map { (key: $0, value: "old") }, options: .tags(["x"]))
      try cache.setValues((20..<40).map { (key: $0, value: "kept") }, options: .tags(["y"]))
      try cache.close()
      opener.end()
    }
    var step = 1
    var isThrough = false
    while !isThrough {
      var disk = base.settled()
      let opener = Opener(disk, seed: random.next())
      let fileSystem = opener.fileSystem
      fileSystem.intervene = { [unowned fileSystem] _ in
        fileSystem.callCount == step ? .die : nil
      }
      var progress = Progress()
      /// Actions of a dead process do not count: a write into a mapping does not tell the process
      /// that it is dead.
      func live() throws { if fileSystem.isDead { throw StoreError.cancelled } }
      do {
        let cache = try opener.open(durability, memory: memory)
        for key in 0..<40 { _ = try cache.value(forKey: key) }
        try cache.removeAll(tagged: "x")
        try live()
        progress.isRemoved = true
        try cache.setValue("new", forKey: 0, options: .tags(["x"]))
        try cache.setValue("new", forKey: 100, options: .tags(["x", "y"]))
        try live()
        progress.isRewritten = true
        try cache.maintain()
        try cache.compact()
        progress.isRemovingAgain = true
        try cache.removeAll(tagged: "x")
        try live()
        progress.isRemovedAgain = true
        try cache.maintain()
        try live()
        isThrough = fileSystem.callCount < step
      } catch {}
      opener.end()
      if end == .powerCut {
        var cut = RandomCut(random)
        disk = disk.afterPowerCut(&cut)
        random = FuzzRandom(seed: random.next())
      }
      let next = Opener(disk, seed: random.next())
      let cache = try next.open(durability, memory: memory)
      for isSwept in [false, true] {
        if isSwept { try cache.maintain() }
        try check(cache, progress, "\(end) at call \(step), swept: \(isSwept)")
      }
      #expect(try cache.count() == cache.keys().count)
      try cache.close()
      next.end()
      step += 1
    }
    #expect(step > 20)
  }

  private func check(
    _ cache: DiskCache<Int, String>, _ progress: Progress, _ comment: Comment
  ) throws {
    let keys = Set(try cache.keys())
    #expect(keys.isSuperset(of: 20..<40), comment)
    for key in 1..<20 {
      let value = try cache.value(forKey: key)
      #expect(value == nil || value == "old" && !progress.isRemoved, comment)
      #expect(keys.contains(key) == (value != nil), comment)
    }
    for key in [0, 100] {
      let value = try cache.value(forKey: key)
      #expect(value != "old" || !progress.isRemoved, comment)
      if progress.isRemovedAgain {
        #expect(value == nil, comment)
      } else if progress.isRewritten {
        #expect(value == "new" || value == nil && progress.isRemovingAgain, comment)
      }
    }
    // A removal hides all or nothing.
    let old = try (1..<20).filter { try cache.contains($0) }.count
    #expect(old == 0 || old == 19, comment)
  }
}
