import Foundation

/// The directory of a run on real files. It is removed at the end.
package struct RunDirectory: ~Copyable {
  package let path: String

  /// - Parameter onDisk: if `false`, the directory is in memory if possible. Syncs take no time
  ///   there, so more threads interleave.
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
