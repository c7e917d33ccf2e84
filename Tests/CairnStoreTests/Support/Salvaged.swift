import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// The result of salvaging an image: the report, and the contents of the copy.
struct Salvaged {
  var report: SalvageReport
  var entries: [String: ByteEntry] = [:]

  var values: [String: [UInt8]] { entries.mapValues(\.value) }
  var versions: [String: UInt64] { entries.mapValues(\.info.version) }

  /// Salvages the image. Checks that nothing in it changed and that every byte of the copy is
  /// sound.
  init(
    _ image: Image, boot: [UInt8]? = nil, clock: any WallClock = SystemClock(),
    segmentByteLimit: Int = 64 << 10, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    self = try Self(
      directory, boot: boot, clock: clock, segmentByteLimit: segmentByteLimit,
      sourceLocation: sourceLocation)
  }

  /// Salvages the store of a directory into its subdirectory `copy`.
  init(
    _ directory: TemporaryDirectory, boot: [UInt8]? = nil, clock: any WallClock = SystemClock(),
    fileSystem: (any FileSystem)? = nil, segmentByteLimit: Int = 64 << 10,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let before = try Image(of: directory.store)
    let environment = Environment(
      fileSystem: fileSystem ?? FaultyFileSystem(bootIdentifier: boot),
      background: ManualBackgroundQueue())
    report = try Store.salvage(
      path: directory.store, to: directory("copy"), environment: environment,
      segmentByteLimit: segmentByteLimit, clock: clock)
    #expect(try Image(of: directory.store) == before, sourceLocation: sourceLocation)
    #expect(
      try Image(of: directory("copy")).files["UNFINISHED-COPY"] == nil,
      sourceLocation: sourceLocation)
    #expect(
      try Store.verify(path: directory("copy")).errors == [], sourceLocation: sourceLocation)
    let store = try Store(
      directory("copy"), .small(clock: clock), background: ManualBackgroundQueue(), readOnly: true)
    var entries: [String: ByteEntry] = [:]
    try store.forEachEntry { entry in
      entries[String(decoding: entry.key, as: UTF8.self)] = entry
      return .next
    }
    self.entries = entries
    try store.close()
  }
}

extension Image {
  /// Everything that an open of the image finds, with `nil` for damaged values, or `nil` if the
  /// open is refused.
  func opened(boot: [UInt8]? = nil) throws -> [String: ByteEntry?]? {
    let directory = try TemporaryDirectory()
    try write(to: directory.store)
    do {
      let store = try Store(
        directory.store, fileSystem: FaultyFileSystem(bootIdentifier: boot),
        background: ManualBackgroundQueue(), readOnly: true)
      var keys: [[UInt8]] = []
      try store.forEachKey { key in
        keys.append([UInt8](copying: key))
        return .next
      }
      var entries: [String: ByteEntry?] = [:]
      for key in keys {
        let name = String(decoding: key, as: UTF8.self)
        entries[name] = .some(try? store.entry(forKey: key))
      }
      return entries
    } catch is StoreError {
      return nil
    }
  }
}
