import Cairn
import CommandText

/// A copy of a store under construction. If the command is interrupted, the copy must be removed:
/// it is not a store, and it would block the next attempt.
struct UnfinishedCopy {
  private let path: [UInt8]
  private let console: Console
  /// Whether the directory existed before the copy.
  private let hadDirectory: Bool

  init(at location: StoreLocation, on console: Console) {
    path = Array(location.path.utf8)
    self.console = console
    hadDirectory = (try? SystemCalls.open(path, in: nil, as: .place)) != nil
    SystemCalls.watchInterruptions()
  }

  /// If the process was interrupted, removes the copy and ends the process. Call on the thread that
  /// makes the copy, so that no files are created meanwhile.
  ///
  /// - Parameter hasBegun: whether this process has begun the copy. Before that, the files at the
  ///   path are another process's.
  func removeIfInterrupted(hasBegun: Bool) {
    guard SystemCalls.interruption != 0 else { return }
    console.clearProgress()
    do throws(SystemError) {
      if hasBegun { try remove() }
      console.note("interrupted; nothing was copied")
    } catch {
      console.note("interrupted; remove the unfinished copy by hand: \(DisplayText.line(path))")
    }
    SystemCalls.endInterrupted()
  }

  private func remove() throws(SystemError) {
    guard let directory = try? SystemCalls.open(path, in: nil, as: .directoryThroughLinks) else {
      return
    }
    // The only directory in a copy is `lost+found`.
    let names = try SystemCalls.names(in: directory).filter { $0.kind != .directory }.map(\.bytes)
    // As long as files are left, the directory stays marked and locked.
    let last = ["UNFINISHED-COPY", "LOCK"].map { Array($0.utf8) }
    // Empty only a directory that is marked as unfinished.
    guard names.contains(last[0]) else { return }
    for name in names where !last.contains(name) {
      try SystemCalls.removeFile(name, in: directory)
    }
    for name in last { try SystemCalls.removeFile(name, in: directory) }
    if !hadDirectory { try SystemCalls.removeDirectory(path) }
  }
}
