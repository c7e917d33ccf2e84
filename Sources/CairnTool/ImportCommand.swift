import Cairn
import CommandText

/// `import`: copies a tree of files into a store.
enum ImportCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 1)
    let decoding = try ImportDecoding(invocation)
    let lifetime = try invocation.duration(of: .lifetime)
    let path = invocation.operands[0]
    // Open the tree before the store, which would be created even if there is nothing to import.
    let root: Descriptor
    do throws(SystemError) {
      root = try SystemCalls.open(path, in: nil, as: .directoryThroughLinks)
    } catch {
      throw CommandFailure(error, path: path)
    }
    // Until the store is closed, a power cut loses only what a second import would restore.
    let configuration = StoreLocation.forMany(createsStore: true)
    // From here on, there is a store to close.
    SystemCalls.watchInterruptions()
    let importer = try location.write(configuration) { store in
      let identity = try location.identity()
      guard try !StoreLocation.contains(root, store: identity) else {
        throw CommandFailure(.failure, "\(DisplayText.line(path)): is inside the store")
      }
      var importer = Importer(
        store: store, storeIdentity: identity, configuration: configuration, root: root,
        decoding: decoding, lifetime: lifetime, console: console)
      try importer.run()
      return importer
    }
    if SystemCalls.interruption != 0 {
      console.note("interrupted; run the same command again to store the rest")
    }
    let skipped = importer.counts.skippedLinks + importer.counts.skippedSpecialFiles
    if skipped > 0 {
      console.note(
        "skipped \(DisplayText.count(importer.counts.skippedLinks, "symbolic link")) and "
          + DisplayText.count(importer.counts.skippedSpecialFiles, "special file"))
    }
    if invocation.has(.json) {
      try console.print(json(importer).text)
    } else {
      try console.tell(summary(importer))
    }
  }

  private static func summary(_ importer: Importer) -> String {
    let counts = importer.counts
    let tree = ExportCommand.tree(counts.files, counts.emptyDirectories, counts.bytes)
    if importer.batch.storedCount == 0, importer.unchangedCount > 0, counts.errors == 0,
      SystemCalls.interruption == 0
    {
      return "nothing to store, all values are already there: \(tree)"
    }
    var summary =
      "imported \(tree): "
      + "\(DisplayText.count(importer.batch.storedCount)) stored, "
      + "\(DisplayText.count(importer.unchangedCount)) unchanged"
    if counts.errors > 0 { summary += ", \(DisplayText.count(counts.errors, "error"))" }
    return summary
  }

  private static func json(_ importer: Importer) -> JSON {
    let counts = importer.counts
    return .object([
      ("files", .integer(counts.files)),
      ("emptyDirectories", .integer(counts.emptyDirectories)),
      ("bytes", .integer(importer.counts.bytes)),
      ("stored", .integer(importer.batch.storedCount)),
      ("unchanged", .integer(importer.unchangedCount)),
      ("skippedLinks", .integer(counts.skippedLinks)),
      ("skippedSpecialFiles", .integer(counts.skippedSpecialFiles)),
      ("errors", .integer(counts.errors)),
    ])
  }
}
