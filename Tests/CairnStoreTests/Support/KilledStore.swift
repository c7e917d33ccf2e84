import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// A store whose process died at some point: the image of its directory at that moment, and its
/// contents.
struct KilledStore: Sendable {
  var image: Image
  /// The contents of the store before and after the last write.
  var before: [String: [UInt8]]
  var after: [String: [UInt8]]

  /// Runs `writes` on a new store, with `last` as the last write, and takes the image without
  /// closing the store. No background job runs.
  init(
    _ configuration: StoreConfiguration = .small(), _ writes: (Store) throws -> Void,
    last: (Store) throws -> Void = { _ in }
  ) throws {
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, configuration, background: queue)
    try writes(store)
    before = try store.contents()
    try last(store)
    after = try store.contents()
    image = try Image(of: directory.store)
    queue.discardAll()
  }

  /// The segment that has the last record.
  var lastSegment: String {
    get throws {
      try #require(
        image.segmentNames.last { name in try !image.records(in: name).isEmpty })
    }
  }

  var lastRecords: [Image.PlacedRecord] { get throws { try image.records(in: lastSegment) } }
}

/// The result of opening an image.
enum Opening: Equatable {
  case contents([String: [UInt8]])
  case refused(StoreError)

  /// Opens the image in a separate directory, in this boot or another. Opens it a second time, with
  /// the same result. Then checks every byte.
  init(
    _ image: Image, boot: [UInt8]? = nil, configuration: StoreConfiguration = .small(),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let contents: [String: [UInt8]]
    do {
      let store = try Store(
        directory.store, configuration, fileSystem: FaultyFileSystem(bootIdentifier: boot))
      contents = try store.contents()
      #expect(try store.count() == contents.count, sourceLocation: sourceLocation)
      for (key, value) in contents {
        #expect(try store.value(forKey: key) == value, sourceLocation: sourceLocation)
      }
      try store.close()
    } catch let error as StoreError {
      self = .refused(error.corruption.map { .corrupt($0) } ?? error)
      // A refusal changes nothing.
      let left = try Image(of: directory.store)
      for (name, bytes) in image.files where !name.hasPrefix("MANIFEST.") {
        #expect(
          left.files[name] == bytes, "\(name) changed by a refused opening",
          sourceLocation: sourceLocation)
      }
      return
    }
    self = .contents(contents)
    let again = try Store(
      directory.store, configuration, fileSystem: FaultyFileSystem(bootIdentifier: boot))
    #expect(
      try again.contents() == contents, "another state when opened again",
      sourceLocation: sourceLocation)
    #expect(try again.statistics().recovery.wasClean, sourceLocation: sourceLocation)
    // The discarded tail must not reappear after new writes.
    try again.setValue("new", forKey: "new after recovery")
    try again.close()
    let third = try Store(directory.store, configuration)
    #expect(
      try third.contents() == contents.merging(["new after recovery": Array("new".utf8)]) { $1 },
      "another state after a write", sourceLocation: sourceLocation)
    try third.close()
    #expect(
      try Store.verify(path: directory.store).errors == [], sourceLocation: sourceLocation)
  }

  var corruption: Corruption? {
    if case .refused(let error) = self { return error.corruption }
    return nil
  }
}
