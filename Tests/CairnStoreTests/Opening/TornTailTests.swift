import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// What a killed process may leave at the end of the log.
@Suite("Recovery cuts a torn tail")
struct TornTailTests {
  /// Three records. The last has every kind of field, key, metadata, value and padding.
  static let killed = Result {
    try KilledStore { store in
      try store.setValue("one", forKey: "a")
      try store.setValue("two", forKey: "b")
    } last: { store in
      try store.setValue(
        "the last value", forKey: "last",
        options: EntryOptions(
          cost: 3, lifetime: .seconds(1_000_000), idleLimit: .seconds(1_000_000),
          metadata: [1, 2, 3, 4, 5]))
    }
  }
  /// The bytes of the last record: 24 + 26 of fields, 4 of key, 5 of metadata, 14 of value, padding.
  static let byteCount = 80

  @Test("The last record has the size that the tests below rely on")
  func size() throws {
    #expect(try Self.killed.get().lastRecords.last?.range.count == Self.byteCount)
  }

  @Test(
    "Without damage, every record is found, in this boot and another", arguments: [nil, otherBoot])
  func undamaged(boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    #expect(try Opening(killed.image, boot: boot) == .contents(killed.after))
  }

  @Test("The file cut inside the last record", arguments: 0..<byteCount)
  func truncated(kept: Int) throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      bytes.removeLast(bytes.count - last.offset - kept)
    }
    #expect(try Opening(image) == .contents(killed.before))
    if kept % 8 == 3 { #expect(try Opening(image, boot: otherBoot) == .contents(killed.before)) }
  }

  /// What the last record is overwritten with.
  enum Damage: String, CaseIterable, Sendable { case zero, ones, flip }

  @Test("A byte of the last record damaged", arguments: 0..<byteCount, Damage.allCases)
  func damaged(index: Int, damage: Damage) throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      switch damage {
      case .zero: bytes[last.offset + index] = 0
      case .ones: bytes[last.offset + index] = 0xFF
      case .flip: bytes[last.offset + index] ^= 0x10
      }
    }
    // Damage to the padding, or none at all, loses nothing.
    let isHarmless = image == killed.image || last.paddingRange.contains(last.offset + index)
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let store = try Store(directory.store)
    #expect(try store.contents() == (isHarmless ? killed.after : killed.before))
    #expect((try store.statistics().recovery.tornByteCount > 0) == !isHarmless)
  }

  @Test(
    "Everything after some byte of the last record is overwritten", arguments: 0..<byteCount,
    [0, 0xFF] as [UInt8])
  func overwritten(from index: Int, with byte: UInt8) throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      for offset in (last.offset + index)..<last.range.upperBound { bytes[offset] = byte }
    }
    let isHarmless = image == killed.image || last.offset + index >= last.paddingRange.lowerBound
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    #expect(
      try Store(directory.store).contents() == (isHarmless ? killed.after : killed.before))
  }

  @Test("Garbage after the last record", arguments: [1, 8, 24, 100, 5000])
  func garbage(count: Int) throws {
    var generator = Seed.generator()
    let killed = try Self.killed.get()
    let end = try #require(try killed.lastRecords.last).range.upperBound
    let garbage = generator.bytes(count: count).map { $0 | 1 }
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      bytes.replaceSubrange(end..<(end + count), with: garbage)
    }
    #expect(try Opening(image) == .contents(killed.after), Seed.comment)
    #expect(try Opening(image, boot: otherBoot) == .contents(killed.after), Seed.comment)
  }

  @Test("Only the header of the segment is left: no record is found")
  func headerOnly() throws {
    let killed = try Self.killed.get()
    let image = killed.image.changing(try killed.lastSegment) {
      $0.removeLast($0.count - SegmentHeader.byteCount)
    }
    // The test opens it in another boot: in this boot, no kill loses all three records, but the
    // file itself does not show this.
    #expect(try Opening(image, boot: otherBoot) == .contents([:]))
  }

  @Test("Sequence numbers after a recovery are higher than any that was discarded")
  func sequences() throws {
    let killed = try KilledStore { store in
      for number in 0..<5 { try store.setValue("v", forKey: "key\(number)") }
    }
    let records = try killed.lastRecords
    // In another boot, everything from the second record on is discarded.
    let image = killed.image.flipping(try killed.lastSegment, at: records[1].offset + 8)
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let store = try Store(
      directory.store, fileSystem: FaultyFileSystem(bootIdentifier: otherBoot))
    #expect(try store.count() == 1)
    #expect(try store.setValue("v", forKey: "new") > 5)
  }

  @Test("The torn bytes are reported, in the log too, without a key or value")
  func report() throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let directory = try TemporaryDirectory()
    try killed.image.flipping(try killed.lastSegment, at: last.offset).write(to: directory.store)
    let messages = Messages()
    let store = try Store(
      directory.store, .small { $0.log = DiagnosticLog { messages.add($0.text) } })
    let recovery = try store.statistics().recovery
    #expect(recovery.source == .scan)
    #expect(recovery.wasClean == false)
    #expect(recovery.replayedRecordCount == 2)
    #expect(recovery.tornByteCount > 0 && recovery.tornByteCount <= last.range.count)
    #expect(messages.all.contains { $0.contains("\(recovery.tornByteCount) bytes") })
    #expect(!messages.all.contains { $0.contains("last") })
  }

  @Test("Verifying a killed store finds the same end and no error")
  func verify() throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let directory = try TemporaryDirectory()
    try killed.image.flipping(try killed.lastSegment, at: last.offset).write(to: directory.store)
    let report = try Store.verify(path: directory.store)
    #expect(report.errors == [])
    #expect(report.recordCount == 2)
    #expect(report.tornByteCount > 0)
  }

  @Test("A torn tombstone at the very end leaves its key")
  func tombstone() throws {
    let killed = try KilledStore {
      try $0.setValue("v", forKey: "key")
    } last: {
      try $0.removeValue(forKey: "key")
    }
    #expect(try Opening(killed.image) == .contents([:]))
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.flipping(try killed.lastSegment, at: last.offset)
    #expect(try Opening(image) == .contents(killed.before))
  }

  @Test("A large value whose head was not written yet is cut")
  func largeValue() throws {
    let killed = try KilledStore {
      try $0.setValue("v", forKey: "key")
    } last: {
      try $0.setValue([UInt8](repeating: 3, count: 200_000), forKey: "large", durability: .durable)
    }
    #expect(try Opening(killed.image) == .contents(killed.after))
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      for offset in last.headRange { bytes[offset] = 0 }
    }
    #expect(try Opening(image) == .contents(killed.before))
  }
}
