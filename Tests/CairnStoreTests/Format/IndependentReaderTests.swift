import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Compares Docs/FileFormat.md with the library: Tests/FormatReader/read_store.py was written from
/// the document alone, and must find in a store's files what the store itself finds.
@Suite(
  "A reader written from the document reads every store",
  .enabled(if: IndependentReader.isAvailable, "there is no python3"))
struct IndependentReaderTests {
  private let scratch: ScratchDirectory
  private var configuration = StoreConfiguration()

  init() throws {
    scratch = try ScratchDirectory()
    configuration.clock = IndependentReader.clock
    configuration.durability = .process
    configuration.segmentByteLimit = 64 << 10
  }

  // MARK: Sound stores

  @Test func emptyStore() throws {
    try Store(path: scratch.store, configuration: configuration).close()
    #expect(try IndependentReader.read(scratch.store).lines == [])
  }

  @Test(arguments: [1, 2] as [UInt64])
  func storeThatWasClosedAndReopened(seed: UInt64) throws {
    var random = FuzzRandom(seed: seed)
    for round in 0..<4 {
      let store = try Store(path: scratch.store, configuration: configuration)
      try fill(store, &random)
      // A compaction puts old records into new segments, in no order.
      if round % 2 == 1 { #expect(try store.compact().writtenSegmentCount > 0) }
      let content = try IndependentReader.content(of: store)
      try store.close()
      try expectSound(scratch.store, content)
    }
  }

  @Test(arguments: [1, 2] as [UInt64])
  func copyOfAnOpenStore(seed: UInt64) throws {
    var random = FuzzRandom(seed: seed)
    // No background work runs while the files are copied.
    let store = try Store(
      scratch.store, configuration, background: ManualBackgroundQueue())
    for round in 0..<3 {
      try fill(store, &random)
      if round == 1 { try store.sync() }
      let copy = try scratch.copy(as: "round\(round)")
      try expectSound(copy, try IndependentReader.content(of: store))
      // Opening the copy seals the segments found.
      let reopened = try Store(path: copy, configuration: configuration)
      let content = try IndependentReader.content(of: reopened)
      try reopened.close()
      try expectSound(copy, content)
    }
    try store.close()
  }

  @Test func storeOfAClockAtItsLimit() throws {
    // The library caps a time at 2^50 seconds. The document accepted only lower ones, so a reader
    // that was written from it refused the store.
    for milliseconds in [Int64.max, .min] {
      var configuration = configuration
      configuration.clock = ManualClock(Timestamp(millisecondsSinceEpoch: milliseconds))
      let path = scratch.store + "\(milliseconds)"
      let store = try Store(path: path, configuration: configuration)
      try store.setValue("value", forKey: "key")
      let content = try IndependentReader.content(of: store)
      try store.close()
      #expect(content.count == 1)
      try expectSound(path, content)
    }
  }

  @Test func storeAfterRemovalOfAll() throws {
    var random = FuzzRandom(seed: 4)
    let store = try Store(path: scratch.store, configuration: configuration)
    try fill(store, &random)
    try store.removeAll()
    try expectSound(try scratch.copy(as: "removed"), [])
    try store.setValue("new", forKey: "key 1")
    try expectSound(try scratch.copy(as: "written"), try IndependentReader.content(of: store))
    let content = try IndependentReader.content(of: store)
    #expect(content.count == 1)
    try store.close()
    try expectSound(scratch.store, content)
  }

  @Test func storeThatIsOpenElsewhere() throws {
    let store = try Store(path: scratch.store, configuration: configuration)
    #expect(try IndependentReader.read(scratch.store).status == 4)
    try store.close()
  }

  // MARK: Damaged stores

  /// The reader finds an error exactly where the library does. If neither does, both find the same
  /// entries.
  @Test(arguments: Wear.allCases)
  func flippedBits(wear: Wear) throws {
    let original = try makeWornStore(wear)
    var random = FuzzRandom(seed: 5)
    // Housekeeping may have just made a file when the store was copied.
    let names = try scratch.files(in: original).filter {
      try $0 != "LOCK" && !scratch.bytes(of: $0, in: original).isEmpty
    }
    for round in 0..<(wear == .checkpointed ? 32 : 16) {
      let name = names[round % names.count]
      var bytes = try scratch.bytes(of: name, in: original)
      // Most of a segment may be unused. The bytes in use come first.
      let offset = Int(random.next() % UInt64(min(bytes.count, 1200)))
      bytes[offset] ^= 1 << UInt8(random.next() % 8)
      let copy = try scratch.copy(original, as: "flip\(round)")
      try scratch.write(bytes, to: name, in: copy)
      try expectSameVerdict(copy, "\(wear): a bit of byte \(offset) of \(name)")
    }
  }

  /// A lock file of one byte means that a sync failed. Holes at the end of the log are then not
  /// damage.
  @Test func flippedBitsAfterFailedSync() throws {
    let original = try makeWornStore(.killed)
    try scratch.write([0], to: "LOCK", in: original)
    let name = try #require(try scratch.files(in: original).first { $0.hasPrefix("seg-") })
    let bytes = try scratch.bytes(of: name, in: original)
    let end = try #require(bytes.lastIndex { $0 != 0 })
    for (round, offset) in stride(from: 80, to: end, by: max(1, end / 16)).enumerated() {
      var bytes = bytes
      bytes[offset] ^= 4
      let copy = try scratch.copy(original, as: "flip\(round)")
      try scratch.write(bytes, to: name, in: copy)
      try expectSameVerdict(copy, "a bit of byte \(offset) of \(name), after a failed sync")
    }
  }

  @Test(arguments: [Wear.killed, .powerless])
  func cutTails(wear: Wear) throws {
    let original = try makeWornStore(wear)
    let name = try #require(try scratch.files(in: original).first { $0.hasPrefix("seg-") })
    var bytes = try scratch.bytes(of: name, in: original)
    while bytes.last == 0 { bytes.removeLast() }
    for byteCount in stride(from: bytes.count, to: max(0, bytes.count - 600), by: -33) {
      let copy = try scratch.copy(original, as: "cut\(byteCount)")
      try scratch.write(Array(bytes[..<byteCount]), to: name, in: copy)
      try expectSameVerdict(copy, "\(wear): \(name) cut at \(byteCount)")
    }
  }

  // MARK: The document

  private func writeExample(section: Int, names: [String]) throws -> String {
    let path = scratch.path + "/example"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let files = try IndependentReader.filesInDocument(section: section)
    #expect(files.map(\.name) == names)
    for (name, bytes) in files { try scratch.write(bytes, to: name, in: path) }
    try scratch.write([], to: "LOCK", in: path)
    return path
  }

  /// The bytes in the document are a valid store.
  @Test func workedExample() throws {
    let path = try writeExample(section: 13, names: ["MANIFEST", "seg-0000000000000001"])
    var configuration = configuration
    let clock = FixedClock(time: Timestamp(millisecondsSinceEpoch: 1_767_225_600_500))
    configuration.clock = clock
    let result = try IndependentReader.read(path, now: clock.time)
    #expect(result.status == 0)
    #expect(result.lines.map(\.key) == ["62", "6772656574696e67"])
    #expect(result.lines.map(\.value) == ["", "68656c6c6f"])
    #expect(try Store.verify(path: path).errors == [])
    let store = try Store(readingAt: path, configuration: configuration)
    #expect(try IndependentReader.content(of: store) == Set(result.lines))
    #expect(try store.entry(forKey: "greeting")?.metadata == Array("text".utf8))
  }

  private static let secondExample = [
    "MANIFEST", "seg-0000000000000001", "seg-0000000000000002", "ckpt-0000000000000003",
  ]

  /// Gives the manifest of a store the running kernel's boot.
  private func bringToThisBoot(_ path: String) throws {
    let bytes = try scratch.bytes(of: "MANIFEST", in: path)
    var manifest = try Manifest(decoding: bytes.rawSpan)
    manifest.bootIdentifier = try SystemFileSystem().bootIdentifier()
    try scratch.write(manifest.encoded(), to: "MANIFEST", in: path)
  }

  /// The second worked example is a valid store too. It has a sealed segment, a checkpoint and an
  /// end that must be found.
  @Test(arguments: [false, true])
  func secondWorkedExample(isSameBoot: Bool) throws {
    let path = try writeExample(section: 16, names: Self.secondExample)
    if isSameBoot { try bringToThisBoot(path) }
    var configuration = configuration
    let clock = FixedClock(time: Timestamp(millisecondsSinceEpoch: 1_767_225_700_000))
    configuration.clock = clock
    let result = try IndependentReader.read(path, now: clock.time)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.lines.map(\.key) == ["61", "62", "73657373696f6e"])
    #expect(result.lines.map(\.value) == ["31", "32", "6f6e"])
    #expect(result.lines.map(\.sequence) == [3, 4, 2])
    #expect(result.lines.last?.expiry == 1_767_229_201_500)
    let report = try Store.verify(path: path)
    #expect(report.errors == [] && report.tornByteCount == 77)
    let store = try Store(readingAt: path, configuration: configuration)
    #expect(try IndependentReader.content(of: store) == Set(result.lines))
    #expect(try store.statistics().recovery.source == .checkpoint)
    try store.close()
    // What the document says about damage to `a` and to `b`.
    let name = "seg-0000000000000002"
    let bytes = try scratch.bytes(of: name, in: path)
    for (offset, corruptAt) in [(130, 120), (170, isSameBoot ? 160 : nil)] {
      var damaged = bytes
      damaged[offset] ^= 1
      try scratch.write(damaged, to: name, in: path)
      let errors = try Store.verify(path: path).errors
      #expect(errors.map(\.offset) == (corruptAt.map { [$0] } ?? []))
      #expect(errors.allSatisfy { $0.cause == .lostRecords && $0.file == name })
      let result = try IndependentReader.read(path, now: clock.time)
      #expect(result.status == (corruptAt == nil ? 0 : 3))
      if corruptAt == nil { #expect(result.lines.map(\.key) == ["61", "73657373696f6e"]) }
    }
  }

  /// The hash that the document computes step by step is the library's.
  @Test func hashInDocument() throws {
    let path = try writeExample(section: 16, names: Self.secondExample)
    let bytes = try scratch.bytes(of: "MANIFEST", in: path)
    let hash = SipHash(secret: Array(bytes[48..<64]))
    for key in ["session", "a"] {
      let value = hash.hash(Array(key.utf8).rawSpan)
      let digits = String(value, radix: 16, uppercase: true)
      #expect(try IndependentReader.document.contains("`\(digits)`"), "\(key): \(digits)")
    }
  }

  // MARK: Helpers

  /// How a store got into its state.
  enum Wear: CaseIterable {
    case closed
    /// Its process died.
    case killed
    /// The power failed.
    case powerless
    /// Its process died after making a checkpoint.
    case checkpointed
  }

  /// A small store with one segment that has every kind of record near its beginning.
  private func makeWornStore(_ wear: Wear) throws -> String {
    let store = try Store(path: scratch.store, configuration: configuration)
    for index in 0..<4 {
      try store.setValue("value \(index)", forKey: "key \(index)", options: .metadata([1, 2, 3]))
    }
    try store.sync()
    try store.write { batch in
      try batch.setValue(String(repeating: "x", count: 50), forKey: "key 1")
      try batch.removeValue(forKey: "key 2")
      try batch.setValue("", forKey: "empty", options: .lifetime(.seconds(100)))
    }
    if wear == .checkpointed { try store.checkpoint() }
    for index in 2..<6 {
      try store.setValue("newer \(index)", forKey: "key \(index)", options: .cost(7))
    }
    let copy = try scratch.copy(as: "\(wear)")
    try store.close()
    switch wear {
    case .closed: return scratch.store
    case .killed, .checkpointed: return copy
    case .powerless:
      let bytes = try scratch.bytes(of: "MANIFEST", in: copy)
      var manifest = try Manifest(decoding: bytes.rawSpan)
      manifest.bootIdentifier[0] ^= 1
      try scratch.write(manifest.encoded(), to: "MANIFEST", in: copy)
      return copy
    }
  }

  /// Writes of every kind, over a few hundred keys and several segments.
  private func fill(_ store: Store, _ random: inout FuzzRandom) throws {
    for index in 0..<400 {
      let key = "key \(random.next() % 150)"
      let value = random.bytes(count: Int(random.next() % 400))
      switch random.next() % 12 {
      case 0: try store.removeValue(forKey: key)
      case 1: try store.setValue(value, forKey: key, lifetime: .seconds(50))
      case 2: try store.setValue(value, forKey: key, lifetime: .seconds(-1))
      case 3: try store.setValue(value, forKey: key, options: .idleLimit(.milliseconds(index % 2)))
      case 4:
        try store.setValue(
          value, forKey: key,
          options: EntryOptions(cost: Int(random.next() >> 1), metadata: [UInt8](value)))
      case 5:
        try store.write(durability: index % 3 == 0 ? .durable : nil) { batch in
          for other in 0..<(1 + random.next() % 4) {
            try batch.setValue(value, forKey: "\(key) \(other)", options: .metadata([0]))
          }
          try batch.removeValue(forKey: "key \(random.next() % 150)")
          try batch.setValue("", forKey: key)
        }
      case 6: try store.setValue(value, forKey: key, durability: .durable)
      case 7: try store.setLifetime(.seconds(Int64(100 + random.next() % 9)), forKey: key)
      default: try store.setValue(value, forKey: key)
      }
      if index % 150 == 20 {
        // Larger than a segment.
        try store.setValue([UInt8](repeating: UInt8(index & 255), count: 70_000), forKey: "big")
      }
    }
  }

  private func expectSound(
    _ path: String, _ content: Set<IndependentReader.Line>,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try IndependentReader.read(path)
    #expect(result.status == 0, "\(result.errors)", sourceLocation: sourceLocation)
    let lines = Set(result.lines)
    // Named separately, because whole stores are too long to print.
    let differences = lines.symmetricDifference(content).map { "\($0.key) \($0.sequence)" }
    #expect(differences == [], sourceLocation: sourceLocation)
    #expect(lines.count == result.lines.count, sourceLocation: sourceLocation)
  }

  private func expectSameVerdict(
    _ path: String, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try IndependentReader.read(path)
    var isSound: Bool
    var verdict = ""
    do {
      let errors = try Store.verify(path: path).errors
      isSound = errors.isEmpty
      verdict = "\(errors)"
    } catch {
      isSound = false
      verdict = "\(error)"
    }
    #expect(
      isSound == (result.status == 0), "\(what): the reader: \(result.errors), verify: \(verdict)",
      sourceLocation: sourceLocation)
    guard isSound, result.status == 0 else { return }
    let store = try Store(readingAt: path, configuration: configuration)
    let content = try IndependentReader.content(of: store)
    #expect(Set(result.lines) == content, "\(what)", sourceLocation: sourceLocation)
  }
}

/// A directory for one test, with a store in it. It is removed afterwards.
private final class ScratchDirectory {
  let path: String
  var store: String { path + "/store" }

  init() throws {
    path = NSTemporaryDirectory() + "cairn-reader-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func files(in directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
  }

  func bytes(of name: String, in directory: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name)))
  }

  func write(_ bytes: [UInt8], to name: String, in directory: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: directory + "/" + name))
  }

  /// A copy of a store that may be open, as a kill would leave it while nothing is written. The
  /// manifest is copied first: files that a later manifest adds are then unlisted, and files that
  /// it drops are ignored.
  func copy(_ original: String? = nil, as name: String) throws -> String {
    let original = original ?? store
    let copy = path + "/" + name
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    for name in ["MANIFEST"] + (try files(in: original).filter { $0 != "MANIFEST" }) {
      try? write(bytes(of: name, in: original), to: name, in: copy)
    }
    return copy
  }
}
