import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Possible failures between a follower and its writer, each found by reading the code.
@Suite("A follower and changes underneath it")
final class FollowingChangesTests {
  private let directory: TemporaryDirectory
  private let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  @Test("After the machine restarts, the log ends in the full segment that a close left")
  func fullSegment() throws {
    let page = "\(directory.store)/\(FileName.followPage)"
    let wide = StoreConfiguration.small { $0.segmentByteLimit = 1 << 20 }
    var writer = try Store.announcing(directory.store, wide, background: queue)
    for number in 0..<300 {
      try writer.setValue([UInt8](repeating: 1, count: 1000), forKey: "\(number)")
    }
    try writer.close()
    let left = try #require(try Image(of: directory.store).manifest.openSegments.last)
    try FileManager.default.removeItem(atPath: page)
    // Nothing is appended to a segment with less room than this.
    writer = try Store.announcing(directory.store, .small(), background: queue)
    let words = try readFile(page)[FollowPageLayout.positionOffset...].prefix(8)
    #expect(
      words.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        == LogPosition(id: left.id, end: left.byteCount).rawValue)
    let follower = try Store.following(directory.store)
    for number in 300..<500 {
      try writer.setValue([UInt8](repeating: 1, count: 1000), forKey: "\(number)")
      let later = try Store.following(directory.store)
      #expect(try later.count() == number + 1)
      try later.close()
      #expect(try follower.count() == number + 1)
    }
    #expect(try follower.contents() == writer.contents())
  }

  @Test("A scrub of a follower reports no damage in segments that its writer has compacted")
  func scrub() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    for number in 0..<300 {
      try writer.setValue([UInt8](repeating: 1, count: 1000), forKey: "\(number)")
    }
    let follower = try Store.following(directory.store, .manual)
    #expect(try follower.count() == 300)
    for number in 0..<300 {
      try writer.setValue([UInt8](repeating: 2, count: 1000), forKey: "\(number)")
    }
    #expect(try writer.compact().removedSegmentCount > 0)
    let report = try follower.scrub()
    #expect(report.damage.isEmpty && report.isComplete)
    try follower.close()
    try writer.close()
  }

  @Test("A closed follower holds no file and no lock, even if its store object still exists")
  func closed() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    for number in 0..<100 { try writer.setValue("value", forKey: "key \(number)") }
    let system = FaultyFileSystem()
    let follower = try Store.following(directory.store, fileSystem: system)
    #expect(try follower.count() == 100)
    try follower.close()
    system.awaitClosing(downTo: 2)
    // The directory and LOCK, held by the object that reports that it is closed.
    #expect(system.openDescriptorCount <= 2 && system.mappingCount == 0)
    #expect(storeError { _ = try follower.count() } == .closed(path: directory.store))
    try writer.close()
  }

  @Test("Reads see a writer that announces nothing after one that did", arguments: [false, true])
  func silentAfterAnnouncing(opensBetween: Bool) throws {
    let first = try Store.announcing(directory.store, background: queue)
    try first.setValue("1", forKey: "a")
    var follower = try Store.following(directory.store)
    #expect(try follower.text("a") == "1")
    try first.close()
    queue.runAll()
    let second = try Store(directory.store, background: queue)
    if opensBetween { follower = try Store.following(directory.store) }
    try second.setValue("2", forKey: "a")
    try follower.catchUp()
    #expect(try follower.text("a") == "2")
    for number in 3..<10 {
      try second.setValue("\(number)", forKey: "a")
      try follower.catchUp()
      #expect(try follower.text("a") == "\(number)")
    }
    try second.close()
    try follower.close()
  }

  @Test("A follower does not wait for the announcements of a writer that makes none")
  func noWait() throws {
    let first = try Store.announcing(directory.store, background: queue)
    try first.setValue("1", forKey: "a")
    try first.close()
    let second = try Store(directory.store, background: queue)
    try second.setValue("2", forKey: "a")
    let pauseCount = Atomic(0)
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue(),
      pause: { _ in pauseCount.add(1, ordering: .relaxed) })
    let follower = try Store(
      following: directory.store, freshness: .everyRead, configuration: .small(),
      environment: environment)
    #expect(try follower.text("a") == "2")
    for number in 3..<6 {
      try second.setValue("\(number)", forKey: "a")
      try follower.catchUp()
      #expect(try follower.text("a") == "\(number)")
    }
    #expect(pauseCount.load(ordering: .relaxed) == 0)
    try second.close()
    try follower.close()
  }

  @Test("A writer that announces nothing withdraws a page that was made while it waited to open")
  func pageMadeMeanwhile() throws {
    let path = directory.store
    let first = try Store(path, background: queue)
    let isOver = Atomic(false)
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
      pause: { _ in
        if isOver.exchange(true, ordering: .relaxed) { return }
        do {
          try first.close()
          let second = try Store.announcing(path)
          try second.setValue("1", forKey: "a")
          try second.close()
        } catch {
          Issue.record(error)
        }
      })
    let third = try Store(
      path: path, configuration: .small { $0.lockTimeout = .seconds(100) },
      environment: environment, readOnly: false)
    #expect(try third.text("a") == "1")
    let page = try readFile("\(path)/\(FileName.followPage)")
    #expect(page[FollowPageLayout.generationOffset...].prefix(8).allSatisfy { $0 == 0xFF })
    try third.close()
  }

  @Test("A call that cannot throw leaves the report of a loss to the next call that can")
  func lossIsNotSwallowed() throws {
    let first = try Store.announcing(directory.store, background: queue)
    try first.setValue("1", forKey: "a")
    let clock = ManualClock()
    let follower = try Store.following(
      directory.store, .everyRead, .small { $0.clock = clock })
    let version = follower.lastVersion
    #expect(version == first.lastVersion)
    try first.close()
    try FileManager.default.moveItem(atPath: directory.store, toPath: directory("old"))
    let second = try Store.announcing(directory.store, background: queue)
    try second.setValue("2", forKey: "a")
    try second.setValue("3", forKey: "a")
    clock.advance(by: .milliseconds(150))
    // The reads saw data that the other store does not have.
    #expect(follower.lastVersion == version)
    #expect(storeError { _ = try follower.count() } == .outdated(path: directory.store))
    #expect(follower.lastVersion == second.lastVersion)
    #expect(try follower.text("a") == "3")
    try second.close()
    try follower.close()
    #expect(follower.lastVersion == 0)
  }

  @Test("Once a follower has caught up, it holds no file that the writer has removed")
  func spaceIsReturned() throws {
    let writer = try Store.announcing(
      directory.store, .small { $0.deadByteFloor = 0 }, background: queue)
    let system = FaultyFileSystem()
    let follower = try Store.following(directory.store, fileSystem: system)
    for round in 0..<6 {
      for number in 0..<200 {
        try writer.setValue(
          [UInt8](repeating: UInt8(round), count: 1500), forKey: "key \(number)")
      }
      if round % 3 == 2 { try writer.removeAll() } else { try writer.compact() }
      queue.runAll()
      try follower.catchUp()
      #expect(try follower.count() == writer.count())
      let manifest = try Image(of: directory.store).manifest
      let listedCount = manifest.sealedSegments.count + manifest.openSegments.count
      // One more for the page FOLLOW.
      #expect(system.mappingCount <= listedCount + 1, "round \(round)")
    }
    try follower.close()
    try writer.close()
  }

  @Test("Without a writer since the machine started, a check reopens nothing")
  func earlierBoot() throws {
    do {
      let writer = try Store.announcing(directory.store, background: queue)
      for number in 0..<100 { try writer.setValue("value", forKey: "key \(number)") }
      try writer.close()
    }
    let clock = ManualClock()
    let system = FaultyFileSystem(bootIdentifier: [UInt8](repeating: 9, count: 16))
    let follower = try Store.following(
      directory.store, .everyRead, .small { $0.clock = clock }, fileSystem: system)
    #expect(try follower.text("key 1") == "value")
    let mapCount = system.count(of: .map)
    for _ in 0..<20 {
      clock.advance(by: .milliseconds(150))
      #expect(try follower.text("key 1") == "value")
    }
    // Each read needs at most a check of the page.
    #expect(system.count(of: .map) <= mapCount + 20)
    try follower.close()
  }

  @Test("A read after a write takes as long with many sealed segments as with few")
  func manySegments() throws {
    var best: [Int] = []
    for segmentCount in [3, 400] {
      let path = directory("\(segmentCount)")
      var writer = try Store.announcing(path)
      for number in 0..<segmentCount {
        try writer.setValue([UInt8](repeating: 1, count: 60_000), forKey: "\(number)")
      }
      // This seals all segments but the last.
      try writer.close()
      #expect(try Image(of: path).manifest.sealedSegments.count >= segmentCount - 2)
      writer = try Store.announcing(path, background: queue)
      let follower = try Store.following(path, .everyRead, .small(clock: ManualClock()))
      var times: [Int] = []
      for _ in 0..<10 {
        var time = 0
        for number in 0..<20 {
          try writer.setValue("\(number)", forKey: "a")
          let start = try processorTime()
          let text = try follower.text("a")
          time += try processorTime() - start
          #expect(text == "\(number)")
        }
        times.append(time)
      }
      best.append(try #require(times.min()))
      try follower.close()
      try writer.close()
    }
    // Looking at all sealed segments would take many times as long.
    #expect(best[1] < best[0] * 4, "\(best)")
  }

  /// The processor time of this thread in nanoseconds, because a busy machine makes everything
  /// slow.
  private func processorTime() throws -> Int {
    // Not by its members: which module they seem to come from depends on what is compiled together.
    let time = UnsafeMutablePointer<timespec>.allocate(capacity: 1)
    defer { unsafe time.deallocate() }
    try check("clock_gettime", unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, time))
    return unsafe UnsafeRawPointer(time).load(as: Int.self) * 1_000_000_000
      + UnsafeRawPointer(time).load(fromByteOffset: 8, as: Int.self)
  }

  @Test("A lost head before the roll of a segment is an error, not an end")
  func lostBeforeRoll() throws {
    let configuration = StoreConfiguration.small { $0.segmentByteLimit = 64 << 10 }
    let writer = try Store.announcing(directory.store, configuration, background: queue)
    try writer.setValue("first", forKey: "a")
    try writer.checkpoint()
    try writer.setValue("second", forKey: "a")
    for number in 0..<40 {
      try writer.setValue([UInt8](repeating: 1, count: 4000), forKey: "key \(number)")
    }
    try Image(of: directory.store).write(to: directory("copy"))
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: directory("copy"))
        .filter { $0.hasPrefix("seg-") }.sorted().first)
    var bytes = try Data(contentsOf: URL(filePath: directory("copy") + "/" + name))
    // The record of "second" loses its head.
    let position = try #require(bytes.firstRange(of: Data("second".utf8)))
    for index in (position.lowerBound - 40)..<position.lowerBound { bytes[index] = 0 }
    try bytes.write(to: URL(filePath: directory("copy") + "/" + name))
    guard let follower = try? Store.following(directory("copy")) else { return }
    let text = try? follower.text("a")
    #expect(text != "first")
    try writer.close()
  }
}
