import CairnStore
import FuzzSupport
import Testing

/// Random damage to stores whose whole history is known, against an oracle that goes by the history
/// and by which bytes were changed, and shares no code with the salvage.
@Suite("Salvage of random damage")
struct SalvageDamageTests {
  /// A record of the undamaged image: where it is, and what it says.
  struct Written {
    var file: String
    var head: Range<Int>
    var value: Range<Int>
    var version: UInt64
    /// `nil` for a removal.
    var bytes: [UInt8]?
    var isInBatch: Bool
    /// Whether the manifest vouches for it: its segment is sealed, or the store was closed.
    var isSettled: Bool
  }

  struct History {
    var image: Image
    /// The records of each key, oldest first.
    var records: [String: [Written]] = [:]

    init(_ generator: inout FuzzRandom, isClosed: Bool) throws {
      var image: Image?
      let sessions = Int.random(in: 1...3, using: &generator)
      for session in 1...sessions {
        let directory = try TemporaryDirectory()
        try image?.write(to: directory.store)
        let queue = ManualBackgroundQueue()
        let store = try Store(directory.store, background: queue)
        for _ in 0..<Int.random(in: 1...60, using: &generator) {
          try Self.write(to: store, &generator)
          if Int.random(in: 0..<15, using: &generator) == 0 { queue.runAll() }
          if Int.random(in: 0..<15, using: &generator) == 0 { try store.sync() }
        }
        // The last write stands by itself, so that no batch is at the end of the log.
        try store.setValue("end", forKey: "end")
        if isClosed || session < sessions && Bool.random(using: &generator) { try store.close() }
        image = try Image(of: directory.store)
        queue.discardAll()
      }
      self.image = try #require(image)
      if isClosed { self.image = try self.image.withoutReserves() }
      try findRecords()
    }

    private static func write(to store: Store, _ generator: inout FuzzRandom) throws {
      func key() -> String { "key\(Int.random(in: 0..<12, using: &generator))" }
      func value() -> [UInt8] {
        let isLarge = Int.random(in: 0..<20, using: &generator) == 0
        return generator.bytes(
          count: Int.random(in: 0...(isLarge ? 40_000 : 200), using: &generator))
      }
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<2: try store.removeValue(forKey: key())
      case 2..<4:
        try store.write { batch in
          for _ in 0..<Int.random(in: 1...4, using: &generator) {
            if Bool.random(using: &generator) {
              try batch.setValue(value(), forKey: key(), options: .metadata([1, 2, 3]))
            } else {
              try batch.removeValue(forKey: key())
            }
          }
        }
      default:
        try store.setValue(
          value(), forKey: key(),
          options: EntryOptions(
            lifetime: Bool.random(using: &generator) ? .seconds(1 << 30) : .standard,
            metadata: generator.bytes(count: Int.random(in: 0...20, using: &generator))))
      }
    }

    private mutating func findRecords() throws {
      let manifest = try image.manifest
      let listed = Set(manifest.openSegments.map(\.id) + manifest.sealedSegments.map(\.id))
      let unsettled = manifest.isClean ? [] : Set(manifest.openSegments.map(\.id))
      for name in image.segmentNames {
        guard let bytes = image.files[name], let number = FileName.identifier(in: name),
          listed.contains(SegmentID(rawValue: number))
        else { continue }
        let base = bytes[48..<56].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        for record in try image.records(in: name) where record.header.kind != .roll {
          let written = Written(
            file: name, head: record.headRange, value: record.valueRange,
            version: base + UInt64(record.header.sequenceDelta),
            bytes: record.header.kind == .put ? Array(bytes[record.valueRange]) : nil,
            isInBatch: record.header.flags.contains(.batch),
            isSettled: !unsettled.contains(SegmentID(rawValue: number)))
          records[String(decoding: record.key, as: UTF8.self), default: []].append(written)
        }
      }
      for key in records.keys { records[key]?.sort { $0.version < $1.version } }
    }
  }

  /// Damages an image in one of many ways.
  static func damage(_ image: Image, _ generator: inout FuzzRandom) -> Image {
    var image = image
    let name =
      image.files.keys.sorted().filter { $0 != "LOCK" && !$0.hasPrefix("MANIFEST.") }
      .randomElement(using: &generator) ?? "MANIFEST"
    guard let bytes = image.files[name], !bytes.isEmpty else { return image }
    let place = Int.random(in: 0..<bytes.count, using: &generator)
    switch Int.random(in: 0..<7, using: &generator) {
    case 0..<3:
      return image.flipping(name, at: place, bit: Int.random(in: 0..<8, using: &generator))
    case 3: return image.changing(name) { $0.removeLast(bytes.count - place) }
    case 4:
      let page = place & ~511
      return image.changing(name) {
        for index in page..<min(page + 512, bytes.count) { $0[index] = 0 }
      }
    case 5:
      let other = Int.random(in: 0..<bytes.count, using: &generator) & ~511
      let page = place & ~511
      let count = min(512, bytes.count - max(page, other))
      return image.changing(name) {
        $0.replaceSubrange(page..<(page + count), with: bytes[other..<(other + count)])
        $0.replaceSubrange(other..<(other + count), with: bytes[page..<(page + count)])
      }
    default:
      image.files[name] = nil
      return image
    }
  }

  static func isIntact(_ range: Range<Int>, of file: String, _ old: Image, _ new: Image) -> Bool {
    guard let before = old.files[file], let after = new.files[file], after.count >= range.upperBound
    else { return range.isEmpty && new.files[file] != nil }
    return before[range] == after[range]
  }

  /// What is wrong with the copy of a damaged store, if anything.
  static func fault(_ history: History, _ damaged: Image, _ copy: [String: [UInt8]]) -> String? {
    let old = history.image
    let hasManifest = old.files["MANIFEST"] == damaged.files["MANIFEST"]
    for key in copy.keys where history.records[key] == nil { return "\(key) never was" }
    for (key, records) in history.records {
      // The newest whose head can be read decides, whatever it holds.
      let readable = records.filter { isIntact($0.head, of: $0.file, old, damaged) }
      let value = copy[key]
      if let value, !records.contains(where: { $0.bytes == value }) {
        return "\(key) never had this"
      }
      if readable.isEmpty && value != nil { return "\(key) is there without a record" }
      // In the tail of a store that was not closed, it is for recovery to say what counts.
      guard let newest = readable.last(where: { $0.isSettled }) else { continue }
      let allowed = readable.filter { $0.version >= newest.version }
      let isSound = isIntact(newest.value, of: newest.file, old, damaged)
      let hasHeaders = readable.allSatisfy { isIntact(0..<72, of: $0.file, old, damaged) }
      if let value {
        // Without a manifest, what a recovery had cut off may be back.
        if hasManifest && !allowed.contains(where: { $0.bytes == value }) {
          return "\(key) is not the newest"
        }
        if hasManifest && allowed.count == 1 && !isSound {
          return "\(key) is there though it is damaged"
        }
      } else if allowed.count == 1, newest.bytes != nil, isSound, hasHeaders,
        hasManifest || !newest.isInBatch
      {
        return "\(key) is missing though it is sound"
      }
    }
    return nil
  }

  @Test("A closed store gives the newest readable version of every key, if it is sound")
  func closedStores() throws {
    var generator = Seed.generator()
    for _ in 0..<60 {
      let history = try History(&generator, isClosed: true)
      for _ in 0..<6 {
        var damaged = history.image
        for _ in 0..<Int.random(in: 0...4, using: &generator) {
          damaged = Self.damage(damaged, &generator)
        }
        try check(history, damaged, boot: nil)
      }
    }
  }

  @Test("A killed store gives nothing stale, and what an open gives", arguments: [false, true])
  func killedStores(isOtherBoot: Bool) throws {
    var generator = Seed.generator("killedStores \(isOtherBoot)")
    for _ in 0..<40 {
      let history = try History(&generator, isClosed: false)
      for _ in 0..<6 {
        var damaged = history.image
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
          damaged = Self.damage(damaged, &generator)
        }
        try check(history, damaged, boot: isOtherBoot ? otherBoot : nil)
      }
    }
  }

  private func check(_ history: History, _ damaged: Image, boot: [UInt8]?) throws {
    let salvaged: Salvaged
    do { salvaged = try Salvaged(damaged, boot: boot) } catch let error as StoreError {
      switch error {
      // Nothing is left that says whose store it was, or all of it is gone.
      case .noStore, .notAStore, .unsupportedVersion: return
      default:
        Issue.record("\(error); \(Seed.comment)")
        return
      }
    }
    let fault = Self.fault(history, damaged, salvaged.values)
    #expect(fault == nil, Seed.comment)
    // Where an open works, a salvage gives the same; but where a checkpoint lets it work although records
    // are lost, of which a salvage knows nothing.
    guard let opened = try damaged.opened(boot: boot) else { return }
    if salvaged.report.warnings.contains(.olderValuesMayBeBack) { return }
    let versions = opened.compactMapValues { $0?.info.version }
    let values = opened.compactMapValues { $0?.value }
    let highest = versions.values.max() ?? 0
    for key in Set(salvaged.versions.keys).union(versions.keys)
    where salvaged.versions[key] != versions[key] || salvaged.values[key] != values[key] {
      // What is sound of a damaged batch at the end of the log is newer than all that an open gives.
      // After a power cut the rest of the batch counts as torn, not as lost.
      #expect(!salvaged.report.isComplete, Seed.comment)
      #expect(salvaged.versions[key] ?? .max > highest, Seed.comment)
    }
  }
}
