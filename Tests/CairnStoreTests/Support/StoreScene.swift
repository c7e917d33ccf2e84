import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// The environment of a test: its own directory, a file system with a hook, a clock that stands
/// still, and a background queue that runs nothing by itself. Everything is released with the last
/// reference.
final class StoreScene: Sendable {
  /// The first segment of a store.
  static let segment = "seg-0000000000000001"

  let directory: TemporaryDirectory
  let fileSystem = FaultyFileSystem()
  let clock = ManualClock()
  let queue = ManualBackgroundQueue()
  var path: String { directory.store }

  init(on medium: TemporaryDirectory.Medium = .disk) throws {
    directory = try TemporaryDirectory(on: medium)
  }

  // A job holds its store, and the store holds this scene's queue.
  deinit { queue.discardAll() }

  /// Opens the store with small segments and only requested syncs.
  func open(
    readOnly: Bool = false, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> Store {
    try Store(
      path, .small(clock: clock, change), fileSystem: fileSystem, background: queue,
      readOnly: readOnly)
  }

  /// A scene with a copy of the store's current files: what a kill at this moment leaves.
  func killed() throws -> StoreScene {
    let copy = try StoreScene()
    try FileManager.default.copyItem(atPath: path, toPath: copy.path)
    return copy
  }

  // MARK: Files

  func url(_ name: String) -> URL { URL(fileURLWithPath: path + "/" + name) }
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path) }
  func bytes(of name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: url(name))) }

  /// Changes bytes of a file in place, so that an open store sees it.
  func edit(_ name: String = segment, _ change: (inout [UInt8]) throws -> Void) throws {
    var bytes = try bytes(of: name)
    try change(&bytes)
    let file = try FileHandle(forUpdating: url(name))
    try file.write(contentsOf: Data(bytes))
    try file.truncate(atOffset: UInt64(bytes.count))
    try file.close()
  }

  /// Flips a bit of the byte at which a text begins in the first segment.
  func damage(_ text: String, at distance: Int = 0) throws {
    try edit { bytes in
      let range = try #require(bytes.firstRange(of: Array(text.utf8)))
      bytes[range.lowerBound + distance] ^= 1
    }
  }

  func manifest() throws -> Manifest {
    let bytes = try bytes(of: "MANIFEST")
    return try Manifest(decoding: bytes.rawSpan)
  }

  func editManifest(_ change: (inout Manifest) -> Void) throws {
    var manifest = try manifest()
    change(&manifest)
    try Data(manifest.encoded()).write(to: url("MANIFEST"))
  }

  /// Makes the store look as if the machine had restarted since.
  func reboot() throws { try editManifest { $0.bootIdentifier[0] ^= 1 } }

  func segmentHeader() throws -> SegmentHeader {
    let bytes = try bytes(of: Self.segment)
    return try SegmentHeader(decoding: bytes.rawSpan, file: Self.segment)
  }

  /// Expects that an open fails because of damage, and that a check finds the damage too.
  func expectCorrupt(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let report = try Store.verify(path: path)
    #expect(!report.errors.isEmpty, sourceLocation: sourceLocation)
    do {
      let store = try open()
      Issue.record("opened with \(try store.count()) keys", sourceLocation: sourceLocation)
    } catch StoreError.corrupt {
    } catch {
      Issue.record("\(error)", sourceLocation: sourceLocation)
    }
  }
}

extension [UInt8] {
  /// A value of some size.
  static func filled(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }
}
