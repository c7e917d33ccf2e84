import CairnStore
import CommandText

/// Adds up the sizes of the files in a tree, so that an import can show its progress. It reads no
/// files, so it takes a small part of the import's time.
enum TreeSize {
  private static let byteLimit = StoreConfiguration().valueByteLimit

  /// - Returns: how many bytes the import will read, as far as directories can be read.
  static func byteCount(
    below root: Descriptor, except store: FileIdentity, on console: Console
  ) -> Int {
    var byteCount = 0
    var cursor = DirectoryCursor(root: root)
    let clock = ContinuousClock()
    var nextUpdate = clock.now + .milliseconds(100)
    // As in an import: for each directory down to the cursor's, the subdirectories still to visit.
    var pending = [subdirectories(of: &cursor, adding: &byteCount)]
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
      pending.append(subdirectories(of: &cursor, adding: &byteCount))
      guard clock.now >= nextUpdate else { continue }
      nextUpdate = clock.now + .milliseconds(100)
      console.showProgress("found \(DisplayText.size(byteCount))")
    }
    console.clearProgress()
    return byteCount
  }

  private static func subdirectories(
    of cursor: inout DirectoryCursor, adding byteCount: inout Int
  ) -> [[UInt8]] {
    guard let directory = try? cursor.directory(),
      let names = try? SystemCalls.names(in: directory)
    else { return [] }
    var subdirectories: [[UInt8]] = []
    for name in names {
      // A directory entry shows the kind of most files, but the size of none.
      let status =
        name.kind == nil || name.kind == .regular
        ? try? SystemCalls.status(of: name.bytes, in: directory) : nil
      switch status?.kind ?? name.kind {
      // An import refuses larger files.
      case .regular where (status?.byteCount ?? 0) <= byteLimit:
        byteCount += status?.byteCount ?? 0
      case .directory: subdirectories.append(name.bytes)
      case .regular, .link, .other, nil: break
      }
    }
    return subdirectories
  }
}
