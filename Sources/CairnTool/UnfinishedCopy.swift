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
  func removeIfInterrupted() {
    guard SystemCalls.interruption != 0 else { return }
    console.clearProgress()
    do throws(SystemError) {
      try remove()
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
    let names = try SystemCalls.names(in: directory)
    // Empty only a directory that is marked as unfinished.
    guard names.contains(where: { $0.bytes == Array("UNFINISHED-COPY".utf8) }) else { return }
    for name in names { try SystemCalls.removeFile(name.bytes, in: directory) }
    if !hadDirectory { try SystemCalls.removeDirectory(path) }
  }
}
