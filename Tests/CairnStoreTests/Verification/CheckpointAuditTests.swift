import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("A check compares the checkpoint with the log")
struct CheckpointAuditTests {
  private func errors(_ image: Image) throws -> [Corruption] {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    return try Store.verify(path: directory.store).errors
  }

  /// Only differences, each in an entry of the checkpoint or at the beginning of its shard.
  private func expectDifferences(
    _ image: Image, _ fixture: CheckpointFixture, count: ClosedRange<Int>,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let errors = try errors(image)
    #expect(count.contains(errors.count), "\(errors)", sourceLocation: sourceLocation)
    let header = try fixture.header
    for error in errors {
      #expect(error.file == fixture.name, sourceLocation: sourceLocation)
      #expect(error.cause == .differsFromLog, sourceLocation: sourceLocation)
      #expect(
        (header.headerByteCount...header.oldestOffset).contains(error.offset),
        sourceLocation: sourceLocation)
    }
  }

  @Test("A sound checkpoint has no difference, whatever came after it", arguments: [0, 1, 2])
  func sound(later: Int) throws {
    let fixture = try CheckpointFixture { store in
      if later == 0 { return }
      for number in 11..<20 { try store.setValue("later", forKey: "key\(number)") }
      for number in 20..<30 { try store.removeValue(forKey: "key\(number)") }
      for number in [35, 42] {
        try store.setLifetime(.seconds(1 << 33), forKey: "key\(number)")
      }
      if later == 2 { try store.compact() }
      try store.setValue("last", forKey: "key40")
    }
    if later == 2 {
      let listed = try fixture.image.manifest.sealedSegments.map(\.id)
      #expect(try !fixture.header.segments.allSatisfy { listed.contains($0.id) })
    }
    #expect(try errors(fixture.image) == [])
  }

  /// Opening such a store finds none of the keys, and reports nothing.
  @Test("A manifest with another secret makes every entry wrong", arguments: [false, true])
  func renewedSecret(isCompacted: Bool) throws {
    let fixture = try CheckpointFixture { store in
      if isCompacted { try store.compact() }
    }
    let renewed = try fixture.image.changingManifest { $0.hashSecret[3] ^= 1 }
    try expectDifferences(renewed, fixture, count: 30...512)
    let opened = try TemporaryDirectory()
    try renewed.write(to: opened.store)
    #expect(try Store(opened.store, readOnly: true).value(forKey: "key50") == nil)
    // Records do not depend on the secret.
    let without = try renewed.changingManifest { manifest in
      manifest.retiredIDs.append(manifest.checkpointID)
      manifest.checkpointID = 0
      manifest.checkpointChecksum = 0
    }
    #expect(try errors(without) == [])
    let directory = try TemporaryDirectory()
    try without.write(to: directory.store)
    #expect(try Store(directory.store).contents() == fixture.contents)
  }

  /// The entries of a checkpoint with their places in its file.
  private func entries(_ fixture: CheckpointFixture) throws -> [(offset: Int, entry: IndexEntry)] {
    let bytes = try #require(fixture.image.files[fixture.name])
    return try fixture.header.shards.flatMap { shard in
      (0..<shard.count).map { number in
        let offset = shard.offset + number * Checkpoint.entryByteCount
        return (offset, IndexEntry(decoding: bytes.rawSpan, at: offset))
      }
    }
  }

  /// The checkpoint with the second word of an entry changed and all checksums corrected.
  private func changing(
    _ fixture: CheckpointFixture, _ words: [(offset: Int, word: UInt64)]
  ) throws -> Image {
    var bytes = try #require(fixture.image.files[fixture.name])
    for (offset, word) in words { bytes.withMutableSpan { $0.store(word, at: offset) } }
    ChecksumRepair.checkpoint(&bytes, shape: true)
    return try fixture.binding(bytes)
  }

  @Test("Entries that name each other's records are wrong")
  func exchanged() throws {
    let fixture = try CheckpointFixture()
    let entries = try entries(fixture)
    let plain = entries.filter { $0.entry.flags.isEmpty }
    // Entries of two shards. For one shard, only the first difference of each kind is reported.
    let (one, other) = (try #require(plain.first), try #require(plain.last))
    let image = try changing(
      fixture,
      [(one.offset + 8, other.entry.words.1), (other.offset + 8, one.entry.words.1)])
    try expectDifferences(image, fixture, count: 2...4)
  }

  @Test("An entry that names an older record of its key is wrong")
  func older() throws {
    let fixture = try CheckpointFixture()
    let header = try fixture.header
    var places: [Location] = []
    for segment in header.segments {
      for record in try fixture.image.records(in: FileName.segment(segment.id))
      where record.key == Array("key50".utf8) {
        places.append(Location(granule: segment.granule, offset: record.offset))
      }
    }
    #expect(places.count == 2)
    let newest = try #require(try entries(fixture).first { places.contains($0.entry.location) })
    let old = try #require(places.first { $0 != newest.entry.location })
    let word = old.rawValue << 24 | newest.entry.words.1 & 0xFF_FFFF
    let image = try changing(fixture, [(newest.offset + 8, word)])
    try expectDifferences(image, fixture, count: 1...2)
    #expect(try errors(image).contains { $0.offset == newest.offset })
  }

  /// With a higher number, an open takes the records after the checkpoint for old copies and leaves
  /// them out.
  @Test("A last sequence number that is not that of its records is wrong", arguments: [-1, 1])
  func lastSequence(change: Int) throws {
    let fixture = try CheckpointFixture { store in try store.setValue("later", forKey: "later") }
    var bytes = try #require(fixture.image.files[fixture.name])
    let last = Int(bytes.rawSpan.load(UInt64.self, at: 48)) + change
    bytes.withMutableSpan { $0.store(UInt64(last), at: 48) }
    let found = try errors(try fixture.binding(bytes))
    // A lower number contradicts the table of segments too.
    #expect(found.first?.file == fixture.name)
    if change > 0 {
      #expect(
        found == [Corruption(file: fixture.name, offset: 48, cause: .differsFromLog)])
    }
  }

  /// A disk that does not give the bytes was told as "the checkpoint contradicts the records".
  @Test("An I/O error is thrown, and no difference")
  func unreadable() throws {
    let fixture = try CheckpointFixture { store in
      for number in 11..<20 { try store.setValue("later", forKey: "key\(number)") }
      try store.setLifetime(.seconds(1 << 33), forKey: "key42")
    }
    let directory = try TemporaryDirectory()
    try fixture.image.write(to: directory.store)
    var errorCount = 0
    for index in 0..<1000 {
      let system = FaultyFileSystem(
        fault: .init(call: .read, index: index, errorNumber: EIO, isLasting: true))
      let environment = Environment(fileSystem: system, background: ManualBackgroundQueue())
      let error = storeError {
        let report = try Store.verify(path: directory.store, environment: environment)
        #expect(report.errors == [], "read \(index)")
      }
      if !system.hasFired { break }
      guard case .system(let failure)? = error, failure.errorNumber == EIO else {
        Issue.record("read \(index): \(String(describing: error))")
        continue
      }
      errorCount += 1
    }
    #expect((4..<1000).contains(errorCount))
  }

  @Test("A checkpoint that does not match the manifest is reported; an open does without it")
  func floor() throws {
    let fixture = try CheckpointFixture()
    let image = try fixture.image.changingManifest { $0.floorSequence = 1 }
    #expect(
      try errors(image) == [Corruption(file: fixture.name, offset: 40, cause: .badHeader)])
  }
}
