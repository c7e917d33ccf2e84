import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("Salvage")
struct SalvageTests {
  /// A closed store with every kind of record and file.
  static let closed = BitFlipTests.ClosedStore.shared

  /// A closed store of one segment in which keys were overwritten and removed.
  static let history = Result {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, background: ManualBackgroundQueue())
    try store.setValue("old", forKey: "a")
    try store.setValue("kept", forKey: "b")
    try store.setValue("new", forKey: "a")
    try store.setValue("gone", forKey: "c")
    try store.removeValue(forKey: "c")
    try store.write { batch in
      try batch.setValue("one", forKey: "d")
      try batch.setValue("two", forKey: "e")
    }
    try store.setValue("last", forKey: "f")
    try store.close()
    return try Image(of: directory.store).withoutReserves()
  }

  static func text(_ salvaged: Salvaged) -> [String: String] {
    salvaged.values.mapValues { String(decoding: $0, as: UTF8.self) }
  }

  let sound = ["a": "new", "b": "kept", "d": "one", "e": "two", "f": "last"]

  // MARK: What is sound

  @Test("A sound store is copied with everything known about each entry, versions included")
  func everything() throws {
    let clock = ManualClock()
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small(clock: clock))
    try store.setValue(
      "v", forKey: "k",
      options: EntryOptions(
        cost: 7, lifetime: .seconds(100), idleLimit: .seconds(50), metadata: [1, 2]))
    clock.advance(by: .seconds(10))
    try store.setValue("", forKey: "empty")
    try store.setValue([UInt8](repeating: 3, count: 3 << 20), forKey: "large")
    try store.close()
    let expected = try Image(of: directory.store).openedEntries(clock)
    let salvaged = try Salvaged(directory, clock: clock)
    #expect(salvaged.entries.mapValues(\.info.version) == expected.mapValues(\.info.version))
    for (key, entry) in salvaged.entries {
      var other = expected[key]
      // Opening counts as an access, at its own time.
      other?.info.accessed = entry.info.accessed
      #expect(entry == other)
    }
    #expect(salvaged.report.isComplete && salvaged.report.kinds.isEmpty)
    #expect(salvaged.report.entryCount == 3 && salvaged.report.lostKeyCount == 0)
    clock.advance(by: .seconds(95))
    let copy = try Store(directory("copy"), .small(clock: clock))
    #expect(try copy.value(forKey: "k") == nil, "the end of the lifetime is kept")
    // Versions continue after those of the store.
    let last = try #require(expected.values.map(\.info.version).max())
    #expect(try copy.setValue("x", forKey: "x") > last)
    try copy.close()
  }

  @Test("From a store with every kind of record, a salvage copies what an open finds")
  func everyRecord() throws {
    let image = try Self.closed.get().image
    let salvaged = try Salvaged(image)
    #expect(salvaged.values == (try Self.closed.get().contents))
    #expect(salvaged.report.isComplete)
    #expect(salvaged.entries.mapValues(\.info.version) == (try image.versions()))
  }

  @Test(
    "From a killed store, a salvage copies what an open finds, in this boot and in another",
    arguments: [false, true])
  func killed(isOtherBoot: Bool) throws {
    let boot = isOtherBoot ? otherBoot : nil
    let killed = try KilledStore { store in
      for number in 0..<500 {
        try store.setValue([UInt8](repeating: 1, count: number), forKey: "key\(number % 50)")
        if number % 7 == 0 { try store.removeValue(forKey: "key\(number % 30)") }
        if number == 400 { try store.sync() }
      }
    } last: { store in
      try store.write { batch in
        try batch.setValue("b1", forKey: "key1")
        try batch.setValue("b2", forKey: "key2")
      }
    }
    #expect(try Salvaged(killed.image, boot: boot).values == killed.after)
    // Every way to tear the last batch.
    let last = try killed.lastRecords.suffix(2)
    for offset in stride(from: last.first!.offset, to: last.last!.range.upperBound, by: 5) {
      let torn = killed.image.changing(try killed.lastSegment) { bytes in
        for index in offset..<bytes.count { bytes[index] = 0 }
      }
      let salvaged = try Salvaged(torn, boot: boot)
      #expect(salvaged.values == killed.before, "torn at \(offset)")
    }
  }

  @Test("An empty store becomes an empty store")
  func empty() throws {
    let directory = try TemporaryDirectory()
    try Store(directory.store).close()
    let salvaged = try Salvaged(directory)
    #expect(salvaged.entries.isEmpty && salvaged.report.isComplete)
  }

  // MARK: Damaged records

  @Test("A damaged value loses its key; the older value does not reappear")
  func damagedValue() throws {
    let image = try Self.history.get()
    let record = try image.records(in: image.segmentNames[0])[2]
    let salvaged = try Salvaged(
      image.flipping(image.segmentNames[0], at: record.valueRange.lowerBound))
    #expect(Self.text(salvaged) == sound.filter { $0.key != "a" })
    #expect(salvaged.report.lostKeyCount == 1)
    #expect(salvaged.report.losses.map(\.place.cause) == [.badValue])
    #expect(salvaged.report.losses.first?.range == record.valueRange)
    #expect(salvaged.report.kinds.isEmpty && !salvaged.report.isComplete)
  }

  @Test("A damaged head is skipped, and the warning says what it may have been")
  func damagedHead() throws {
    let image = try Self.history.get()
    let name = image.segmentNames[0]
    let records = try image.records(in: name)
    for (index, record) in records.enumerated() {
      let salvaged = try Salvaged(image.flipping(name, at: record.offset + 9))
      var expected = sound
      switch index {
      case 1: expected["b"] = nil
      case 2: expected["a"] = "old"
      case 4: expected["c"] = "gone"
      case 5: expected["d"] = nil
      case 6: expected["e"] = nil
      case 7: expected["f"] = nil
      default: break
      }
      #expect(Self.text(salvaged) == expected, "record \(index)")
      #expect(salvaged.report.losses.map(\.range) == [record.range])
      #expect(salvaged.report.kinds == [.olderValuesMayBeBack])
    }
  }

  @Test("A truncated segment loses what is missing, including the key of a cut value")
  func truncated() throws {
    let image = try Self.history.get()
    let name = image.segmentNames[0]
    let records = try image.records(in: name)
    let last = try #require(records.last)
    let salvaged = try Salvaged(
      image.changing(name) { $0.removeLast($0.count - last.valueRange.lowerBound - 1) })
    #expect(Self.text(salvaged) == sound.filter { $0.key != "f" })
    #expect(salvaged.report.lostKeyCount == 1)
    let short = try Salvaged(
      image.changing(name) { $0.removeLast($0.count - records[3].offset) })
    #expect(Self.text(short) == ["a": "new", "b": "kept"])
    #expect(short.report.losses.map(\.place.cause) == [.fileTooShort])
  }

  // MARK: The manifest

  @Test("Without a manifest, records are validated by the segments' headers", arguments: [0, 1, 2])
  func noManifest(way: Int) throws {
    let image = try Self.history.get()
    var damaged = image
    switch way {
    case 0: damaged.files["MANIFEST"] = nil
    case 1: damaged = image.flipping("MANIFEST", at: 70)
    default: damaged.files["MANIFEST"] = []
    }
    let salvaged = try Salvaged(damaged)
    #expect(Self.text(salvaged) == sound)
    #expect(salvaged.report.manifest == (way == 0 ? .missing : .damaged))
    #expect(salvaged.report.kinds == [.olderValuesMayBeBack, .removedDataMayBeBack])
  }

  @Test(
    "Bytes discarded beyond a sealed segment's length do not reappear while there is a manifest")
  func beyondSealedLength() throws {
    let image = try Self.history.get()
    let records = try image.records(in: image.segmentNames[0])
    let cut = try image.changingManifest { manifest in
      let open = manifest.openSegments[0]
      manifest.openSegments = []
      manifest.sealedSegments = [
        .init(
          id: open.id, salt: open.salt, byteCount: records[5].offset, lowestSequence: 1,
          highestSequence: 5, compactedAt: 0)
      ]
    }
    #expect(Self.text(try Salvaged(cut)) == ["a": "new", "b": "kept"])
    var lost = cut
    lost.files["MANIFEST"] = nil
    #expect(Self.text(try Salvaged(lost)) == sound)
  }

  @Test("Records at or below the floor do not count")
  func floor() throws {
    let image = try Self.history.get().changingManifest { $0.floorSequence = 5 }
    #expect(Self.text(try Salvaged(image)) == ["d": "one", "e": "two", "f": "last"])
  }

  @Test("Files that the manifest does not list are left out")
  func unlisted() throws {
    let image = try Self.history.get()
    let name = image.segmentNames[0]
    let bytes = try #require(image.files[name])
    var other = try image.changingManifest { manifest in
      manifest.openSegments = []
      manifest.nextID = 9
      manifest.retiredIDs = [1]
    }
    #expect(try Salvaged(other).entries.isEmpty)
    #expect(try Salvaged(other).report.kinds.isEmpty)
    other = try other.changingManifest { $0.retiredIDs = [] }
    other.files[name] = bytes
    #expect(try Salvaged(other).report.kinds == [.unlistedSegments])
  }

  // MARK: Headers

  @Test("With a manifest, a damaged header costs nothing observable", arguments: 0..<72)
  func damagedHeader(offset: Int) throws {
    let image = try Self.history.get()
    let name = image.segmentNames[0]
    if (8..<10).contains(offset) { return }
    let salvaged = try Salvaged(image.flipping(name, at: offset))
    #expect(Self.text(salvaged) == sound)
    let isRestored = !(48..<68).contains(offset)
    #expect(salvaged.report.isComplete == isRestored)
    #expect(salvaged.report.kinds.contains(.versionsChanged) == !isRestored)
  }

  @Test("A sealed segment's numbers bound its base", arguments: [48, 50, 58, 64])
  func sealedHeader(offset: Int) throws {
    let image = try Self.closed.get().image
    let expected = try Self.closed.get().contents
    for name in image.segmentNames {
      let salvaged = try Salvaged(image.flipping(name, at: offset))
      #expect(salvaged.values == expected, "\(name)")
    }
  }

  @Test("Without manifest and header, a key whose order is unknown is lost, not guessed")
  func unknownOrder() throws {
    var image = try Self.closed.get().image
    let contents = try Self.closed.get().contents
    image.files["MANIFEST"] = nil
    var lostCount = 0
    for name in image.segmentNames {
      let salvaged = try Salvaged(image.flipping(name, at: 50))
      for (key, value) in salvaged.values { #expect(contents[key] == value, "\(key)") }
      if salvaged.entries["overwritten"] == nil { lostCount += 1 }
    }
    #expect(lostCount > 0)
  }

  @Test("The manifest distinguishes segments of two stores; without one they are refused")
  func twoStores() throws {
    let image = try Self.history.get()
    let foreign = try Self.closed.get().image
    let name = try #require(foreign.segmentNames.last)
    var mixed = image
    mixed.files[name] = foreign.files[name]
    #expect(Self.text(try Salvaged(mixed)) == sound)
    var lost = mixed
    lost.files["MANIFEST"] = nil
    let error = storeError { _ = try Salvaged(lost) }
    guard case .notAStore(_, let reason)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains("2 stores"))
    // Even a damaged manifest may show which store is meant.
    #expect(Self.text(try Salvaged(mixed.flipping("MANIFEST", at: 70))) == sound)
  }

  @Test("Another major version is refused")
  func version() throws {
    let image = try Self.history.get()
    let name = image.segmentNames[0]
    let other = image.changing(name) { bytes in
      bytes[8] = 2
      let checksum = CRC32C.checksum(of: Array(bytes[0..<64]).rawSpan)
      bytes.withMutableSpan { $0.store(checksum, at: 64) }
    }
    #expect(
      storeError { _ = try Salvaged(other) } == .unsupportedVersion(file: name, major: 2))
  }

  // MARK: The end of the log

  @Test("In another boot, records beyond the first hole of the unsynced tail do not count")
  func tornTailBehindDamage() throws {
    let killed = try DamageTests.synced.get()
    let name = try killed.lastSegment
    let records = try killed.lastRecords
    // Damage to a synced record, and a hole in the unsynced tail.
    let image = killed.image.flipping(name, at: records[0].offset)
      .flipping(name, at: records[2].offset)
    // The mark of the damaged record is lost with it, so nothing is known to be durable.
    #expect(try Salvaged(image, boot: otherBoot).entries.isEmpty)
    let proven = killed.image.flipping(name, at: records[0].offset)
      .flipping(name, at: records[3].offset)
    let salvaged = try Salvaged(proven, boot: otherBoot)
    #expect(salvaged.entries.keys.sorted() == ["key1", "key2"])
    #expect(salvaged.report.losses.map(\.range) == [records[0].range])
    #expect(salvaged.report.tornByteCount > 0)
    // In the same boot all of it was written.
    #expect(try Salvaged(image).entries.keys.sorted() == ["key1", "key3"])
  }

  @Test("Sound records of a damaged batch count if the batch was complete")
  func batchInDurablePart() throws {
    let image = try Self.history.get()
    let records = try image.records(in: image.segmentNames[0])
    let salvaged = try Salvaged(image.flipping(image.segmentNames[0], at: records[5].offset))
    #expect(salvaged.values["e"] == Array("two".utf8))
  }

  @Test("A damaged batch at the end of a log that is damaged elsewhere loses its keys")
  func unprovenBatch() throws {
    let killed = try KilledStore { store in
      try store.setValue("first", forKey: "a")
      try store.setValue("second", forKey: "b")
      try store.setValue("third", forKey: "c")
    } last: { store in
      try store.write { batch in
        try batch.setValue("batch a", forKey: "a")
        try batch.setValue("batch b", forKey: "b")
      }
    }
    let name = try killed.lastSegment
    let records = try killed.lastRecords
    let damaged = killed.image.flipping(name, at: records[4].offset)
    #expect(try Salvaged(damaged).values == killed.before)
    let twice = damaged.flipping(name, at: records[1].offset)
    let salvaged = try Salvaged(twice)
    // The batch may or may not have been applied, so neither value of `a` is certain.
    #expect(Self.text(salvaged) == ["c": "third"])
    #expect(salvaged.report.losses.contains { $0.place.cause == .unfinishedBatch })
  }
}

extension Image {
  fileprivate func openedEntries(_ clock: any WallClock) throws -> [String: ByteEntry] {
    let directory = try TemporaryDirectory()
    try write(to: directory.store)
    let store = try Store(directory.store, .small(clock: clock), readOnly: true)
    var entries: [String: ByteEntry] = [:]
    try store.forEachEntry { entry in
      entries[String(decoding: entry.key, as: UTF8.self)] = entry
      return .next
    }
    return entries
  }

  fileprivate func versions() throws -> [String: UInt64] {
    try #require(try opened()).compactMapValues { $0?.info.version }
  }
}
