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

  @Test("A corrupt store is left unchanged unless salvage was requested")
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

  @Test("The store is set aside unchanged, and one with its sound entries takes its place")
  func recovered() throws {
    try makeCorrupt()
    let before = try contents()
    let log = Record<String>()
    do {
      let cache = try open { $0.store.log = DiagnosticLog { log.add("\($0)") } }
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

  @Test("A second opener meanwhile finds the store locked, and loses nothing of the first")
  func race() throws {
    try makeCorrupt()
    let attempts = Record<String>()
    let cache = try open {
      $0.store.log = DiagnosticLog { [scene] message in
        guard message.text.contains("its sound entries are copied") else { return }
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
    #expect(attempts.all == ["\(scene.path): the store is already open in this process"])
    #expect(try cache.count() == 20)
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

  @Test("The unfinished copy of an attempt is reused; a finished one stays")
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

  @Test(
    "Directories that only look like an attempt's are left alone, with all their contents"
  )
  func lookalikes() throws {
    try makeCorrupt()
    // Another cache's, a copy with more contents, and one that is being written.
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

  @Test("A path that is a link, and a store with a directory in it, are left unchanged")
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
