import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// Counts the reads, and fails those at some offsets.
private final class FailingReads: FileSystemDecorator {
  let base: any FileSystem = SystemFileSystem()
  /// A part of a file.
  struct Place: Hashable {
    let file: UInt
    let offset: Int
  }

  let failing = Lock<Set<Place>>([])
  let places = Lock<Set<Place>>([])
  let count = Atomic(0)

  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    count.add(1, ordering: .relaxed)
    var status = stat()
    unsafe fstat(descriptor, &status)
    let place = Place(file: status.st_ino, offset: offset)
    places.withLock { _ = $0.insert(place) }
    if failing.withLock({ $0.contains(place) }) {
      throw SystemError(call: "pread", errorNumber: SystemError.inputOutput)
    }
    return try unsafe base.read(descriptor, into: buffer, at: offset)
  }
}

/// What may happen between two steps of a removal by tag, of its sweep, of a read or of a write.
@Suite("Removals by tag, and what happens in between", .timeLimit(.minutes(30)))
struct TagRaceTests {
  private let scene = TieredScene()
  private static let x = Array("x".utf8)

  /// Runs the waiting background jobs.
  ///
  /// - Returns: whether the jobs finished.
  private func settle() -> Bool {
    for _ in 0..<1000 where !scene.disk.background.runFirst() { return true }
    return false
  }

  /// Writes a value to the disk, like a write that has not updated memory yet.
  private func setUntold(
    _ value: String, forKey key: String, _ cache: DiskCache<String, String>
  ) throws {
    let options = try cache.stored(.standard)
    var removals: [RemovalEvent] = []
    let (_, pending) = try value.withBytes { (value) throws(StoreError) in
      try key.withBytes { (key) throws(StoreError) in
        try cache.store.enter(
          value, forKey: key, options: options, durability: nil, removals: &removals)
      }
    }
    #expect(pending.replaced?.cause == .replaced)
    #expect(removals == [])
  }

  @Test("A mark hides nothing if a removal of everything removed it before its publication")
  func removalOfAllBesideMark() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    var table = TagTable()
    _ = try table.mark(Self.x, cache.store.lastVersion, mayMarkAll: false)
    let version = try cache.store.setValue(
      table.encoded, forKey: ReservedKey.marks, options: .ofMarks)
    try cache.removeAll()
    cache.marks.publish(table, version: version)
    #expect(!cache.marks.isActive)
    #expect(settle())
    #expect(try cache.count() == 0)
    try cache.setValue("2", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    #expect(try cache.value(forKey: "a") == nil)
    #expect(settle())
    #expect(!cache.marks.isActive)
  }

  @Test("A sweep ends if its record is gone or has changed")
  func recordElsewhere() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    try cache.store.removeValue(forKey: ReservedKey.marks)
    #expect(settle())
    #expect(!cache.marks.isActive)
    // Left by a write whose success was never known.
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    var (table, _) = cache.marks.known
    _ = try table.mark(Array("y".utf8), cache.store.lastVersion, mayMarkAll: false)
    try cache.store.setValue(table.encoded, forKey: ReservedKey.marks, options: .ofMarks)
    #expect(settle())
    #expect(!cache.marks.isActive)
    #expect(try cache.store.count() == 0)
  }

  @Test("Memory is emptied before a removal of everything removes the marks")
  func orderOfRemovalOfAll() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    let seen = Lock<[Bool]>([])
    cache.memory?.observe { [marks = cache.marks] _, _ in
      seen.withLock { $0.append(marks.isActive) }
    }
    try cache.removeAll()
    #expect(seen.withLock { $0 } == [true])
    #expect(!cache.marks.isActive)
  }

  @Test(
    "An entry that a sweep removes between reading it and reading the marks is not found",
    arguments: [false, true])
  func sweepBesideRead(isHead: Bool) throws {
    let cache: DiskCache<String, String> = try scene.disk.cache()
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    try cache.removeAll(tagged: "x")
    func version(_ key: String, _ between: () throws -> Void) throws -> UInt64? {
      var count = 0
      var failure: (any Error)?
      let version = try key.withBytes { (key) throws(StoreError) -> UInt64? in
        try cache.unhidden { () throws(StoreError) in
          let record = try cache.readingPinnedEntry(
            forKey: key, part: isHead ? .head : .all, isAccess: false)
          count += 1
          if count == 1 { do { try between() } catch { failure = error } }
          return record
        }?.version
      }
      if let failure { throw failure }
      return version
    }
    #expect(try version("a") { try cache.maintain() } == nil)
    #expect(!cache.marks.isActive)
    // An entry that no mark hides is found.
    try cache.removeAll(tagged: "x")
    #expect(try version("b") { try cache.maintain() } == cache.info(forKey: "b")?.version)
  }

  @Test(
    "Once the mark is gone, memory shows nothing that the mark hid, even without a notification")
  func untold() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("old", forKey: "a", options: .tags(["x"]))
    let old = try cache.fetchedValue(forKey: "a")
    try cache.removeAll(tagged: "x")
    try setUntold("new", forKey: "a", cache)
    try cache.maintain()
    #expect(!cache.marks.isActive)
    // A read that began before the removal does not bring it back either.
    old.promote(in: cache)
    #expect(try cache.value(forKey: "a") == "new")
  }

  @Test("No observer is called while a tag is pending")
  func observers() throws {
    let cache: DiskCache<String, String> = try scene.cache(bytes: 64 << 10)
    let marks = cache.marks
    let told = Lock<[Bool]>([])
    let removed = Lock<[UInt8]>([])
    let seen = cache.observe { event in
      guard case .removed(_, .evicted) = event else { return }
      let isPending = marks.forbids([removed.withLock { $0 }], since: .max, isLoaded: false)
      told.withLock { $0.append(isPending) }
    }
    let value = String(repeating: "value", count: 100)
    for number in 0..<1000 {
      try cache.setValue(value, forKey: "\(number)", options: .tags(["x"]))
    }
    told.withLock { $0 = [] }
    // The record of the marks needs room.
    for number in 0..<100 where told.withLock({ $0.isEmpty }) {
      let tag = "\(number)" + String(repeating: "long", count: 60)
      removed.withLock { $0 = Array(tag.utf8) }
      try cache.removeAll(tagged: tag)
    }
    #expect(told.withLock { !$0.isEmpty && $0.allSatisfy { !$0 } })
    seen.cancel()
  }

  @Test(
    "On a full disk, what the record of a mark evicts is reported after the mark",
    .enabled(if: TinyDisk.isAvailable, "only root may mount a small filesystem"))
  func fullDisk() throws {
    let disk = try TinyDisk(byteCount: 8 << 20)
    // Background work never runs, so nothing else evicts, and nothing makes room beforehand.
    let cache: DiskCache<String, String> = try scene.cache(
      keys: .standard, values: .standard, path: disk.path + "/cache")
    let marks = cache.marks
    let told = Lock<[Bool]>([])
    let removed = Lock<[UInt8]>([])
    let note = { @Sendable (event: CacheEvent<String>) in
      guard case .removed(_, .evicted(.freeDiskSpace)) = event else { return }
      let isPending = marks.forbids([removed.withLock { $0 }], since: .max, isLoaded: false)
      told.withLock { $0.append(isPending) }
    }
    let seen = cache.observe(note)
    cache.memory?.observe { event, _ in note(event) }
    let value = String(repeating: "v", count: 3000)
    var number = 0
    while told.withLock({ $0.isEmpty }) {
      try cache.setValue(value, forKey: "\(number)")
      number += 1
    }
    told.withLock { $0 = [] }
    for number in 0..<200 where told.withLock({ $0.isEmpty }) {
      // Another program takes the rest, again and again.
      try disk.fill()
      let tag = "\(number)" + String(repeating: "t", count: 250)
      removed.withLock { $0 = Array(tag.utf8) }
      try cache.removeAll(tagged: tag)
    }
    #expect(told.withLock { !$0.isEmpty && $0.allSatisfy { !$0 } })
    seen.cancel()
    try cache.close()
  }

  @Test("What the store evicts for the record of a mark is reported after the mark")
  func heldBack() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    for number in 0..<30 { try cache.setValue("value", forKey: "\(number)") }
    let told = Lock(0)
    let seen = cache.observe { _ in told.withLock { $0 += 1 } }
    let toldByMemory = Lock(0)
    cache.memory?.observe { _, _ in toldByMemory.withLock { $0 += 1 } }
    cache.events.holdBack()
    // As a write on a full disk does.
    try cache.store.trim(.toCount(20))
    #expect(told.withLock { $0 } == 0 && toldByMemory.withLock { $0 } == 0)
    Thread.detachNewThread { _ = try? cache.store.trim(.toCount(10)) }
    #expect(comesTrue { told.withLock { $0 } == 10 })
    let heldBack = cache.events.takeHeldBack()
    #expect(told.withLock { $0 } == 10)
    for event in heldBack { cache.events.report(event) }
    #expect(told.withLock { $0 } == 20 && toldByMemory.withLock { $0 } == 20)
    try cache.store.trim(.toCount(0))
    #expect(told.withLock { $0 } == 30)
    seen.cancel()
  }

  @Test("An observer of a sweep may request the whole sweep")
  func sweepInSweep() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValues((0..<9000).map { (key: "\($0)", value: "value") }, options: .tags(["x"]))
    #expect(settle())
    let counts = Lock<[Int]>([])
    let seen = cache.observe { [unowned cache] event in
      guard case .removed = event, counts.withLock({ $0.isEmpty }) else { return }
      counts.withLock { $0.append(-1) }
      try? cache.maintain()
      let count = (try? Int(cache.statistics()["sweepingTags"])) ?? -1
      counts.withLock { $0.append(count) }
    }
    try cache.removeAll(tagged: "x")
    #expect(settle())
    #expect(counts.withLock { $0 } == [-1, 0])
    #expect(try cache.store.count() == 0)
    #expect(!cache.marks.isActive)
    seen.cancel()
  }

  @Test("A mark stays while a head that it may hide is unreadable")
  func unreadable() throws {
    let files = FailingReads()
    let cache: DiskCache<String, String> = try scene.cache(
      keys: .standard, values: .standard, files: files, path: nil
    ) {
      $0.memory = nil
      $0.store.mapsFiles = false
    }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.setValue("2", forKey: "b")
    files.places.withLock { $0 = [] }
    #expect(try cache.value(forKey: "a") == "1")
    let places = files.places.withLock { $0 }
    try cache.removeAll(tagged: "x")
    files.failing.withLock { $0 = places }
    #expect(settle())
    #expect(try cache.marks.recordCount() == 1)
    files.failing.withLock { $0 = [] }
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try cache.keys() == ["b"])
    // The failed read is not retried repeatedly.
    let count = files.count.load(ordering: .relaxed)
    try cache.setValue("3", forKey: "c")
    #expect(settle())
    #expect(files.count.load(ordering: .relaxed) - count < 3)
    #expect(try cache.statistics()["sweepingTags"] == 1)
    try cache.maintain()
    #expect(try cache.statistics()["sweepingTags"] == 0)
    #expect(try cache.store.count() == 2)
  }

  /// Removals by tag once threw for good after 1,000 tags.
  @Test("If a head is unreadable and the marks are full, all entries with tags are removed")
  func stuckSweep() throws {
    let files = FailingReads()
    let cache: DiskCache<String, String> = try scene.cache(
      keys: .standard, values: .standard, files: files, path: nil
    ) {
      $0.memory = nil
      $0.store.mapsFiles = false
    }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.setValue("2", forKey: "b")
    files.places.withLock { $0 = [] }
    #expect(try cache.value(forKey: "a") == "1")
    let places = files.places.withLock { $0 }
    try cache.setValue("3", forKey: "c", options: .tags(["y"]))
    files.failing.withLock { $0 = places }
    try cache.removeAll(tagged: "t0")
    #expect(settle())
    for number in 1..<1000 { try cache.removeAll(tagged: "t\(number)") }
    #expect(try cache.value(forKey: "c") == "3")
    for number in 1000..<1500 { try cache.removeAll(tagged: "t\(number)") }
    #expect(try cache.value(forKey: "c") == nil)
    try cache.setValue("4", forKey: "d", options: .tags(["y"]))
    #expect(try cache.value(forKey: "b") == "2")
    files.failing.withLock { $0 = [] }
    #expect(try cache.value(forKey: "a") == nil)
    try cache.maintain()
    #expect(try cache.statistics()["sweepingTags"] == 0)
    #expect(Set(try cache.keys()) == ["b", "d"])
    #expect(try cache.store.count() == 2)
  }

  @Test("An update keeps tags that exceed the limits", arguments: [false, true])
  func strangeTags(isAsync: Bool) async throws {
    let cache: DiskCache<String, String> = try scene.cache()
    let tags = (0..<40).map { [0xFF, UInt8($0)] }
    let metadata = CacheMetadata(tag: cache.valueCoder.tag, tags: tags, rest: [7]).encoded
    try await cache.store.setValue("1", forKey: "a", options: .metadata(metadata))
    if isAsync {
      try await cache.update(forKey: "a") { ($0 ?? "") + "2" }
    } else {
      try cache.synchronous { _ = try $0.update(forKey: "a") { ($0 ?? "") + "2" } }
    }
    let entry = try #require(try cache.store.entry(forKey: "a"))
    #expect(entry.metadata == metadata)
    #expect(try cache.value(forKey: "a") == "12")
    // Memory knows that the value has tags.
    #expect(try cache.memory?.value(forKey: "a") == "12")
    try await cache.removeAll(tagged: "another")
    #expect(try cache.memory?.value(forKey: "a") == nil)
  }

  @Test("A follower gets the reason why the marks cannot be read; damage hides entries with tags")
  func followingErrors() throws {
    let scene = FollowingScene()
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a", options: .tags(["x"]))
    try writer.setValue("2", forKey: "b")
    try writer.removeAll(tagged: "y")
    let follower = try scene.follower(held: nil)
    #expect(try follower.values(forKeys: ["a", "b"]) == ["1", "2"])
    try writer.store.setValue([1, 2, 3], forKey: ReservedKey.marks)
    #expect(try follower.values(forKeys: ["a", "b"]) == [nil, "2"])
    #expect(try follower.keys() == ["b"])
    try follower.close()
    #expect(throws: StoreError.closed(path: scene.disk.path)) { try follower.marks.current() }
    #expect(throws: StoreError.closed(path: scene.disk.path)) {
      try follower.removedTags()
    }
  }

  @Test("A follower reads untagged values once, and decodes the marks once")
  func followingReads() throws {
    let files = FailingReads()
    let scene = FollowingScene()
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a", options: .tags(["x"]))
    try writer.setValue("2", forKey: "b")
    try writer.removeAll(tagged: "y")
    let follower = try scene.follower(held: nil, files: files) { $0.store.mapsFiles = false }
    func readCount(finding body: () throws -> Bool) throws -> Int {
      let before = files.count.load(ordering: .relaxed)
      let isFound = try body()
      #expect(isFound)
      return files.count.load(ordering: .relaxed) - before
    }
    func readCount(_ key: String) throws -> Int {
      try readCount { try follower.value(forKey: key) != nil }
    }
    _ = try readCount("b")
    let once = try readCount { try follower.store.value(forKey: "b") != nil }
    #expect(once > 0)
    #expect(try readCount("b") == once)
    let first = try readCount("a")
    let second = try readCount("a")
    #expect(second < first)
    #expect(try readCount("a") == second)
    // Another record is read.
    try writer.removeAll(tagged: "x")
    #expect(try follower.value(forKey: "a") == nil)
  }
}
