import CairnLibC

/// Lists, measures and removes directories with their contents. Links are not followed.
enum DirectoryTree {
  /// The names in a directory, without `.` and `..`, in no particular order.
  static func names(in path: String) throws -> [String] {
    guard let stream = unsafe opendir(path) else {
      throw BenchFailure.lastSystemError("opendir", path)
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    // SAFETY: an entry is valid until the next call; its name is NUL-terminated.
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// The bytes that the files below `path` take on disk, without those of directories.
  static func allocatedByteCount(_ path: String) -> Int {
    var sum = 0
    for name in (try? names(in: path)) ?? [] {
      let child = path + "/" + name
      guard let status = linkStatus(child) else { continue }
      sum +=
        isDirectory(status) ? allocatedByteCount(child) : Int(status.st_blocks) * 512
    }
    return sum
  }

  /// Removes `path` and everything below it, as far as possible.
  // SAFETY: paths are passed as strings that outlive the calls.
  static func remove(_ path: String) {
    guard let status = linkStatus(path) else { return }
    guard isDirectory(status) else {
      unsafe unlink(path)
      return
    }
    for name in (try? names(in: path)) ?? [] { remove(path + "/" + name) }
    unsafe rmdir(path)
  }

  private static func linkStatus(_ path: String) -> stat? {
    var status = stat()
    // SAFETY: the kernel fills the structure.
    return unsafe lstat(path, &status) == 0 ? status : nil
  }

  private static func isDirectory(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFDIR }
}
