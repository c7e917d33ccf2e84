import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Damaged records that have been replaced")
struct ReplacedDamageTests {
  @Test(
    "A damaged record that the checkpoint covers does not prevent an open once its key was rewritten",
    arguments: ["put", "tombstone"])
  func replacedDamage(kind: String) throws {
    let fixture = try CheckpointFixture { store in
      if kind == "put" {
        try store.setValue("later", forKey: "key11")
      } else {
        try store.removeValue(forKey: "key11")
      }
      try store.setValue("later", forKey: "key8")
    }
    let name = try #require(fixture.image.segmentNames.first)
    let record = try #require(
      fixture.image.records(in: name).first { $0.key == Array("key11".utf8) })
    for offset in [0, 4, 8, 16, 20, 22, 23, 24, record.headRange.count - 1] {
      let image = fixture.image.flipping(name, at: record.offset + offset)
      let directory = try TemporaryDirectory()
      try image.write(to: directory.store)
      let messages = Mutex<[String]>([])
      do {
        let store = try Store(
          directory.store,
          .small {
            $0.log = DiagnosticLog { message in messages.withLock { $0.append(message.text) } }
          })
        #expect(try store.statistics().recovery.source == .checkpoint)
        for (key, value) in fixture.contents where key != "key11" {
          #expect(try store.value(forKey: key) == value)
        }
        #expect(try store.value(forKey: "key11") == fixture.contents["key11"])
        #expect(try store.count() == fixture.contents.count)
        // The number of bytes that died can no longer be determined.
        #expect(
          try store.statistics().liveByteCount == fixture.usage.liveByteCount + record.range.count
        )
        #expect(messages.withLock { $0.contains { $0.contains("offset \(record.offset)") } })
        try store.close()
      }
      // The store opens again, with and without the checkpoint.
      let again = try Store(directory.store, .small())
      #expect(try again.value(forKey: "key11") == fixture.contents["key11"])
      #expect(try again.value(forKey: "key8") == Array("later".utf8))
      try again.close()
      #expect(try Store.verify(path: directory.store).errors.map(\.offset) == [record.offset])
    }
  }

  @Test("The bytes of an unreadable record count as live until its segment is compacted")
  func unreadableRecord() throws {
    // The record's size is in its unreadable header. Nothing else is wrong meanwhile, and nothing
    // is counted twice.
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    func open(_ path: String, _ system: FaultyFileSystem = FaultyFileSystem()) throws -> Store {
      try Store(
        path,
        .small {
          $0.mapsFiles = false
          $0.checkpointRecordThreshold = 0
        }, fileSystem: system, background: queue)
    }
    let system = FaultyFileSystem()
    var store = try open(directory.store, system)
    for key in ["a", "b", "c"] { try store.setValue([UInt8].filled(500), forKey: key) }
    try store.setValue([UInt8].filled(500), forKey: "b", lifetime: .seconds(10))
    try store.setLifetime(.seconds(1000), forKey: "b")
    let before = try store.statistics().liveByteCount
    system.arm(
      .init(call: .read, index: 0, errorNumber: SystemError.interrupted, isLasting: true))
    #expect(throws: StoreError.self) { try store.setLifetime(.seconds(2000), forKey: "b") }
    for key in ["a", "b"] { try store.setValue([UInt8].filled(500), forKey: key) }
    #expect(system.hasFired)
    system.arm(nil)
    func check(_ store: Store, isExact: Bool) throws {
      #expect(try store.auditUsage().isEmpty == isExact)
      #expect(try store.auditUsage(mayCountMore: true) == [])
      #expect(try store.count() == 3)
    }
    try check(store, isExact: false)
    #expect(try store.statistics().liveByteCount < before + 2 * 600)
    try Image(of: directory.store).write(to: directory("killed"))
    try check(open(directory("killed")), isExact: true)
    try store.close()
    store = try open(directory.store)
    #expect(try store.statistics().recovery.source == .checkpoint)
    try check(store, isExact: false)
    try store.compact()
    try check(store, isExact: true)
    #expect(try store.statistics().liveByteCount < 3 * 600)
  }
}
