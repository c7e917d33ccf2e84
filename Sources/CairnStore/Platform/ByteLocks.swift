#if canImport(Darwin)
  internal import CairnLibC

  /// The locks of `FileSystem.lockBytes` on Darwin, where locks of fcntl(2) and flock(2) exclude each
  /// other. Each is a flock(2) of a file in `/tmp`, named after the identity of the locked file.
  enum ByteLocks {
    /// The files in `/tmp`, by the descriptors of the locked files.
    private static let files = Lock<[Int32: Int32]>([:], isOfProcess: true)

    static func file(for descriptor: Int32) throws(SystemError) -> Int32 {
      if let file = files.withLock({ $0[descriptor] }) { return file }
      var status = stat()
      _ = try systemCall("fstat") { unsafe fstat(descriptor, &status) }
      let path = "/tmp/cairn-\(geteuid())-\(status.st_dev)-\(status.st_ino)"
      let file = try systemCall("open") {
        unsafe open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
      }
      files.withLock { $0[descriptor] = file }
      return file
    }

    /// Call before the descriptor is closed.
    static func forget(_ descriptor: Int32) {
      if let file = files.withLock({ $0.removeValue(forKey: descriptor) }) { close(file) }
    }
  }
#endif
