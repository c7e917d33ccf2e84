import CairnStore
import FuzzSupport
import Testing

@Suite("Extended lifetimes in damaged and hostile stores")
struct ExtensionDamageTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  private func makeStore() throws -> Store {
    try Store(directory.store, .small(clock: clock), background: queue)
  }

  /// When a value ends, in seconds from the start of the clock.
  private func end(_ store: Store, _ key: String) throws -> Int64? {
    try store.info(forKey: key)?.expires.map {
      ($0.millisecondsSinceEpoch - ManualClock.start.millisecondsSinceEpoch) / 1000
    }
  }

  @Test("A salvage copies the later end; one that is damaged leaves the one before")
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

  @Test("Extensions of what is not there, or of records to come, mean nothing")
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
    let seed = try #require(image.files[name]).withSpan {
      try SegmentHeader(decoding: $0, file: name)
    }.recordSeed
    // Each extension is made to be of something else.
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
          key.withSpan {
            header.encode(key: $0, metadata: RawSpan(), value: RawSpan(), into: &bytes)
          }
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
}
