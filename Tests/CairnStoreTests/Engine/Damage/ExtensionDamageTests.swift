import CairnStore
import FuzzSupport
import Testing

@Suite("Extended lifetimes in damaged and hostile stores")
final class ExtensionDamageTests: StoreSuite {
  @Test("A salvage copies the later end; if that is damaged, the earlier one applies")
  func salvage() throws {
    let store = try makeStore()
    try store.setValue("v", forKey: "a", lifetime: .seconds(100))
    try store.extendLifetime(forKey: "a", to: .seconds(200))
    try store.extendLifetime(forKey: "a", to: .seconds(300))
    try store.setValue("v", forKey: "b", lifetime: .seconds(100))
    try store.extendLifetime(forKey: "b", to: .seconds(400))
    try store.setValue("w", forKey: "b", lifetime: .seconds(50))
    try store.close()
    func ends(_ salvaged: Salvaged) -> [String: Timestamp?] {
      salvaged.entries.mapValues(\.info.expires)
    }
    func time(_ seconds: Int64) -> Timestamp { ManualClock.start.advanced(by: .seconds(seconds)) }
    let image = try Image(of: directory.store)
    let whole = try Salvaged(image, clock: clock)
    #expect(ends(whole) == ["a": time(300), "b": time(50)])
    #expect(whole.report.isComplete)
    let records = try image.records(in: image.segmentNames[0])
    #expect(records.map(\.header.kind) == [.put, .extension, .extension, .put, .extension, .put])
    let damaged = try Salvaged(
      image.flipping(image.segmentNames[0], at: records[2].offset + 9), clock: clock)
    #expect(ends(damaged) == ["a": time(200), "b": time(50)])
    #expect(damaged.report.warnings.contains(.olderValuesMayBeBack))
  }

  @Test("Extensions of absent puts, or of later records, have no effect")
  func hostile() throws {
    let store = try makeStore()
    try store.setValue("v", forKey: "mortal", lifetime: .seconds(100))
    try store.setValue("v", forKey: "lasts!")
    try store.setValue("v", forKey: "mortal", lifetime: .seconds(90))
    for _ in 0..<4 {
      try store.setValue("v", forKey: "filler", lifetime: .seconds(10))
      try store.extendLifetime(forKey: "filler", to: .seconds(20))
    }
    try store.close()
    var image = try Image(of: directory.store).withoutReserves()
    let name = image.segmentNames[0]
    let records = try image.records(in: name).filter { $0.header.kind == .extension }
    let file = try #require(image.files[name])
    let seed = try SegmentHeader(decoding: file.rawSpan, file: name).recordSeed
    // Each extension is made to extend something else.
    let targets: [(key: String, version: UInt64)] = [
      ("lasts!", 2), ("mortal", 1), ("mortal", .max), ("mortal", 2),
    ]
    #expect(records.count == targets.count)
    for (record, target) in zip(records, targets) {
      var header = record.header
      let key = Array(target.key.utf8)
      header.target = target.version
      header.expires = .max
      image = image.changing(name) { bytes in
        bytes.withMutableSpan(in: record.range) { bytes in
          header.encode(key: key.rawSpan, metadata: RawSpan(), value: RawSpan(), into: &bytes)
          header.seal(&bytes, at: record.offset, seed: seed)
        }
      }
    }
    image.files = image.files.filter { !$0.key.hasPrefix("ckpt-") }
    try image.write(to: directory("hostile"))
    let hostile = try Store(directory("hostile"), .small(clock: clock), background: queue)
    #expect(try end(hostile, "mortal") == 90)
    #expect(try end(hostile, "lasts!") == nil)
    #expect(try hostile.count() == 3)
    #expect(try hostile.auditUsage() == [])
    try hostile.compact()
    #expect(try hostile.count() == 3)
  }

  /// The fixture's store with another checkpoint and a matching manifest.
  private func forged(
    _ fixture: CheckpointFixture, shard number: Int,
    change: (inout Checkpoint) -> Void = { _ in }, changeShard: (inout [UInt8], Int) -> Void
  ) throws -> Image {
    var header = try fixture.header
    var bytes = try #require(fixture.image.files[fixture.name])
    let shard = header.shards[number]
    changeShard(&bytes, shard.offset + 16 * shard.count)
    header.shards[number].checksum = CRC32C.checksum(
      of: bytes.rawSpan.extracting(shard.offset..<(shard.offset + shard.byteCount)))
    change(&header)
    bytes.replaceSubrange(0..<header.headerByteCount, with: header.encodedHeader())
    return try fixture.binding(bytes)
  }

  @Test("Extensions in a checkpoint that match no entry cost rebuilding their shard")
  func hostileExtensions() throws {
    let fixture = try CheckpointFixture()
    let header = try fixture.header
    let number = try #require(header.shards.firstIndex { $0.extensionCount > 0 })
    let bytes = try #require(fixture.image.files[fixture.name])
    let start = header.shards[number].offset + 16 * header.shards[number].count
    let (put, record) = (
      bytes.rawSpan.load(UInt64.self, at: start), bytes.rawSpan.load(UInt64.self, at: start + 16)
    )
    for value in [0, 1, put + 1, put | 1 << 40, .max] as [UInt64] {
      let image = try forged(
        fixture, shard: number,
        changeShard: { bytes, start in
          bytes.withMutableSpan { $0.store(value, at: start) }
        })
      #expect(try fixture.expectSound(image, "of \(value)").source == .checkpoint)
    }
    for value in [1, 1 << 39, .max >> 24] as [UInt64] {
      let image = try forged(
        fixture, shard: number,
        changeShard: { bytes, start in
          bytes.withMutableSpan { $0.store(value << 24 | record & 0xFF_FFFF, at: start + 16) }
        })
      #expect(try fixture.expectSound(image, "at \(value)").source == .checkpoint)
    }
  }

  @Test(
    "A checkpoint that lies about extensions never causes a trap, and the next one is right again")
  func lyingCheckpoint() throws {
    let fixture = try CheckpointFixture()
    let number = try #require(try fixture.header.shards.firstIndex { $0.extensionCount > 0 })
    for end in [.min, 0, .max] as [Int64] {
      for size in [0, 1, 0xFF_FFFF] as [UInt64] {
        for counts in [0, 1] {
          let image = try forged(fixture, shard: number) { header in
            // Claims fewer than there are, so that the count would end below zero.
            for index in header.segments.indices {
              header.segments[index].liveExtensionCount = counts
              header.segments[index].liveByteCount = counts
            }
          } changeShard: { bytes, start in
            let record = bytes.rawSpan.load(UInt64.self, at: start + 16)
            bytes.withMutableSpan { bytes in
              bytes.store(end, at: start + 8)
              bytes.store(record & ~0xFF_FFFF | size, at: start + 16)
            }
          }
          try image.write(to: directory("lying"))
          var store = try Store(directory("lying"), .small())
          #expect(try store.statistics().recovery.source == .checkpoint)
          for key in ["key7", "key14", "key28"] {
            try store.extendLifetime(forKey: key, to: .seconds(1 << 33))
            try store.setValue("new", forKey: key)
          }
          for number in 0..<60 { try store.removeValue(forKey: "key\(number)") }
          try store.setValue("last", forKey: "last")
          try store.close()
          store = try Store(directory("lying"), .small())
          #expect(try store.contents().keys.sorted() == ["last"])
          try store.compact()
          #expect(try store.contents().keys.sorted() == ["last"])
          try store.close()
        }
      }
    }
  }

  @Test("No lifetime is too long, and none is shortened", arguments: [true, false])
  func extremes(isClosed: Bool) throws {
    var store = try makeStore()
    for key in ["longest", "endless"] {
      try store.setValue("v", forKey: key, lifetime: .seconds(9))
    }
    let longest = Duration(
      secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999)
    #expect(try store.extendLifetime(forKey: "longest", to: .seconds(Int64.max / 1000)))
    #expect(try store.extendLifetime(forKey: "endless", to: longest))
    let shortest = Duration(secondsComponent: .min, attosecondsComponent: 0)
    #expect(try store.extendLifetime(forKey: "endless", to: shortest))
    #expect(try store.info(forKey: "endless")?.expires?.millisecondsSinceEpoch == .max)
    let last = try store.statistics().lastVersion
    #expect(try store.extendLifetime(forKey: "endless", to: longest))
    #expect(try store.statistics().lastVersion == last)
    let ends = try store.ends()
    if isClosed {
      try store.close()
      store = try makeStore()
    } else {
      try Image(of: directory.store).write(to: directory("killed"))
      store = try Store(directory("killed"), .small(clock: clock), background: queue)
    }
    #expect(try store.ends() == ends)
    #expect(try store.removeExpired().count == 0)
    clock.advance(by: .seconds(1 << 40))
    #expect(try store.count() == 2)
    try store.compact()
    #expect(try store.ends() == ends)
    #expect(try store.auditUsage() == [])
  }
}
