#if canImport(Darwin)
  internal import CairnLibC

  /// The files whose flock(2) stands for the lock of `FileSystem.lockBytes`. On Darwin, locks of fcntl(2)
  /// and flock(2) exclude each other.
  ///
  /// The file LOCK has a lock of its own, so its directory takes its place. Other files have none.
  enum ByteLocks {
    /// The open directory, by the descriptor of LOCK.
    private static let directories = Lock<[Int32: Int32]>([:], isOfProcess: true)

    static func file(for descriptor: Int32) throws(SystemError) -> Int32 {
      if let directory = directories.withLock({ $0[descriptor] }) { return directory }
      var path = [UInt8](repeating: 0, count: Int(MAXPATHLEN))
      _ = try systemCall("F_GETPATH") { unsafe fcntl(descriptor, F_GETPATH, &path) }
      let text = String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
      guard text.hasSuffix("/LOCK") else { return descriptor }
      let directory = try systemCall("open") {
        unsafe open(String(text.dropLast(5)) + "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      }
      directories.withLock { $0[descriptor] = directory }
      return directory
    }

    /// Call before the descriptor is closed.
    static func forget(_ descriptor: Int32) {
      if let directory = directories.withLock({ $0.removeValue(forKey: descriptor) }) {
        close(directory)
      }
    }
  }
#endif
