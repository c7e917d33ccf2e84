import CairnLibC

/// The directory of a run: a new one in `--dir`, in `$TMPDIR`, or in the current directory,
/// whichever is given first. Not in `/tmp` by default, because `/tmp` is often in memory and not on
/// a disk.
struct RunDirectory {
  let path: String
  let fileSystem: FileSystem

  init(in requested: String?) throws {
    let variable = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    let parent = requested ?? (variable.isEmpty ? "." : variable)
    // SAFETY: `realpath` allocates its result, which is freed here; `mkdtemp` changes the last
    // six bytes of the copy in place.
    guard let resolved = unsafe realpath(parent, nil) else {
      throw BenchFailure.lastSystemError("realpath", parent)
    }
    defer { unsafe free(resolved) }
    let base = unsafe String(cString: resolved)
    var template = Array((base + (base == "/" ? "" : "/") + "cairn-bench-XXXXXX").utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw BenchFailure.lastSystemError("mkdtemp", base)
    }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    Cleanup.setDirectory(path)
    fileSystem = FileSystem(of: path)
  }
}
