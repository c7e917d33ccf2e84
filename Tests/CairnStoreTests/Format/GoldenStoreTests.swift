import CairnRepair
import CairnStore
import Foundation
import KillWriter
import Testing

/// Stores that `KillWriter golden` wrote once. Every version since then opens them.
@Suite("Golden stores")
struct GoldenStoreTests {
  /// The version, a hyphen, and how the store was left.
  static let names = [
    "1.0-closed", "1.0-killed", "1.0-resumed", "1.0-compacting", "1.0-compacted",
  ]

  static func path(of name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "GoldenStores/\(name)")
      .path
  }

  /// A copy, with the permissions of a store.
  private func copy(_ name: String) throws -> TemporaryDirectory {
    let source = URL(filePath: Self.path(of: name))
    let directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      atPath: directory.store, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    for file in try FileManager.default.contentsOfDirectory(atPath: source.path) {
      let bytes = try Data(contentsOf: source.appending(path: file))
      let isMade = FileManager.default.createFile(
        atPath: directory.store + "/" + file, contents: bytes,
        attributes: [.posixPermissions: 0o600])
      #expect(isMade)
    }
    return directory
  }

  private func expected(_ name: String) -> [String: GoldenStore.Expected] {
    let more: [String: GoldenStore.Expected] =
      switch name.dropFirst(4) {
      case "compacting", "compacted": GoldenStore.entriesMeanwhile
      case "resumed": GoldenStore.entriesAfterwards
      default: [:]
      }
    return GoldenStore.entries.merging(more) { first, _ in first }
  }

  private func check(_ store: Store, _ name: String) throws {
    var found: [String: GoldenStore.Expected] = [:]
    try store.forEachEntry { entry in
      let key = String(decoding: entry.key, as: UTF8.self)
      #expect(entry.value == GoldenStore.value(key, byteCount: entry.value.count), "\(key)")
      found[key] = GoldenStore.Expected(
        byteCount: entry.value.count, cost: entry.info.givenCost, metadata: entry.metadata,
        hasEnd: entry.info.expires != nil, hasIdleLimit: entry.info.idleLimit != nil)
      return .next
    }
    #expect(found == expected(name))
    for key in GoldenStore.absent + GoldenStore.keysOfHalfBatch {
      #expect(try store.value(forKey: key) == nil, "\(key)")
    }
  }

  @Test("is read completely, without a change", arguments: names)
  func read(name: String) throws {
    let directory = try copy(name)
    #expect(try Store.verify(path: directory.store).errors == [])
    let store = try Store(directory.store, readOnly: true)
    try check(store, name)
    #expect(try store.statistics().recovery.wasClean == name.hasSuffix("closed"))
    try store.close()
  }

  @Test("is written to, compacted, closed and opened again", arguments: names)
  func written(name: String) throws {
    let directory = try copy(name)
    var store = try Store(directory.store)
    try check(store, name)
    try store.setValue("new", forKey: "new")
    try store.compact()
    try store.close()
    store = try Store(directory.store)
    #expect(try store.text("new") == "new")
    try store.removeValue(forKey: "new")
    try check(store, name)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("is opened after a failed sync, which the length of LOCK shows")
  func failedSync() throws {
    let directory = try copy("1.0-killed")
    try Data([0]).write(to: URL(filePath: directory.store + "/LOCK"))
    let store = try Store(directory.store)
    try check(store, "1.0-killed")
    try store.close()
    #expect(try Data(contentsOf: URL(filePath: directory.store + "/LOCK")).isEmpty)
  }

  @Test("is salvaged, also without its manifest", arguments: names)
  func salvaged(name: String) throws {
    let directory = try copy(name)
    _ = try Store.salvage(path: directory.store, to: directory("salvaged"))
    try check(try Store(directory("salvaged")), name)
    try FileManager.default.removeItem(atPath: directory.store + "/MANIFEST")
    _ = try Store.salvage(path: directory.store, to: directory("without"))
    let found = try Store(directory("without")).contents()
    // Without a manifest, nothing shows that everything was removed once.
    #expect(
      Set(found.keys).subtracting(["before all was removed"]) == Set(expected(name).keys))
  }

  @Test("The remains of a backup are refused as such, and left alone")
  func unfinishedCopy() throws {
    let directory = try copy("1.0-copying")
    let before = try Image(of: directory.store)
    #expect(before.files["UNFINISHED-COPY"] != nil)
    for readOnly in [false, true] {
      let error = #expect(throws: StoreError.self) {
        _ = try Store(directory.store, readOnly: readOnly)
      }
      let text = error.map { "\($0)" } ?? ""
      #expect(text.contains("unfinished: delete the directory"), "\(text)")
    }
    let report = try Store.verify(path: directory.store)
    #expect(report.errors.map(\.cause) == [.unfinishedCopy])
    #expect(try Image(of: directory.store) == before)
    // Everything but the manifest is there, and a salvage needs none.
    _ = try Store.salvage(path: directory.store, to: directory("salvaged"))
    try check(try Store(directory("salvaged")), "1.0-closed")
  }

  @Test("Each store has every kind of file and record", arguments: names)
  func kinds(name: String) throws {
    let directory = try copy(name)
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.store)
    for prefix in ["LOCK", "MANIFEST", "MANIFEST.new", "RESERVE", "seg-", "ckpt-"] {
      #expect(files.contains { $0.hasPrefix(prefix) }, "\(prefix)")
    }
    let image = try Image(of: directory.store)
    let records = try image.segmentNames.flatMap { try image.records(in: $0) }
    #expect(Set(records.map(\.header.kind)) == [.put, .tombstone, .roll])
    let manifest = try image.manifest
    switch name.dropFirst(4) {
    case "compacting":
      #expect(!manifest.pendingIDs.isEmpty)
    case "compacted": #expect(!manifest.retiredIDs.isEmpty)
    case "resumed":
      #expect(!manifest.isClean)
      #expect(manifest.openSegments.contains { $0.byteCount > 0 })
    default: break
    }
    let flags = records.reduce(into: RecordFlags()) { $0.formUnion($1.header.flags) }
    #expect(flags == .known)
  }
}
