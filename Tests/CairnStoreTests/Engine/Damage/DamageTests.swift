import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Damage that no crash explains, in a store that was not closed.
@Suite("Recovery distinguishes damage from a torn tail")
struct DamageTests {
  static let five = Result {
    try KilledStore { store in
      for number in 0..<5 { try store.setValue("value", forKey: "key\(number)") }
    }
  }

  func expectLost(
    _ image: Image, boot: [UInt8]? = nil, at record: Image.PlacedRecord, in file: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let expected = Corruption(file: file, offset: record.offset, cause: .lostRecords)
    #expect(
      try Opening(image, boot: boot) == .refused(.corrupt(expected)),
      sourceLocation: sourceLocation)
  }

  @Test("A damaged head with later records, in the same boot", arguments: 0..<4)
  func head(index: Int) throws {
    let killed = try Self.five.get()
    let name = try killed.lastSegment
    let record = try killed.lastRecords[index]
    for offset in [0, 8, 20, 22, 24] {
      try expectLost(
        killed.image.flipping(name, at: record.offset + offset), at: record, in: name)
    }
  }

  @Test(
    "A damaged value with later records, in the same boot, costs only that key", arguments: 0..<4)
  func value(index: Int) throws {
    let killed = try Self.five.get()
    let name = try killed.lastSegment
    let record = try killed.lastRecords[index]
    let directory = try TemporaryDirectory()
    try killed.image.flipping(name, at: record.valueRange.lowerBound).write(to: directory.store)
    let store = try Store(directory.store)
    for number in 0..<5 where number != index {
      #expect(try store.text("key\(number)") == "value")
    }
    #expect(
      storeError { _ = try store.value(forKey: "key\(index)") }?.corruption?.cause == .badValue)
    let damaged = try store.statistics().recovery.damage
    #expect(damaged.map(\.place.file) == [name])
    #expect(try store.contains("key\(index)"))
    // A write heals the key.
    try store.setValue("healed", forKey: "key\(index)")
    #expect(try store.text("key\(index)") == "healed")
  }

  @Test(
    "In another boot, without proof of durability, the same damage is a torn tail", arguments: 0..<4
  )
  func otherBootHead(index: Int) throws {
    let killed = try Self.five.get()
    let record = try killed.lastRecords[index]
    let image = killed.image.flipping(try killed.lastSegment, at: record.offset)
    let kept = killed.after.filter { $0.key < "key\(index)" }
    #expect(try Opening(image, boot: otherBoot) == .contents(kept))
  }

  @Test("In another boot, a damaged value also cuts the log there", arguments: 0..<4)
  func otherBootValue(index: Int) throws {
    let killed = try Self.five.get()
    let record = try killed.lastRecords[index]
    let image = killed.image.flipping(try killed.lastSegment, at: record.valueRange.lowerBound)
    let kept = killed.after.filter { $0.key < "key\(index)" }
    #expect(try Opening(image, boot: otherBoot) == .contents(kept))
  }

  // MARK: Proof that something was durable

  /// Two records, a sync, and two more records. The third record proves that the first two are
  /// durable.
  static let synced = Result {
    try KilledStore { store in
      try store.setValue("value", forKey: "key0")
      try store.setValue("value", forKey: "key1")
      try store.sync()
      try store.setValue("value", forKey: "key2")
      try store.setValue("value", forKey: "key3")
    }
  }

  @Test("Damage before a durable point is corruption, even in another boot", arguments: [0, 1])
  func beforeDurablePoint(index: Int) throws {
    let killed = try Self.synced.get()
    let name = try killed.lastSegment
    let record = try killed.lastRecords[index]
    #expect(try killed.lastRecords[2].header.syncMark == UInt64(killed.lastRecords[2].offset))
    try expectLost(
      killed.image.flipping(name, at: record.offset), boot: otherBoot, at: record, in: name)
  }

  @Test("Damage after the last durable point is a torn tail in another boot", arguments: [2, 3])
  func behindDurablePoint(index: Int) throws {
    let killed = try Self.synced.get()
    let record = try killed.lastRecords[index]
    let image = killed.image.flipping(try killed.lastSegment, at: record.offset)
    let kept = killed.after.filter { $0.key < "key\(index)" }
    #expect(try Opening(image, boot: otherBoot) == .contents(kept))
  }

  @Test(
    "A damaged value before a durable point costs only that key, in another boot too",
    arguments: [0, 1])
  func valueBeforeDurablePoint(index: Int) throws {
    let killed = try Self.synced.get()
    let record = try killed.lastRecords[index]
    let directory = try TemporaryDirectory()
    try killed.image.flipping(try killed.lastSegment, at: record.valueRange.lowerBound)
      .write(to: directory.store)
    let store = try Store(
      directory.store, fileSystem: FaultyFileSystem(bootIdentifier: otherBoot))
    #expect(try store.count() == 4)
    #expect(storeError { _ = try store.value(forKey: "key\(index)") }?.corruption != nil)
  }

  @Test("A batch proves which earlier records were durable")
  func batchMark() throws {
    let killed = try KilledStore { store in
      try store.setValue("value", forKey: "key0", durability: .durable)
      try store.write { try $0.setValue("value", forKey: "key1") }
    }
    let name = try killed.lastSegment
    let record = try killed.lastRecords[0]
    try expectLost(
      killed.image.flipping(name, at: record.offset), boot: otherBoot, at: record, in: name)
  }

  /// The remains of a store that was closed cleanly with five keys, reopened, and killed after one
  /// more write; and the segment that has them.
  private static func closedAndKilled() throws -> (Image, segment: String) {
    let directory = try TemporaryDirectory()
    do {
      let store = try Store(directory.store)
      for number in 0..<5 { try store.setValue("value", forKey: "key\(number)") }
      try store.close()
    }
    let store = try Store(directory.store, background: ManualBackgroundQueue())
    try store.setValue("value", forKey: "key5")
    let image = try Image(of: directory.store)
    return (image, try #require(image.segmentNames.last))
  }

  /// Expects an open and a check to find damage in the segment.
  private func expectDamage(
    _ image: Image, boot: [UInt8]?, in file: String, at offset: Int? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let corruption = try Opening(image, boot: boot).corruption
    #expect(corruption?.file == file, sourceLocation: sourceLocation)
    if let offset { #expect(corruption?.offset == offset, sourceLocation: sourceLocation) }
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let errors = try Store.verify(path: directory.store).errors
    #expect(!errors.isEmpty, sourceLocation: sourceLocation)
  }

  @Test(
    "What a clean close made durable is not a torn tail when the store is killed later",
    arguments: [nil, otherBoot], [2, 4])
  func durableByClose(boot: [UInt8]?, index: Int) throws {
    // The last write did not reach the disk. The manifest still records how far the log was
    // durable.
    let (image, name) = try Self.closedAndKilled()
    let records = try image.records(in: name)
    for isCut in [false, true] {
      let lost = image.changing(name) { bytes in
        if isCut {
          bytes.removeLast(bytes.count - records[5].offset)
        } else {
          for offset in records[5].range { bytes[offset] = 0 }
        }
      }
      // Losing what was not durable is not damage.
      guard case .contents(let kept) = try Opening(lost, boot: boot) else {
        Issue.record("refused")
        return
      }
      #expect(kept.count == 5)
      try expectDamage(
        lost.flipping(name, at: records[index].offset), boot: boot, in: name,
        at: records[index].offset)
    }
  }

  @Test(
    "A segment shorter than what a clean close made durable is corruption",
    arguments: [nil, otherBoot])
  func shortenedAfterClose(boot: [UInt8]?) throws {
    let (image, name) = try Self.closedAndKilled()
    let cut = try image.records(in: name)[2].offset
    try expectDamage(
      image.changing(name) { $0.removeLast($0.count - cut) }, boot: boot, in: name)
  }

  // MARK: Damage in more than one place

  @Test("A damaged value followed by a damaged head with a later record is not a torn tail")
  func valueAndHead() throws {
    let killed = try Self.five.get()
    let name = try killed.lastSegment
    let records = try killed.lastRecords
    let image = killed.image
      .flipping(name, at: records[2].valueRange.lowerBound)
      .flipping(name, at: records[3].offset)
    // The fifth record proves that the fourth was stored.
    let opening = try Opening(image)
    #expect(opening.corruption?.file == name)
  }

  @Test("A damaged record before a complete batch is not a torn tail")
  func beforeBatch() throws {
    let killed = try KilledStore { store in
      try store.setValue("value", forKey: "a")
      try store.setValue("value", forKey: "b")
      try store.write { batch in
        try batch.setValue("value", forKey: "c")
        try batch.setValue("value", forKey: "d")
      }
    }
    let name = try killed.lastSegment
    let record = try killed.lastRecords[1]
    try expectLost(killed.image.flipping(name, at: record.offset), at: record, in: name)
  }

  @Test("A damaged batch before another complete batch is not a torn tail", arguments: 0..<2)
  func batchBeforeBatch(index: Int) throws {
    let killed = try KilledStore { store in
      for prefix in ["a", "b"] {
        try store.write { batch in
          try batch.setValue("value", forKey: prefix + "1")
          try batch.setValue("value", forKey: prefix + "2")
        }
      }
    }
    let name = try killed.lastSegment
    let records = try killed.lastRecords
    try expectLost(
      killed.image.flipping(name, at: records[index].offset), at: records[0], in: name)
  }

  @Test("A later record that ends in zeros shows that the one before is damaged")
  func laterRecordEndsInZeros() throws {
    // A record may begin near the last non-zero byte: its key is a zero byte.
    let killed = try KilledStore { store in
      try store.setValue("alpha", forKey: "first")
      try store.setValue([UInt8](), forKey: [UInt8]([0]))
    }
    let name = try killed.lastSegment
    let record = try killed.lastRecords[0]
    try expectLost(killed.image.flipping(name, at: record.offset + 10), at: record, in: name)
  }
}
