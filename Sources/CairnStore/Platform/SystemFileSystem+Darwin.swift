#if canImport(Darwin)
  internal import CairnLibC

  /// What Darwin has instead of the calls in `SystemFileSystem+Linux`. For development: plain
  /// calls, no fast ones.
  extension SystemFileSystem {
    package func exchange(
      _ name: String, with other: String, in directory: Int32
    ) throws(SystemError) {
      do {
        _ = try systemCall("renameatx_np") {
          unsafe renameatx_np(directory, name, directory, other, UInt32(RENAME_SWAP))
        }
      } catch  where error.errorNumber == ENOTSUP {
        throw SystemError(call: error.call, errorNumber: EINVAL)
      }
    }

    /// The name of the filesystem.
    private func typeName(_ descriptor: Int32) throws(SystemError) -> String {
      var status = statfs()
      _ = try systemCall("fstatfs") { unsafe fstatfs(descriptor, &status) }
      return unsafe withUnsafeBytes(of: &status.f_fstypename) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
    }

    package func volume(of directory: Int32) throws(SystemError) -> VolumeStatus {
      let name = try typeName(directory)
      return switch name {
      case "nfs": VolumeStatus(unsupportedName: "NFS", mapsFiles: false)
      case "smbfs": VolumeStatus(unsupportedName: "SMB", mapsFiles: false)
      default: VolumeStatus(unsupportedName: nil, mapsFiles: name == "apfs" || name == "hfs")
      }
    }

    // MARK: Files

    package func close(_ descriptor: Int32) {
      ByteLocks.forget(descriptor)
      _ = CairnLibC.close(descriptor)
    }

    package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
      let file = try ByteLocks.file(for: descriptor)
      guard let exclusively else {
        unlock(file)
        return true
      }
      return try lock(file, exclusively: exclusively)
    }

    package func copy(
      _ source: Int32, to target: Int32, at offset: Int, byteCount: Int
    ) throws(SystemError) -> Int {
      throw SystemError(call: "copy_file_range", errorNumber: EOPNOTSUPP)
    }

    package func allocate(
      _ descriptor: Int32, from offset: Int, byteCount: Int
    ) throws(SystemError) {
      let status = try status(of: descriptor)
      let missing = offset + byteCount - status.allocatedByteCount
      if missing > 0 {
        var store = fstore_t(
          fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0,
          fst_length: off_t(missing), fst_bytesalloc: 0)
        do {
          _ = try systemCall("fallocate", retrying: false) {
            unsafe fcntl(descriptor, F_PREALLOCATE, &store)
          }
        } catch  where error.isRefusal || error.errorNumber == ENOTSUP {
          throw SystemError(call: error.call, errorNumber: EOPNOTSUPP)
        }
      }
      if offset + byteCount > status.byteCount { try truncate(descriptor, to: offset + byteCount) }
    }

    package func reservesBlocks(_ descriptor: Int32) throws(SystemError) -> Bool {
      // APFS writes blocks of a snapshot to a new place.
      try typeName(descriptor) == "hfs"
    }

    package func nextData(_ descriptor: Int32, from offset: Int) -> Int {
      let data = lseek(descriptor, off_t(offset), SEEK_DATA)
      return data >= 0 ? Int(data) : errno == ENXIO ? .max : offset
    }

    package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
      try synchronize(descriptor)
    }

    /// fsync(2) does not empty the disk's cache.
    package func synchronize(_ descriptor: Int32) throws(SystemError) {
      do {
        _ = try systemCall("F_FULLFSYNC", retrying: false) { fcntl(descriptor, F_FULLFSYNC) }
      } catch  where error.errorNumber == ENOTSUP {
        // Not a disk.
        _ = try systemCall("fsync", retrying: false) { fsync(descriptor) }
      }
    }

    package func dropCache(_ descriptor: Int32) throws(SystemError) {
      _ = try systemCall("F_NOCACHE") { fcntl(descriptor, F_NOCACHE, 1) }
    }

    // MARK: Mappings

    package func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

    package func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

    // MARK: The process and the machine

    package func bootIdentifier() throws(SystemError) -> [UInt8] {
      var text = [UInt8](repeating: 0, count: 64)
      var count = text.count
      _ = try systemCall("sysctl") {
        unsafe sysctlbyname("kern.bootsessionuuid", &text, &count, nil, 0)
      }
      return Self.bytes(ofDigits: text.prefix(count))
    }
  }
#endif
