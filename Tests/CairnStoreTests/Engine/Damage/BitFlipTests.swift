import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Damage to a closed store: each key returns its value or an error that names the file and the
/// offset. A read never returns another value or `nil`, and nothing removed reappears.
@Suite("Damage after a clean close")
struct BitFlipTests {
  /// A closed store with every kind of record, flag and file, in small segments.
  struct ClosedStore: Sendable {
    var image: Image
    var contents: [String: [UInt8]]
    var removed: [String] = []
    /// The bytes of large values. The test damages only a sample of them.
    var largeRanges: [String: Range<Int>] = [:]

    static let shared = Result { try ClosedStore() }

    private init() throws {
      var generator = FuzzRandom(seed: 7)
      var image: Image?
      contents = [:]
      // Each kill seals a small segment.
      for round in 0..<3 {
        let directory = try TemporaryDirectory()
        try image?.write(to: directory.store)
        let store = try Store(directory.store, background: ManualBackgroundQueue())
        for flags in round == 2 ? Array(0..<16) : [0, 5, 15] {
          let metadata = flags & 8 != 0 ? generator.bytes(count: flags) : []
          try store.setValue(
            generator.bytes(count: flags * 3), forKey: "r\(round)f\(flags)",
            options: EntryOptions(
              cost: flags & 4 != 0 ? 12 : nil,
              lifetime: flags & 1 != 0 ? .seconds(1_000_000_000) : .standard,
              idleLimit: flags & 2 != 0 ? .seconds(1_000_000_000) : nil, metadata: metadata),
            durability: flags == 5 ? .durable : .process)
        }
        try store.setValue("twice", forKey: "overwritten")
        try store.setValue("round \(round)", forKey: "overwritten")
        try store.setValue("gone", forKey: "gone\(round)")
        try store.removeValue(forKey: "gone\(round)")
        try store.write { batch in
          try batch.setValue(
            "in a batch", forKey: "batch\(round)", options: EntryOptions(cost: 1, metadata: [1]))
          try batch.setValue("", forKey: "empty\(round)")
          try batch.setValue("x", forKey: "gone in batch\(round)")
          try batch.removeValue(forKey: "gone in batch\(round)")
        }
        removed += ["gone\(round)", "gone in batch\(round)"]
        if round == 1 {
          try store.setValue(generator.bytes(count: 75_000), forKey: "large")
          try store.setValue("after", forKey: "after")
        }
        if round == 2 {
          contents = try store.contents()
          try store.close()
        }
        image = try Image(of: directory.store)
      }
      self.image = try #require(image).withoutReserves()
      for name in self.image.segmentNames {
        for record in try self.image.records(in: name) where record.valueRange.count > 10_000 {
          largeRanges[name] = record.valueRange
        }
      }
    }

    /// The bytes of a file to damage, one by one.
    func offsets(in name: String, step: Int = 1) -> [Int] {
      let all = Array(0..<(image.files[name]?.count ?? 0))
      let large = largeRanges[name] ?? 0..<0
      return all.filter { offset in
        large.contains(offset) ? (offset - large.lowerBound) % 997 == 0 : offset % step == 0
      }
    }
  }

  static var fileNames: [String] {
    (try? ClosedStore.shared.get())?.image.files.keys.sorted() ?? []
  }

  /// Opens the damaged store at `path` and returns what is wrong with its results.
  func fault(of closed: ClosedStore, at path: String) -> String? {
    func isTyped(_ error: any Error) -> String? {
      switch error as? StoreError {
      case .corrupt(let corruption):
        guard let bytes = closed.image.files[corruption.file] else {
          return "unknown file: \(error)"
        }
        return (0...bytes.count).contains(corruption.offset) ? nil : "bad offset: \(error)"
      case .unsupportedVersion(let file, _):
        return closed.image.files[file] == nil ? "\(error)" : nil
      default: return "\(error)"
      }
    }
    let store: Store
    do { store = try Store(path, readOnly: true) } catch { return isTyped(error) }
    for (key, expected) in closed.contents {
      do {
        let value = try store.value(forKey: key)
        if value != expected { return "\(key) is \(value == nil ? "missing" : "another")" }
        let entry = try store.entry(forKey: key)
        if entry?.value != expected { return "the entry of \(key) is another" }
      } catch {
        if let fault = isTyped(error) { return fault }
      }
    }
    for key in closed.removed {
      do {
        if try store.value(forKey: key) != nil { return "\(key) is back" }
      } catch {
        if let fault = isTyped(error) { return fault }
      }
    }
    do {
      try store.forEachEntry { entry in
        let key = String(decoding: entry.key, as: UTF8.self)
        if closed.contents[key] != entry.value {
          throw SupportError(call: "visited \(key)", number: 0)
        }
        return .next
      }
    } catch {
      if let fault = isTyped(error) { return fault }
    }
    return nil
  }

  /// Whether verification finds an error in an existing file.
  func isFoundByVerify(_ closed: ClosedStore, at path: String) throws -> Bool {
    var errors: [Corruption] = []
    let error = storeError { errors = try Store.verify(path: path).errors }
    if let error {
      guard case .unsupportedVersion = error else { throw error }
      return true
    }
    return !errors.isEmpty && errors.allSatisfy { closed.image.files[$0.file] != nil }
  }

  @Test("The store to damage has every kind of file and record")
  func kinds() throws {
    let closed = try ClosedStore.shared.get()
    let manifest = try closed.image.manifest
    #expect(manifest.isClean)
    #expect(manifest.openSegments.count == 1)
    #expect(manifest.sealedSegments.count >= 3)
    let records = try closed.image.segmentNames.flatMap { try closed.image.records(in: $0) }
    #expect(Set(records.map(\.header.kind)) == [.put, .tombstone, .roll])
    let flags = records.reduce(into: RecordFlags()) { $0.formUnion($1.header.flags) }
    #expect(flags == .known)
    let directory = try TemporaryDirectory()
    try closed.image.write(to: directory.store)
    #expect(fault(of: closed, at: directory.store) == nil)
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test(
    "A flipped bit in any byte, one byte in sixteen each time, gives the right value or an error, and verify finds it",
    arguments: fileNames)
  func flips(name: String) throws {
    let closed = try ClosedStore.shared.get()
    let directory = try TemporaryDirectory()
    try closed.image.write(to: directory.store)
    let bytes = try #require(closed.image.files[name])
    let path = "\(directory.store)/\(name)"
    // `DamageFuzzer --all-bits` covers all bits, in less time.
    var generator = Seed.generator("\(#function)\(name)")
    let first = Int.random(in: 0..<16, using: &generator)
    for offset in closed.offsets(in: name) where (offset + first) % 16 == 0 {
      // One bit of each of these bytes, and all bits of some.
      for bit in offset % 61 == 0 ? Array(0..<8) : [offset / 16 % 8] {
        try overwriteFile(path, [bytes[offset] ^ 1 << UInt8(bit)], at: offset)
        if let fault = fault(of: closed, at: directory.store) {
          Issue.record("bit \(bit) of byte \(offset) of \(name): \(fault); \(Seed.comment)")
        }
        if try !isFoundByVerify(closed, at: directory.store) {
          Issue.record("verify misses bit \(bit) of byte \(offset) of \(name)")
        }
      }
      try overwriteFile(path, [bytes[offset]], at: offset)
    }
    #expect(try Image(of: directory.store) == closed.image, "the test has undone its damage")
  }

  @Test("A file cut at any of many lengths gives the right value or an error", arguments: fileNames)
  func truncations(name: String) throws {
    let closed = try ClosedStore.shared.get()
    let bytes = try #require(closed.image.files[name])
    let directory = try TemporaryDirectory()
    try closed.image.write(to: directory.store)
    for count in closed.offsets(in: name, step: 13) {
      try writeFile("\(directory.store)/\(name)", Array(bytes.prefix(count)))
      if let fault = fault(of: closed, at: directory.store) {
        Issue.record("\(name) cut to \(count) bytes: \(fault)")
      }
      #expect(
        try !Store.verify(path: directory.store).errors.isEmpty, "\(name) cut to \(count) bytes")
    }
  }

  @Test(
    "Damage under an open store gives the right value or an error, with each way of reading",
    arguments: [true, false])
  func underOpenStore(mapsFiles: Bool) throws {
    let closed = try ClosedStore.shared.get()
    let directory = try TemporaryDirectory()
    try closed.image.write(to: directory.store)
    let store = try Store(directory.store, .small { $0.mapsFiles = mapsFiles }, readOnly: true)
    for name in closed.image.segmentNames {
      let bytes = try #require(closed.image.files[name])
      let path = "\(directory.store)/\(name)"
      for record in try closed.image.records(in: name) where record.header.kind == .put {
        let key = String(decoding: record.key, as: UTF8.self)
        let large = closed.largeRanges[name] ?? 0..<0
        for offset in record.range where !large.contains(offset) || offset % 997 == 0 {
          for damage in [bytes[offset] ^ 1 << UInt8(offset % 8), ~bytes[offset], 0xFF, 0]
          where damage != bytes[offset] {
            try overwriteFile(path, [damage], at: offset)
            do {
              let value = try store.value(forKey: key)
              #expect(value == closed.contents[key], "byte \(offset) of \(name)")
            } catch {
              #expect(error.corruption?.file == name, "byte \(offset) of \(name): \(error)")
            }
          }
          try overwriteFile(path, [bytes[offset]], at: offset)
        }
      }
    }
  }

  @Test("Verify counts the contents")
  func verifyReport() throws {
    let closed = try ClosedStore.shared.get()
    let directory = try TemporaryDirectory()
    try closed.image.write(to: directory.store)
    let report = try Store.verify(path: directory.store)
    let records = try closed.image.segmentNames.flatMap { try closed.image.records(in: $0) }
    #expect(report.recordCount == records.count { $0.header.kind != .roll })
    // The next session's manifest is not part of the store yet.
    let files = closed.image.files.filter { $0.key != "MANIFEST.next" }
    #expect(report.byteCount == files.values.reduce(0) { $0 + $1.count })
    #expect(report.tornByteCount == 0)
  }

  @Test("Verify continues after each of several errors and reports them all")
  func severalErrors() throws {
    let closed = try ClosedStore.shared.get()
    let directory = try TemporaryDirectory()
    var image = closed.image
    var places: [Corruption] = []
    for name in image.segmentNames {
      let records = try image.records(in: name).filter {
        $0.header.kind == .put && !$0.valueRange.isEmpty
      }
      guard let record = records.first else { continue }
      image = image.flipping(name, at: record.valueRange.lowerBound)
      places.append(Corruption(file: name, offset: record.valueRange.lowerBound, cause: .badValue))
    }
    try image.write(to: directory.store)
    let errors = try Store.verify(path: directory.store).errors
    #expect(Set(errors) == Set(places))
    #expect(places.count >= 4)
  }
}
