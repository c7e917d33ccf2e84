internal import CairnLibC

/// The `FileSystem` that calls the kernel.
package final class SystemFileSystem: FileSystem {
  package init() {}

  package var mappedWriteObserver: (any MappedWriteObserver)? { nil }

  // MARK: Directories

  package func makeDirectory(path: String) throws(SystemError) {
    _ = try systemCall("mkdir") { unsafe mkdir(path, 0o700) }
    // The umask may have removed permissions that the owner needs.
    _ = try systemCall("chmod") { unsafe chmod(path, 0o700) }
  }

  package func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try systemCall("mkdirat") { unsafe mkdirat(directory, name, 0o700) }
    _ = try systemCall("fchmodat") { unsafe fchmodat(directory, name, 0o700, 0) }
  }

  package func openDirectory(path: String) throws(SystemError) -> Int32 {
    try aboveStandardStreams(
      try systemCall("open") { unsafe CairnLibC.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    return try aboveStandardStreams(
      try systemCall("openat") { unsafe openat(directory, name, flags) })
  }

  package func names(in directory: Int32) throws(SystemError) -> [String] {
    // A separate descriptor, because fdopendir(3) takes ownership and moves the position.
    let descriptor = try systemCall("openat") {
      unsafe openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    // SAFETY: only this call uses the stream, and every path closes it. An entry's name is
    // terminated and stays valid until the next readdir.
    guard let stream = unsafe fdopendir(descriptor) else {
      let number = errno
      _ = CairnLibC.close(descriptor)
      throw SystemError(call: "fdopendir", errorNumber: number)
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        let number = errno
        if number == EINTR { continue }
        if number != 0 { throw SystemError(call: "readdir", errorNumber: number) }
        return names
      }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name != "." && name != ".." { names.append(name) }
    }
  }

  package func rename(
    _ name: String, in source: Int32, to newName: String, in target: Int32
  ) throws(SystemError) {
    _ = try systemCall("rename") { unsafe renameat(source, name, target, newName) }
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try systemCall("unlink") { unsafe unlinkat(directory, name, 0) }
  }

  package func freeByteCount(of directory: Int32) throws(SystemError) -> Int {
    var status = statvfs()
    _ = try systemCall("fstatvfs") { unsafe fstatvfs(directory, &status) }
    let (count, isTooLarge) = UInt64(status.f_bavail).multipliedReportingOverflow(
      by: UInt64(status.f_frsize))
    return isTooLarge ? .max : Int(clamping: count)
  }

  // MARK: Files

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    // O_NONBLOCK, so that opening a FIFO does not hang.
    let common = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
    let flags =
      switch mode {
      case .readOnly: O_RDONLY | common
      case .readWrite: O_RDWR | common
      case .createNew: O_RDWR | O_CREAT | O_EXCL | common
      case .createIfMissing: O_RDWR | O_CREAT | common
      }
    let descriptor = try aboveStandardStreams(
      try systemCall("openat") { unsafe openat(directory, name, flags, 0o600) })
    if mode == .createNew || mode == .createIfMissing {
      do {
        // The umask may have removed permissions that the owner needs.
        _ = try systemCall("fchmod") { fchmod(descriptor, 0o600) }
      } catch  where mode == .createIfMissing && error.errorNumber == EPERM {
        // An existing file of another user: the caller checks its owner.
      } catch {
        close(descriptor)
        throw error
      }
    }
    return descriptor
  }

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try systemCall("fstat") { unsafe fstat(descriptor, &status) }
    return FileStatus(status)
  }

  package func status(
    of name: String, in directory: Int32
  ) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try systemCall("fstatat") {
      unsafe fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)
    }
    return FileStatus(status)
  }

  package func lock(_ descriptor: Int32, exclusively: Bool) throws(SystemError) -> Bool {
    do {
      _ = try systemCall("flock") { flock(descriptor, (exclusively ? LOCK_EX : LOCK_SH) | LOCK_NB) }
      return true
    } catch  where error.errorNumber == EWOULDBLOCK {
      return false
    }
  }

  package func unlock(_ descriptor: Int32) {
    _ = flock(descriptor, LOCK_UN)
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: the buffer's address and count belong together.
    try systemCall("pread") {
      unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
    }
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: see `read`.
    try systemCall("pwrite") {
      unsafe pwrite(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
    }
  }

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    _ = try systemCall("ftruncate") { ftruncate(descriptor, off_t(byteCount)) }
  }

  // MARK: Mappings

  package func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    let protection = writable ? PROT_READ | PROT_WRITE : PROT_READ
    // SAFETY: a new mapping at an address that the kernel chooses overlaps no other memory.
    let address = unsafe mmap(nil, byteCount, protection, MAP_SHARED, descriptor, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw SystemError(call: "mmap", errorNumber: errno)
    }
    return unsafe address
  }

  package func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    unsafe munmap(address, byteCount)
  }

  package func protect(
    _ address: UnsafeMutableRawPointer, byteCount: Int
  ) throws(SystemError) {
    _ = try systemCall("mprotect") { unsafe mprotect(address, byteCount, PROT_READ) }
  }

  // MARK: The process and the machine

  /// The bytes of hexadecimal digits, such as "xxxxxxxx-xxxx-…".
  static func bytes(ofDigits text: some Sequence<UInt8>) -> [UInt8] {
    let digits = text.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    return stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    // The standard library's generator is the kernel's.
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  package func fileSizeLimit() -> Int {
    var limit = rlimit()
    guard unsafe getrlimit(resourceNumber(RLIMIT_FSIZE), &limit) == 0 else { return .max }
    return Int(clamping: limit.rlim_cur)
  }

  package func userIdentifier() -> UInt32 { geteuid() }

  /// A descriptor above 2 for the same file. A program may have closed its standard streams and
  /// print later. The output must not go into a store.
  private func aboveStandardStreams(_ descriptor: Int32) throws(SystemError) -> Int32 {
    if descriptor > 2 { return descriptor }
    defer { close(descriptor) }
    return try systemCall("fcntl") { fcntl(descriptor, F_DUPFD_CLOEXEC, 3) }
  }
}

extension FileStatus {
  fileprivate init(_ status: stat) {
    let kind: FileStatus.Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      default: .other
      }
    self.init(
      kind: kind, byteCount: Int(status.st_size), allocatedByteCount: Int(status.st_blocks) * 512,
      owner: status.st_uid, linkCount: Int(status.st_nlink),
      permissions: UInt32(status.st_mode & 0o7777),
      identity: FileIdentity(
        device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino)))
  }
}
