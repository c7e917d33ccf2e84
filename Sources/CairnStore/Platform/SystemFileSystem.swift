internal import CCairn

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

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
      try systemCall("open") { unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
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
      _ = Glibc.close(descriptor)
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

  package func exchange(
    _ name: String, with other: String, in directory: Int32
  ) throws(SystemError) {
    _ = try systemCall("renameat2") { unsafe cairn_exchange(directory, name, other) }
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try systemCall("unlink") { unsafe unlinkat(directory, name, 0) }
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

  package func close(_ descriptor: Int32) {
    // Never retried: Linux has freed the descriptor even if close reports EINTR.
    _ = Glibc.close(descriptor)
  }

  package func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try systemCall("fstat") { unsafe fstat(descriptor, &status) }
    let kind: FileStatus.Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      default: .other
      }
    return FileStatus(
      kind: kind, byteCount: Int(status.st_size), allocatedByteCount: Int(status.st_blocks) * 512,
      owner: status.st_uid, linkCount: Int(status.st_nlink), permissions: status.st_mode & 0o7777,
      identity: FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)))
  }

  package func linkCount(of descriptor: Int32) throws(SystemError) -> Int {
    var status = stat()
    _ = try systemCall("fstat") { unsafe fstat(descriptor, &status) }
    return Int(status.st_nlink)
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

  package func lockBytes(_ descriptor: Int32, exclusively: Bool?) throws(SystemError) -> Bool {
    let kind = exclusively.map { $0 ? F_WRLCK : F_RDLCK } ?? F_UNLCK
    do {
      _ = try systemCall("fcntl") { cairn_lock_bytes(descriptor, Int32(kind)) }
      return true
    } catch  where error.errorNumber == EAGAIN || error.errorNumber == EACCES {
      return false
    }
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: the buffer's address and count belong together.
    try systemCall("pread") { unsafe pread(descriptor, buffer.baseAddress, buffer.count, offset) }
  }

  package func write(
    _ descriptor: Int32, from buffer: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // SAFETY: see `read`.
    try systemCall("pwrite") { unsafe pwrite(descriptor, buffer.baseAddress, buffer.count, offset) }
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
    do { _ = try systemCall("fallocate", retrying: retrying, body) } catch  where error.isRefusal {
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

  package func truncate(_ descriptor: Int32, to byteCount: Int) throws(SystemError) {
    _ = try systemCall("ftruncate") { ftruncate(descriptor, byteCount) }
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
      unsafe Glibc.open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    }
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 64)
    let count = try text.withMutableSpan { (span) throws(SystemError) in
      try unsafe span.withUnsafeMutableBytes { (buffer) throws(SystemError) in
        try systemCall("read") { unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
      }
    }
    // "xxxxxxxx-xxxx-…": 32 hexadecimal digits.
    let digits = text.prefix(count).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    return stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }

  package func randomBytes(count: Int) throws(SystemError) -> [UInt8] {
    // The standard library's generator is getrandom(2) on Linux.
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  package func fileSizeLimit() -> Int {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else {
      return .max
    }
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
