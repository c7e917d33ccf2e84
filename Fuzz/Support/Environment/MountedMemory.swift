// Filesystems in memory, which only Linux can mount. A Mac counts as a machine where nothing may be mounted.

#if os(Linux)
  // Not `CairnLibC`: the mounts work below the shim of Darwin too.
  import Glibc

  func mountMemory(at path: String, byteCount: Int) -> Bool {
    unsafe mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount)") == 0
  }

  func unmountMemory(at path: String) { _ = unsafe umount2(path, Int32(MNT_DETACH)) }
#else
  func mountMemory(at path: String, byteCount: Int) -> Bool { false }

  func unmountMemory(at path: String) {}
#endif
