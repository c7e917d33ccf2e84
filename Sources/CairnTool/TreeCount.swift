import CairnStore
import CommandText

/// Counts the files of a tree, so that an import can show its progress. Reads only names, not
/// files, which takes a small part of the time of the import.
enum TreeCount {
  /// - Returns: how many files the import will visit, as far as directories can be read.
  static func files(
    below root: Descriptor, except store: FileIdentity, on console: Console
  ) -> Int {
    var count = 0
    var cursor = DirectoryCursor(root: root)
    let clock = ContinuousClock()
    var nextUpdate = clock.now + .milliseconds(100)
    // As in an import: for each directory down to the cursor's, the subdirectories still to visit.
    var pending = [subdirectories(of: &cursor, counting: &count)]
    while SystemCalls.interruption == 0, let last = pending.indices.last {
      guard let name = pending[last].popLast() else {
        pending.removeLast()
        if !pending.isEmpty { cursor.leave() }
        continue
      }
      guard let identity = try? cursor.enter(name) else { continue }
      if identity == store {
        cursor.leave()
        continue
      }
      pending.append(subdirectories(of: &cursor, counting: &count))
      guard clock.now >= nextUpdate else { continue }
      nextUpdate = clock.now + .milliseconds(100)
      console.showProgress("counted \(DisplayText.count(count, "file"))")
    }
    console.clearProgress()
    return count
  }

  private static func subdirectories(
    of cursor: inout DirectoryCursor, counting count: inout Int
  ) -> [[UInt8]] {
    guard let directory = try? cursor.directory(),
      let names = try? SystemCalls.names(in: directory)
    else { return [] }
    var subdirectories: [[UInt8]] = []
    for name in names {
      let kind = name.kind ?? (try? SystemCalls.status(of: name.bytes, in: directory))?.kind
      switch kind {
      case .regular: count += 1
      case .directory: subdirectories.append(name.bytes)
      case .link, .other, nil: break
      }
    }
    return subdirectories
  }
}
