import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// A salvaged cache in which a removal by tag may be lost: on a disk whose process dies at any
/// call.
@Suite("Entries with tags, after a salvage", .timeLimit(.minutes(10)))
struct TagSalvageTests {
  private static let path = "/cache"

  /// What is damaged besides the manifest.
  enum Damage: CaseIterable {
    case nothing, marks
  }

  private final class Opener {
    let fileSystem: SimulatedFileSystem
    private let queue = ManualBackgroundQueue()

    init(_ disk: SimulatedDisk, seed: UInt64) {
      fileSystem = SimulatedFileSystem(disk: disk, seed: seed)
    }

    func open() throws -> DiskCache<Int, String> {
      var configuration = DiskCacheConfiguration.unlimited
      configuration.store = .simulated(ManualClock())
      configuration.corruptStorePolicy = .quarantine
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

  /// A disk with a damaged cache on it. A tag was removed in it, and nothing was swept.
  private func makeDisk(_ damage: Damage) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let opener = Opener(disk, seed: 1)
    let cache = try opener.open()
    try cache.setValues((0..<5).map { (key: $0, value: "old") }, options: .tags(["x"]))
    try cache.setValues((5..<10).map { (key: $0, value: "kept") })
    try cache.removeAll(tagged: "x")
    try cache.close()
    opener.end()
    let settled = disk.settled()
    var manifest = try #require(settled.contents(of: "\(Self.path)/MANIFEST"))
    manifest[20] ^= 1
    settled.setContents(manifest, of: "\(Self.path)/MANIFEST")
    if damage == .nothing { return settled }
    var damagedCount = 0
    for name in settled.names(at: Self.path) where name.hasPrefix("seg-") {
      var bytes = try #require(settled.contents(of: "\(Self.path)/\(name)"))
      guard let range = bytes.firstRange(of: ReservedKey.marks) else { continue }
      // The key itself, so that nothing shows what was lost.
      bytes[range.lowerBound + 3] ^= 1
      settled.setContents(bytes, of: "\(Self.path)/\(name)")
      damagedCount += 1
    }
    #expect(damagedCount == 1)
    return settled
  }

  @Test(
    "Entries that had tags are not found, wherever the process dies", arguments: Damage.allCases)
  func death(_ damage: Damage) throws {
    var random = FuzzRandom(seed: TestSeed.current)
    let base = try makeDisk(damage)
    var step = 1
    var isThrough = false
    while !isThrough {
      let disk = base.settled()
      let opener = Opener(disk, seed: random.next())
      let fileSystem = opener.fileSystem
      fileSystem.intervene = { [unowned fileSystem] _ in
        fileSystem.callCount == step ? .die : nil
      }
      do {
        let cache = try opener.open()
        isThrough = fileSystem.callCount < step
        if isThrough { #expect(cache.salvageReport?.isComplete == false) }
      } catch {}
      opener.end()
      let next = Opener(disk, seed: random.next())
      let cache = try next.open()
      try cache.setValue("new", forKey: 0, options: .tags(["x"]))
      for isSwept in [false, true] {
        if isSwept { try cache.maintain() }
        #expect(try cache.keys().sorted() == [0] + Array(5..<10), "call \(step)")
        #expect(try cache.value(forKey: 0) == "new")
        #expect(try cache.value(forKey: 3) == nil)
      }
      #expect(try cache.count() == 6)
      try cache.close()
      next.end()
      step += 1
    }
    #expect(step > 50)
  }
}
