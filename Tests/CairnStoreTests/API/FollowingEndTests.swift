import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("What ends or replaces the followed store")
final class FollowingEndTests {
  let directory: TemporaryDirectory
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  @Test(
    "A recovery's loss is reported once, also after a kill before a manifest was announced",
    arguments: [false, true], [false, true])
  func discarded(isUnannounced: Bool, isSilent: Bool) throws {
    var last: (name: String, record: Image.PlacedRecord)?
    // The writer may be killed in a segment that is still empty.
    while last == nil {
      let process = try KillWriterProcess(["followed", directory.store, "5", "0"])
      var bytes: [UInt8] = []
      while bytes.count < 30 * 8 { bytes += try process.read() }
      process.kill()
      _ = try process.readAll()
      _ = try process.wait()
      last = try lastOpenRecord()
      // Or before it has published its last record, which no follower then sees.
      if let found = last, try publishedEnd() != found.record.range.upperBound { last = nil }
    }
    let (name, record) = try #require(last)
    if isUnannounced {
      try overwriteFile(
        "\(directory.store)/\(FileName.followPage)", [UInt8](repeating: 0, count: 8),
        at: FollowPageLayout.generationOffset)
    }
    let clock = ManualClock()
    let follower = try Store.following(directory.store, .everyRead, .small(clock: clock))
    let before = try follower.contents()
    guard let found = try "number".withBytes({ try follower.pinnedEntry(forKey: $0) }) else {
      Issue.record("nothing is there")
      return
    }
    if isUnannounced { clock.advance(by: .seconds(1)) }
    // The record becomes zeros, like a page that never reached the disk.
    try overwriteFile(
      directory.store + "/" + name, [UInt8](repeating: 0, count: 24), at: record.offset)
    let configuration = FollowedWorkload.configuration
    let writer =
      try isSilent
      ? Store(directory.store, configuration, background: queue)
      : Store.announcing(directory.store, configuration, background: queue)
    // So that the store has as many writes as before.
    for number in 0..<9 { try writer.setValue("0", forKey: "new \(number)") }
    // Queries about a record that was read cannot throw, so the next read reports it.
    #expect(follower.info(of: found).version > 0)
    #expect(storeError { _ = try follower.count() } == .outdated(path: directory.store))
    #expect(try follower.contents() == writer.contents())
    #expect(try follower.contents() != before)
    try writer.setValue("1", forKey: "a")
    if isSilent { try follower.catchUp() }
    #expect(try follower.text("a") == "1")
    try writer.close()
  }

  /// The end of the records on the page for followers.
  private func publishedEnd() throws -> Int {
    let page = try [UInt8](
      Data(contentsOf: URL(filePath: "\(directory.store)/\(FileName.followPage)")))
    let bytes = page[FollowPageLayout.positionOffset..<FollowPageLayout.positionOffset + 8]
    return LogPosition(rawValue: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }).end
  }

  /// The last record of the open segments.
  private func lastOpenRecord() throws -> (name: String, record: Image.PlacedRecord)? {
    let image = try Image(of: directory.store)
    for segment in try image.manifest.openSegments.reversed() {
      let name = FileName.segment(segment.id)
      if image.files[name] == nil { continue }
      if let record = try image.records(in: name).last(where: { $0.header.kind != .roll }) {
        return (name, record)
      }
    }
    return nil
  }

  @Test(
    "A manifest that went back is reported once, and the numbers of its segments may be reused")
  func manifestWentBack() throws {
    func files() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory.store).filter {
        $0 != FileName.followPage && $0 != FileName.lock
      }
    }
    var writer = try Store.announcing(directory.store, .small(), background: queue)
    try writer.setValue("1", forKey: "a")
    // The files are as a killed process leaves them.
    let old = try Dictionary(
      uniqueKeysWithValues: files().map { name in
        (name, FileManager.default.contents(atPath: "\(directory.store)/\(name)"))
      })
    try writer.removeAll()
    try writer.close()
    writer = try Store.announcing(directory.store, .small(), background: queue)
    for number in 0..<300 {
      try writer.setValue([UInt8](repeating: 1, count: 2000), forKey: "\(number)")
    }
    let follower = try Store.following(directory.store)
    #expect(try follower.count() == 300)
    try writer.close()
    // As after a failed sync, when the kernel drops what it could not write.
    for name in try files() {
      try FileManager.default.removeItem(atPath: "\(directory.store)/\(name)")
    }
    for (name, contents) in old {
      #expect(
        FileManager.default.createFile(
          atPath: "\(directory.store)/\(name)", contents: contents,
          attributes: [.posixPermissions: 0o600]))
    }
    writer = try Store.announcing(directory.store, .small(), background: queue)
    // Not in a segment of the lost session: a later segment may get its number.
    let page = try readFile("\(directory.store)/\(FileName.followPage)")
    #expect(page[FollowPageLayout.positionOffset...].prefix(8).allSatisfy { $0 == 0 })
    for number in 0..<400 {
      try writer.setValue([UInt8](repeating: 2, count: 2000), forKey: "\(number)")
      if number.isMultiple(of: 20) {
        let later = try Store.following(directory.store)
        #expect(try later.count() == number + 2)
        try later.close()
      }
    }
    // Versions again exceed those that the follower has seen, so they alone do not show the loss.
    #expect(storeError { _ = try follower.count() } == .outdated(path: directory.store))
    #expect(try follower.contents() == writer.contents())
  }

  @Test("Another store at the path is reported once; without one, reads continue")
  func replaced() throws {
    let writer = try Store.announcing(directory.store, background: queue)
    try writer.setValue("1", forKey: "a")
    try writer.backup(to: directory("backup"))
    try writer.setValue("2", forKey: "a")
    let follower = try Store.following(directory.store)
    #expect(try follower.text("a") == "2")
    try writer.close()
    try FileManager.default.moveItem(atPath: directory.store, toPath: directory("old"))
    try follower.catchUp()
    #expect(try follower.text("a") == "2")
    try FileManager.default.moveItem(atPath: directory("backup"), toPath: directory.store)
    #expect(storeError { try follower.catchUp() } == .outdated(path: directory.store))
    #expect(try follower.text("a") == "1")
    // The store's writer announces itself, which is not a loss.
    let next = try Store.announcing(directory.store, background: queue)
    try next.setValue("3", forKey: "a")
    try follower.catchUp()
    #expect(try follower.text("a") == "3")
    try next.setValue("4", forKey: "a")
    #expect(try follower.text("a") == "4")
    try next.close()
  }

  @Test("Each call sees the current state of a writer that announces nothing")
  func unannounced() throws {
    var writer = try Store.announcing(directory.store, background: queue)
    try writer.setValue("1", forKey: "a")
    try writer.close()
    // As with an earlier version of the library: the page stays as it was.
    writer = try Store(directory.store, background: queue)
    try writer.setValue("2", forKey: "a")
    let follower = try Store.following(directory.store)
    #expect(try follower.text("a") == "2")
    try writer.setValue("3", forKey: "a")
    try follower.catchUp()
    #expect(try follower.text("a") == "3")
    try writer.removeAll()
    try writer.setValue("4", forKey: "b")
    try follower.catchUp()
    #expect(try follower.contents() == ["b": Array("4".utf8)])
    try writer.close()
    writer = try Store.announcing(directory.store, background: queue)
    try writer.setValue("5", forKey: "b")
    try follower.catchUp()
    #expect(try follower.text("b") == "5")
    try writer.setValue("6", forKey: "b")
    #expect(try follower.text("b") == "6")
    try writer.close()
  }

  @Test("A page of another boot is ignored", arguments: [false, true])
  func otherRun(isEmpty: Bool) throws {
    let writer = try Store.announcing(
      directory.store, fileSystem: FaultyFileSystem(bootIdentifier: otherBoot), background: queue)
    try writer.setValue("1", forKey: "a")
    try writer.close()
    if isEmpty { try writeFile(directory.store + "/FOLLOW", []) }
    let follower = try Store.following(directory.store)
    #expect(try follower.text("a") == "1")
    let next = try Store.announcing(directory.store, background: queue)
    try next.setValue("2", forKey: "a")
    try follower.catchUp()
    #expect(try follower.text("a") == "2")
    try next.setValue("3", forKey: "a")
    #expect(try follower.text("a") == "3")
    try next.close()
  }

  @Test("A fixed view is read whole, whatever happens to the files", arguments: [true, false])
  func fixedView(isMapped: Bool) throws {
    let configuration = StoreConfiguration.small { $0.deadByteFloor = 0 }
    var writer = try Store.announcing(directory.store, configuration, background: queue)
    for number in 0..<200 {
      try writer.setValue(
        [UInt8](repeating: UInt8(number), count: 1000), forKey: "key \(number % 150)")
    }
    let follower = try Store.following(
      directory.store, .manual, .small { $0.mapsFiles = isMapped })
    let before = try follower.contents()
    let snapshot = try follower.snapshot()
    for number in 0..<200 where number % 3 > 0 { try writer.removeValue(forKey: "key \(number)") }
    #expect(try follower.contents() == before)
    try writer.compact()
    try writer.close()
    #expect(try follower.contents() == before)
    writer = try Store.announcing(directory.store, configuration, background: queue)
    try writer.removeAll()
    queue.runAll()
    try writer.setValue("new", forKey: "key 1")
    #expect(try follower.contents() == before)
    try follower.backup(to: directory("backup"))
    try follower.catchUp()
    #expect(try follower.contents() == ["key 1": Array("new".utf8)])
    #expect(try snapshot.count() == before.count)
    snapshot.close()
    #expect(try Store(directory("backup"), readOnly: true).contents() == before)
    try writer.close()
  }

  @Test("A view with an interval catches up when the interval is over")
  func interval() throws {
    let clock = ManualClock()
    let writer = try Store.announcing(directory.store, .small(clock: clock), background: queue)
    try writer.setValue("1", forKey: "a", lifetime: .seconds(60))
    let follower = try Store.following(
      directory.store, .interval(.seconds(5)), .small(clock: clock))
    try writer.setValue("2", forKey: "a", lifetime: .seconds(60))
    clock.advance(by: .seconds(4))
    #expect(try follower.text("a") == "1")
    clock.advance(by: .seconds(1))
    #expect(try follower.text("a") == "2")
    clock.advance(by: .seconds(60))
    #expect(try follower.text("a") == nil)
    #expect(try follower.count() == 0)
    try writer.close()
  }
}
