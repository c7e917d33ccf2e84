import Foundation

/// A directory of a run on real files, removed in the end.
package struct RunDirectory: ~Copyable {
  package let path: String

  /// - Parameter onDisk: else in memory, where that can be had: there syncs take no time, so more threads meet.
  package init(onDisk: Bool) throws {
    let memory = "/dev/shm"
    let parent =
      onDisk || !FileManager.default.isWritableFile(atPath: memory)
      ? NSTemporaryDirectory() : memory
    path = "\(parent)/cairn-run-\(getpid())-\(HistoryLog.now())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package var store: String { path + "/store" }
}
