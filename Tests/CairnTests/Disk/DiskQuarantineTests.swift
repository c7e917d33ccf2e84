import Cairn
import CairnRepair
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
  ) throws(StoreError) -> DiskCache<Int, String> {
    try scene.cache {
      $0.quarantinesCorruptStores = true
      change(&$0)
    }
  }

  @Test("A corrupt store is left unchanged unless the policy is to move it aside")
  func refused() throws {
    try makeCorrupt()
    let before = try contents()
    let error = #expect(throws: StoreError.self) {
      let _: DiskCache<Int, String> = try scene.cache()
    }
    guard case .corrupt = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    #expect(try contents() == before)
    #expect(try scene.names() == ["cache"])
  }

  @Test("The store is moved aside unchanged, and an empty one takes its place; salvage copies it")
  func movedAside() throws {
    try makeCorrupt()
    let before = try contents()
    let log = Record<String>()
    do {
      let cache = try open { $0.store.log = DiagnosticLog { log.add("\($0)") } }
      #expect(try cache.count() == 0)
      let path = try #require(cache.quarantinePath)
      #expect(try CairnTests.contents(ofDirectory: path) == before)
      #expect(log.all.count { $0.contains("was moved to \(path)") } == 1)
      let report = try Store.salvage(path: path, to: scene("salvaged"))
      #expect(report.entryCount == 20 && report.manifest == .damaged)
      try cache.setValue("new", forKey: 100)
      try cache.close()
    }
    let cache = try open()
    #expect(cache.quarantinePath == nil)
    #expect(try cache.keys() == [100])
    #expect(try scene.names("cache.quarantine-").count == 1)
  }

  @Test("Each corrupt store gets a name of its own")
  func twice() throws {
    for count in 1...3 {
      try makeCorrupt()
      try open().close()
      #expect(try scene.names("cache.quarantine-").count == count)
      try FileManager.default.removeItem(atPath: scene.path)
    }
  }

  @Test("A second opener meanwhile finds the store locked, and loses nothing of the first")
  func race() throws {
    try makeCorrupt()
    let attempts = Record<String>()
    let cache = try open {
      $0.store.log = DiagnosticLog { [scene] message in
        guard message.text.contains("was moved to") else { return }
        // The path has an empty directory, and its opener has not created the store yet.
        do {
          let other: DiskCache<Int, String> = try scene.cache {
            $0.quarantinesCorruptStores = true
          }
          try other.setValue("acknowledged", forKey: 200)
          try other.close()
          attempts.add("opened")
        } catch {
          attempts.add("\(error)")
        }
      }
    }
    #expect(attempts.all == ["opened"])
    #expect(try cache.keys() == [200])
    #expect(try scene.names("cache.quarantine-").count == 1)
  }

  @Test("If many open at once, none loses what another has written")
  func manyOpeners() throws {
    try makeCorrupt()
    let written = Record<Int>()
    let scene = scene
    onThreads(4) { thread in
      for round in 0..<20 {
        guard
          let cache: DiskCache<Int, String> = try? scene.cache({
            $0.quarantinesCorruptStores = true
          })
        else { continue }
        let key = 1000 + thread * 100 + round
        if (try? cache.setValue("w", forKey: key)) != nil { written.add(key) }
        try? cache.close()
      }
    }
    let cache = try open()
    #expect(try Set(cache.keys()) == Set(written.all))
    #expect(try scene.names("cache.quarantine-").count == 1)
  }

  @Test("A path that is a link is left unchanged; directories in a store move with it")
  func links() throws {
    try makeCorrupt()
    try FileManager.default.createDirectory(
      atPath: scene.path + "/pages", withIntermediateDirectories: false)
    try FileManager.default.moveItem(atPath: scene.path, toPath: scene("real"))
    try FileManager.default.createSymbolicLink(
      atPath: scene.path, withDestinationPath: scene("real"))
    let log = Record<String>()
    let error = #expect(throws: StoreError.self) {
      try open { $0.store.log = DiagnosticLog { log.add("\($0)") } }
    }
    guard case .corrupt = error else {
      return #expect(Bool(false), "it was \(error.debugDescription)")
    }
    #expect(try scene.names().sorted() == ["cache", "real"])
    #expect(log.all.count { $0.contains("cannot be moved aside") } == 1)
    try FileManager.default.removeItem(atPath: scene.path)
    try FileManager.default.moveItem(atPath: scene("real"), toPath: scene.path)
    let path = try #require(try open().quarantinePath)
    #expect(FileManager.default.fileExists(atPath: path + "/pages"))
  }

  @Test("Other failures of an open change nothing, whatever the policy")
  func otherFailures() throws {
    try FileManager.default.createDirectory(
      atPath: scene.path, withIntermediateDirectories: false)
    try Data([1, 2, 3]).write(to: URL(filePath: scene.path + "/holiday.jpg"))
    let before = try contents()
    #expect(throws: StoreError.self) { try open() }
    #expect(try contents() == before)
    #expect(try scene.names() == ["cache"])
  }
}
