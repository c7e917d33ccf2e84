import CairnRepair
import CairnStore
import Testing

/// An open discards what a crash may have left unfinished at the end of the log. Damage to the last
/// write looks the same. So a salvage copies what it can of that write, and never reports a copy
/// without it as complete.
@Suite("Salvage at the end of the log")
struct SalvageLastBatchTests {
  private static let count = 256
  private static let killed = Result {
    try KilledStore { store in
      for number in 0..<3 { try store.setValue("old", forKey: "key \(number)") }
    } last: { store in
      try store.write { batch in
        for number in 0..<count { try batch.setValue("value \(number)", forKey: "key \(number)") }
      }
    }
  }

  private func flipped(_ number: Int, _ place: (Image.PlacedRecord) -> Int) throws -> Image {
    let killed = try Self.killed.get()
    let record = try killed.lastRecords[3 + number]
    return killed.image.flipping(try killed.lastSegment, at: place(record), bit: 3)
  }

  @Test(
    "One flipped bit in the last batch costs one record",
    arguments: [0, 1, 100, 254], [nil, otherBoot])
  func flippedHead(number: Int, boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    let image = try flipped(number) { $0.offset + 9 }
    // An open cannot distinguish this batch from one that a crash cut short.
    #expect(try Opening(image, boot: boot) == .contents(killed.before))
    let salvaged = try Salvaged(image, boot: boot)
    var expected = killed.after
    expected["key \(number)"] = killed.before["key \(number)"]
    #expect(salvaged.values == expected)
    #expect(!salvaged.report.isComplete)
    #expect(salvaged.report.losses.map(\.range) == [try killed.lastRecords[3 + number].range])
    #expect(salvaged.report.tornByteCount == 0)
    #expect(salvaged.report.kinds == [.olderValuesMayBeBack])
  }

  @Test(
    "A damaged value in the last batch costs its key, and the older value does not reappear",
    arguments: [0, 100, 254], [nil, otherBoot])
  func flippedValue(number: Int, boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    let image = try flipped(number) { $0.valueRange.lowerBound }
    let salvaged = try Salvaged(image, boot: boot)
    #expect(salvaged.values == killed.after.filter { $0.key != "key \(number)" })
    #expect(!salvaged.report.isComplete)
    #expect(salvaged.report.losses.map(\.place.cause) == [.badValue])
    #expect(salvaged.report.lostKeyCount == 1)
  }

  @Test(
    "Without its end, a batch may never have been written: it is left out, and the copy incomplete",
    arguments: [nil, otherBoot])
  func withoutEnd(boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    for image in [
      try flipped(255) { $0.offset + 9 }, try flipped(255) { $0.valueRange.lowerBound },
    ] {
      let salvaged = try Salvaged(image, boot: boot)
      #expect(salvaged.values == killed.before)
      #expect(salvaged.report.tornByteCount > 0 && !salvaged.report.isComplete)
      #expect(salvaged.report.lossCount == 0)
    }
  }

  @Test("A batch that a crash cut short is left out, as by an open", arguments: [1, 100, 255, 256])
  func cutShort(kept: Int) throws {
    let killed = try Self.killed.get()
    // All records except the last value.
    let last = try #require(try killed.lastRecords.last)
    let end =
      kept < Self.count ? try killed.lastRecords[3 + kept].offset : last.valueRange.lowerBound
    let image = killed.image.changing(try killed.lastSegment) { bytes in
      for index in end..<bytes.count { bytes[index] = 0 }
    }
    let salvaged = try Salvaged(image)
    #expect(salvaged.values == killed.before)
    #expect(!salvaged.report.isComplete)
  }

  @Test("If the log is damaged elsewhere too, the batch still counts")
  func damagedElsewhere() throws {
    let killed = try Self.killed.get()
    let image = try flipped(100) { $0.offset + 9 }
    let twice = image.flipping(
      try killed.lastSegment, at: try killed.lastRecords[1].offset + 9)
    let salvaged = try Salvaged(twice)
    #expect(salvaged.values == killed.after.filter { $0.key != "key 100" })
    #expect(salvaged.report.lossCount == 2 && !salvaged.report.isComplete)
  }

  /// `SalvageFuzzer --seed 11506`: because of a damaged value before the batch, the log was cut
  /// there, and the batch with it.
  @Test(
    "One flipped bit in the last batch costs one record even after a record with a damaged value")
  func damagedValueBefore() throws {
    let killed = try Self.killed.get()
    let value = try killed.lastRecords[2].valueRange.lowerBound
    let image = try flipped(100) { $0.offset + 9 }.flipping(try killed.lastSegment, at: value)
    let salvaged = try Salvaged(image)
    #expect(salvaged.values == killed.after.filter { $0.key != "key 100" })
    #expect(salvaged.report.losses.map(\.place.cause) == [.badRecordHeader])
  }

  @Test(
    "The last put, damaged, counts as torn bytes, and the copy is not complete",
    arguments: [nil, otherBoot])
  func lastPut(boot: [UInt8]?) throws {
    let killed = try KilledStore { store in
      try store.setValue("first", forKey: "a")
    } last: { store in
      try store.setValue("second", forKey: "a")
    }
    let last = try #require(try killed.lastRecords.last)
    for offset in [last.offset + 9, last.valueRange.lowerBound] {
      let image = killed.image.flipping(try killed.lastSegment, at: offset)
      let salvaged = try Salvaged(image, boot: boot)
      #expect(salvaged.values == killed.before)
      #expect(salvaged.report.tornByteCount > 0 && !salvaged.report.isComplete)
    }
    #expect(try Salvaged(killed.image, boot: boot).report.isComplete)
  }

  @Test(
    "A segment that the manifest does not list may have stored data: the copy is not complete")
  func unlistedSegment() throws {
    let killed = try Self.killed.get()
    var image = try killed.image.changingManifest { $0.nextID += 5 }
    let id = try image.manifest.nextID - 1
    image.files[FileName.segment(SegmentID(rawValue: id))] = [1]
    let salvaged = try Salvaged(image)
    #expect(salvaged.values == killed.after)
    #expect(salvaged.report.kinds == [.unlistedSegments] && !salvaged.report.isComplete)
  }

  /// A salvage once ignored the checkpoint, and treated a loss of covered records as a torn tail.
  @Test("What a checkpoint covers was durable and is not torn", arguments: [nil, otherBoot])
  func covered(boot: [UInt8]?) throws {
    let killed = try KilledStore { store in
      for number in 0..<4 { try store.setValue("value", forKey: "key \(number)") }
      try store.checkpoint()
    }
    #expect(try killed.image.manifest.checkpointID != 0)
    let records = try killed.lastRecords
    let image = killed.image.flipping(try killed.lastSegment, at: records[2].offset + 9)
    let salvaged = try Salvaged(image, boot: boot)
    #expect(salvaged.values == killed.after.filter { $0.key != "key 2" })
    #expect(salvaged.report.losses.map(\.range) == [records[2].range])
    let last = killed.image.flipping(try killed.lastSegment, at: records[3].offset + 9)
    let without = try Salvaged(last, boot: boot)
    #expect(without.values == killed.after.filter { $0.key != "key 3" })
    #expect(
      without.report.losses.contains {
        $0.place.cause == .lostRecords || $0.place.cause == .badRecordHeader
      })
  }
}
