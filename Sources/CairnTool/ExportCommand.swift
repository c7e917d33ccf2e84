import Cairn
import CairnLibC
import CommandText

/// `export`: copies a store into a new tree of files.
enum ExportCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let path = invocation.operands[1]
    // From here on, no file may be left half-written.
    SystemCalls.watchInterruptions()
    let exporter = try location.read(on: console) { store in
      let root = try makeRoot(path, outside: location)
      var exporter = Exporter(store: store, root: root, console: console)
      try exporter.run()
      return exporter
    }
    if SystemCalls.interruption != 0 {
      console.note("interrupted; remove \(DisplayText.line(path)) before you run the command again")
    }
    if invocation.has(.json) {
      try console.print(json(exporter).text)
    } else {
      try console.tell(summary(exporter))
    }
  }

  /// The directory to export to: a new or empty one.
  private static func makeRoot(_ path: [UInt8], outside location: StoreLocation) throws
    -> Descriptor
  {
    do {
      // With a trailing slash, the system would follow a link.
      let trimmed = withoutTrailingSlashes(path)
      // A file in the store's directory would be foreign to the store, so check before creating
      // one.
      let parent = try SystemCalls.open(
        parentPath(of: trimmed), in: nil, as: .place)
      let identity = try location.identity()
      guard try !StoreLocation.contains(parent, store: identity) else {
        throw CommandFailure(.failure, "\(DisplayText.line(path)): is inside the store")
      }
      do throws(SystemError) {
        try SystemCalls.makeDirectory(trimmed, in: nil)
      } catch {
        guard error.number == EEXIST else { throw error }
        guard try SystemCalls.status(of: trimmed, in: nil).kind == .directory else {
          throw CommandFailure(.failure, "\(DisplayText.line(path)): exists and is not a directory")
        }
      }
      let root = try SystemCalls.open(trimmed, in: nil, as: .directory)
      guard try !StoreLocation.contains(root, store: identity) else {
        throw CommandFailure(.failure, "\(DisplayText.line(path)): is inside the store")
      }
      guard try SystemCalls.names(in: root).isEmpty else {
        throw CommandFailure(
          .failure,
          "\(DisplayText.line(path)): the directory is not empty; give an empty or missing one")
      }
      return root
    } catch let error as SystemError where error.number == ENOENT {
      let failure = CommandFailure(error, path: path)
      throw CommandFailure(failure.status, "\(failure.message); \(CommandFailure.needsParent)")
    } catch let error as SystemError {
      throw CommandFailure(error, path: path)
    }
  }

  private static func withoutTrailingSlashes(_ path: [UInt8]) -> [UInt8] {
    var path = path
    while path.count > 1, path.last == UInt8(ascii: "/") { path.removeLast() }
    return path
  }

  /// The path of the directory that contains a path's last name.
  private static func parentPath(of path: [UInt8]) -> [UInt8] {
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return [UInt8(ascii: ".")] }
    return Array(path[...slash])
  }

  /// The contents of a tree, in words. Also used by an import.
  static func tree(_ files: Int, _ emptyDirectories: Int, _ byteCount: Int) -> String {
    let directories = DisplayText.count(
      emptyDirectories, "empty directory", "empty directories")
    return DisplayText.count(files, "file")
      + (emptyDirectories > 0 ? " and \(directories)" : "")
      + ", \(DisplayText.exactSize(byteCount))"
  }

  private static func summary(_ exporter: Exporter) -> String {
    let counts = exporter.counts
    var summary = "exported \(tree(counts.files, counts.emptyDirectories, counts.bytes))"
    if counts.encodedKeys > 0 {
      summary += "; \(DisplayText.count(counts.encodedKeys, "key")) encoded in .cairn-encoded"
    }
    if counts.errors > 0 { summary += "; \(DisplayText.count(counts.errors, "error"))" }
    return summary
  }

  private static func json(_ exporter: Exporter) -> JSON {
    let counts = exporter.counts
    return .object([
      ("files", .integer(counts.files)),
      ("emptyDirectories", .integer(counts.emptyDirectories)),
      ("bytes", .integer(exporter.counts.bytes)),
      ("encodedKeys", .integer(counts.encodedKeys)),
      ("errors", .integer(counts.errors)),
    ])
  }
}
