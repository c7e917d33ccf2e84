import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// A compaction adds the new segments while the old ones are still there, and then makes the
/// entries name the copies, some at a time. A snapshot in between had both, so each copied record
/// existed twice, with one number. Replay keeps the one that it reads first; the index named
/// either. A backup of that snapshot was sound as long as its checkpoint was. If a shard of that
/// checkpoint was damaged, the shard was rebuilt from the log and named old records that counted as
/// dead. A compaction could then remove the segment under them, or drop a tombstone that the other
/// copy needed.
@Suite("Backups while a compaction moves entries")
struct BackupDuringCompactionTests {
  let directory: TemporaryDirectory
  let contents: [String: [UInt8]]
  let ends: [String: Timestamp]
  /// A backup that began when some of the entries had been moved.
  let copy: Image

  init() throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    let copyPath = directory("copy")
    let backup = Mutex<Background?>(nil)
    let held = Mutex<Store?>(nil)
    let pauses = Atomic(0)
    // The first pause comes after some groups of entries have been moved.
    let environment = Environment(
      fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
      pause: { _ in
        if pauses.wrappingAdd(1, ordering: .relaxed).oldValue > 0 { return }
        let background = Background {
          guard let store = held.withLock({ $0 }) else { return }
          try store.backup(to: copyPath)
        }
        backup.withLock { $0 = background }
        // Enough time for a snapshot that does not wait.
        _ = background.finishes(within: 1)
      })
    let store = try Store(
      path: directory.store, configuration: .small(), environment: environment, readOnly: false)
    held.withLock { $0 = store }
    for number in 0..<1500 {
      try store.setValue(
        [UInt8](repeating: UInt8(number % 251), count: 20), forKey: "key\(number)",
        lifetime: number % 9 == 0 ? .seconds(1 << 30) : .standard)
    }
    for number in stride(from: 0, to: 1500, by: 4) {
      try store.removeValue(forKey: "key\(number)")
    }
    for number in stride(from: 9, to: 1500, by: 18) {
      try store.setLifetime(.seconds(1 << 31), forKey: "key\(number)")
    }
    contents = try store.contents()
    ends = try store.ends()
    try store.compact()
    let background = try #require(backup.withLock { $0 })
    #expect(background.finishes())
    if let error = background.error { throw error }
    #expect(try store.auditUsage() == [])
    try store.close()
    held.withLock { $0 = nil }
    copy = try Image(of: copyPath)
  }

  /// Opens a copy and continues with it.
  private func check(_ image: Image, _ source: RecoveryReport.Source, _ what: String) throws {
    let path = directory(what)
    try image.write(to: path)
    var store = try Store(path)
    #expect(try store.statistics().recovery.source == source, "\(what)")
    #expect(try store.contents() == contents, "\(what)")
    #expect(try store.ends() == ends, "\(what)")
    #expect(try store.auditUsage() == [], "\(what)")
    // Removed keys stay removed, whatever is compacted.
    for number in stride(from: 1, to: 1500, by: 3) {
      try store.removeValue(forKey: "key\(number)")
    }
    let left = try store.contents()
    #expect(left.count < contents.count)
    for _ in 0..<2 {
      try store.compact()
      #expect(try store.contents() == left, "\(what), compacted")
      #expect(try store.auditUsage() == [], "\(what), compacted")
      try Image(of: path).write(to: directory("\(what), killed"))
      let killed = try Store(directory("\(what), killed"))
      #expect(try killed.contents() == left, "\(what), killed")
      #expect(try killed.auditUsage() == [], "\(what), killed")
      try killed.close()
      try store.close()
      store = try Store(path)
      #expect(try store.contents() == left, "\(what), reopened")
    }
    try store.close()
    #expect(try Store.verify(path: path).errors == [], "\(what)")
  }

  @Test("The backup is sound")
  func whole() throws { try check(copy, .checkpoint, "whole") }

  @Test("The backup is sound without its checkpoint")
  func withoutCheckpoint() throws {
    var image = copy
    image.files[FileName.checkpoint(try image.manifest.checkpointID)] = nil
    try check(image, .scan, "without checkpoint")
  }

  @Test("The backup is sound if shards of its checkpoint are damaged")
  func damagedShards() throws {
    let name = FileName.checkpoint(try copy.manifest.checkpointID)
    let bytes = try #require(copy.files[name])
    let header = try CheckpointFixture.header(of: bytes, name)
    let shards = header.shards.filter { $0.count > 0 }
    for (what, damaged) in [("one", [shards[7]]), ("all", shards)] {
      var image = copy
      for shard in damaged { image.files[name]?[shard.offset] ^= 1 }
      try check(image, .checkpoint, "\(what) damaged")
    }
  }

  @Test("No record is in the backup twice")
  func numbers() throws {
    let header = try CheckpointFixture.header(
      of: #require(copy.files[FileName.checkpoint(copy.manifest.checkpointID)]), "")
    #expect(header.segments.reduce(0) { $0 + $1.livePutCount } == contents.count)
    // The segments are of one moment: dead records belong only to removed keys, or are gone.
    #expect(header.segments.reduce(0) { $0 + $1.putCount } <= 1500)
  }
}
