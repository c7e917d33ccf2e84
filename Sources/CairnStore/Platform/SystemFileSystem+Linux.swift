#if !canImport(Darwin)
  internal import CCairn
  internal import CairnLibC

  /// The calls that only Linux has, or has under another name.
  extension SystemFileSystem {
    package func exchange(
      _ name: String, with other: String, in directory: Int32
    ) throws(SystemError) {
      _ = try systemCall("renameat2") { unsafe cairn_exchange(directory, name, other) }
    }

    package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
      let magic = try systemCall("fstatfs") { cairn_filesystem_magic(directory) }
      // The magic numbers are in statfs(2).
      return switch magic {
      case 0x6969: VolumeStatus(unsupportedName: "NFS", mapsFiles: false)
      case 0x517B, 0xFE53_4D42, 0xFF53_4D42: VolumeStatus(unsupportedName: "SMB", mapsFiles: false)
      case 0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E, 0x6573_5546:  // btrfs, ZFS, bcachefs, FUSE
        VolumeStatus(unsupportedName: nil, mapsFiles: false)
      default: VolumeStatus(unsupportedName: nil, mapsFiles: true)
      }
    }

    // MARK: Files

    package func close(_ descriptor: Int32) {
      // Never retried: Linux has freed the descriptor even if close reports EINTR.
      _ = CairnLibC.close(descriptor)
    }

    package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
      let kind = exclusively.map { $0 ? F_WRLCK : F_RDLCK } ?? F_UNLCK
      do {
        _ = try systemCall("fcntl") { cairn_lock_bytes(descriptor, Int32(kind)) }
        return true
      } catch  where error.errorNumber == EAGAIN || error.errorNumber == EACCES {
        return false
      }
    }

    package func copy(
      _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
    ) throws(SystemError) -> Int {
      Int(
        try systemCall("copy_file_range") {
          cairn_copy_range(source, target, Int64(offset), byteCount)
        })
    }

    package func allocate(
      _ descriptor: Int32, from offset: Int, byteCount: Int
    ) throws(SystemError) {
      try fallocate(retrying: false) {
        cairn_fallocate(descriptor, Int64(offset), Int64(byteCount))
      }
    }

    /// Allocates blocks. A system or sandbox without the call is like a filesystem without it.
    private func fallocate(retrying: Bool, _ body: () -> Int32) throws(SystemError) {
      do { _ = try systemCall("fallocate", retrying: retrying, body) } catch  where error.isRefusal
      {
        throw SystemError(call: error.call, errorNumber: EOPNOTSUPP)
      }
    }

    package func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool {
      // The magic number identifies the filesystem, except for overlayfs, which has its own magic
      // number whatever is below it. Inside a container, no path leads to the lower filesystem, so
      // ask the file for properties that overlayfs passes on. Opening the file for writing has copied
      // it to the upper layer.
      let isLayered: Bool
      switch try systemCall("fstatfs", { cairn_filesystem_magic(descriptor) }) {
      case 0xEF53, 0x5846_5342, 0x0102_1994: isLayered = false  // ext4, XFS, tmpfs
      case 0x794C_7630: isLayered = true
      default: return false
      }
      do {
        // If an empty file has blocks, an earlier call made them; reopening it does not change that.
        if try status(of: descriptor).allocatedByteCount == 0 {
          try fallocate(retrying: true) { cairn_probe_fallocate(descriptor) }
        }
      } catch  where error.errorNumber == EOPNOTSUPP {
        if isLayered { return false }
        throw error
      } catch {
        // The disk may be full, for example. A file on XFS then shows no preallocated blocks.
      }
      return !isLayered || showsExt4OrXFS(descriptor)
    }

    /// Whether a file with an allocated block has properties that only files on ext4 or XFS have: on
    /// ext4, the flag for extents; on XFS, preallocated blocks and the number of their extents.
    private func showsExt4OrXFS(_ descriptor: Int32) -> Bool {
      // FS_IOC_GETFLAGS is declared for a long, but stores an int. FS_EXTENT_FL is bit 19.
      var flags = 0
      let getFlags = UInt(0x8000_6601 | MemoryLayout<Int>.size << 16)
      if unsafe ioctl(descriptor, getFlags, &flags) == 0, flags & 1 << 19 != 0 { return true }
      // FS_IOC_FSGETXATTR: flags, the size and the number of extents, and four more fields.
      // FS_XFLAG_PREALLOC is bit 1.
      var attributes = [UInt32](repeating: 0, count: 7)
      return unsafe ioctl(descriptor, 0x801C_581F as UInt, &attributes) == 0
        && attributes[0] & 2 != 0 && attributes[2] > 0
    }

    package func nextData(_ descriptor: Int32, from offset: Int) -> Int {
      // SEEK_DATA, which Glibc declares only for GNU programs.
      let data = lseek(descriptor, offset, 3)
      return data >= 0 ? data : errno == ENXIO ? .max : offset
    }

    package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
      _ = try systemCall("fdatasync", retrying: false) { fdatasync(descriptor) }
    }

    package func synchronize(_ descriptor: Int32) throws(SystemError) {
      _ = try systemCall("fsync", retrying: false) { fsync(descriptor) }
    }

    package func dropCache(_ descriptor: Int32) throws(SystemError) {
      let number = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
      if number != 0 { throw SystemError(call: "posix_fadvise", errorNumber: number) }
    }

    // MARK: Mappings

    package func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {
      let populateForWriting: Int32 = 23  // MADV_POPULATE_WRITE: Linux 5.14, not in older headers.
      _ = unsafe madvise(address, byteCount, populateForWriting)
    }

    package func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {
      _ = unsafe madvise(address, byteCount, MADV_DONTNEED)
    }

    // MARK: The process and the machine

    package func bootIdentifier() throws(SystemError) -> [UInt8] {
      let descriptor = try systemCall("open") {
        unsafe CairnLibC.open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
      }
      defer { close(descriptor) }
      var text = [UInt8](repeating: 0, count: 64)
      let count = try text.withMutableSpan { (span) throws(SystemError) in
        try unsafe span.withUnsafeMutableBytes { (buffer) throws(SystemError) in
          try systemCall("read") {
            unsafe CairnLibC.read(descriptor, buffer.baseAddress, buffer.count)
          }
        }
      }
      return Self.bytes(ofDigits: text.prefix(count))
    }
  }
#endif
