import CairnStore
import FuzzSupport
import Testing

@Suite("Extended lifetimes in checkpoints")
struct CheckpointExtensionTests {
  /// Found by a review, and by `CrashFuzzer` once it extended more often. A checkpoint covers a
  /// segment that has only extensions, live and dead. A compaction moves the live ones, and the
  /// process dies before the next checkpoint. The open assumed that the missing segment affected no
  /// entry. So it kept the locations of the extensions there, and counted the copies in the new
  /// segment as dead. The next compaction dropped the new segment unread, and with it durable data.
  @Test("A segment of extensions alone is compacted, and the process dies")
  func segmentOfExtensions() throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let configuration = StoreConfiguration.small(clock: clock)
    func open(_ path: String) throws -> Store {
      try Store(path, configuration, background: ManualBackgroundQueue())
    }
    let end = ManualClock.start.advanced(by: .seconds(80 * 3600))
    func check(_ store: Store) throws {
      let ends = try store.ends()
      let kept = (0..<100).count { ends["key \($0)"] == end }
      #expect(kept == 100)
    }

    var store = try open(directory.store)
    for number in 0..<100 {
      try store.setValue(
        [UInt8](repeating: 1, count: 290), forKey: "key \(number)", lifetime: .seconds(3600))
    }
    let segmentCount = try store.statistics().segments.count
    // These writes fill the segment.
    for number in 0... {
      let left = try (64 << 10) - store.statistics().segments[segmentCount - 1].byteCount
      if left < 80 { break }
      let value = [UInt8](repeating: 2, count: min(1000, left - 72) - 40)
      try store.setValue(value, forKey: "filler \(100 + number)")
    }
    for round in 2...8 {
      for number in 0..<100 {
        try store.extendLifetime(forKey: "key \(number)", to: .seconds(round * 36_000))
      }
    }
    try store.close()

    store = try open(directory.store)
    try store.compact()
    try store.sync()
    let image = try Image(of: directory.store)
    try store.close()

    let path = directory("killed")
    try image.write(to: path)
    store = try open(path)
    #expect(try store.statistics().recovery.source == .checkpoint)
    try check(store)
    #expect(try store.auditUsage() == [])
    // The segment of the copies must not count as dead, and the next checkpoint must not name a
    // missing segment.
    for number in 100..<200 { try store.setValue("v", forKey: "key \(number)") }
    try store.compact()
    try check(store)
    try store.close()
    #expect(try Store.verify(path: path).errors == [])
    store = try open(path)
    try check(store)
    try store.close()
  }
}
