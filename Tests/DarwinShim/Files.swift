import Glibc

public typealias mode_t = UInt16
public typealias off_t = Int64
public typealias dev_t = Int32
public typealias ino_t = UInt64
public typealias nlink_t = UInt16
public typealias uid_t = UInt32
public typealias gid_t = UInt32
public typealias pid_t = Int32
public typealias ssize_t = Int

/// The numbers are Linux's, except where two of Linux's numbers are one.
public var errno: Int32 {
  get { Glibc.errno }
  set { Glibc.errno = newValue }
}

// MARK: Opening

public let O_RDONLY: Int32 = 0x0
public let O_WRONLY: Int32 = 0x1
public let O_RDWR: Int32 = 0x2
public let O_NONBLOCK: Int32 = 0x4
public let O_APPEND: Int32 = 0x8
public let O_NOFOLLOW: Int32 = 0x100
public let O_CREAT: Int32 = 0x200
public let O_TRUNC: Int32 = 0x400
public let O_EXCL: Int32 = 0x800
public let O_NOCTTY: Int32 = 0x20000
public let O_DIRECTORY: Int32 = 0x100000
public let O_SYMLINK: Int32 = 0x200000
public let O_CLOEXEC: Int32 = 0x1000000
public let O_SEARCH: Int32 = 0x4010_0000
public let AT_FDCWD: Int32 = -2
public let AT_SYMLINK_NOFOLLOW: Int32 = 0x20

private let openFlags: [(darwin: Int32, linux: Int32)] = [
  // O_PATH, and O_DIRECTORY, which O_SEARCH includes.
  (0x4000_0000, 0o10_000_000),
  (O_WRONLY, Glibc.O_WRONLY), (O_RDWR, Glibc.O_RDWR), (O_NONBLOCK, Glibc.O_NONBLOCK),
  (O_APPEND, Glibc.O_APPEND), (O_NOFOLLOW, Glibc.O_NOFOLLOW), (O_CREAT, Glibc.O_CREAT),
  (O_TRUNC, Glibc.O_TRUNC), (O_EXCL, Glibc.O_EXCL), (O_NOCTTY, Glibc.O_NOCTTY),
  (O_DIRECTORY, Glibc.O_DIRECTORY), (O_CLOEXEC, Glibc.O_CLOEXEC),
]

/// Linux's flags; traps if there are others.
func linuxFlags(_ flags: Int32) -> Int32 {
  var rest = flags
  var result: Int32 = 0
  for (darwin, linux) in openFlags where flags & darwin != 0 {
    rest &= ~darwin
    result |= linux
  }
  precondition(rest == 0, "flags that Darwin lacks, or the shim")
  return result
}

private func linuxDirectory(_ directory: Int32) -> Int32 {
  directory == AT_FDCWD ? Glibc.AT_FDCWD : directory
}

@discardableResult
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
  Glibc.open(path, linuxFlags(flags))
}

@discardableResult
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  Glibc.open(path, linuxFlags(flags), UInt32(mode))
}

@discardableResult
public func openat(_ directory: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
  Glibc.openat(linuxDirectory(directory), path, linuxFlags(flags))
}

@discardableResult
public func openat(
  _ directory: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t
) -> Int32 {
  Glibc.openat(linuxDirectory(directory), path, linuxFlags(flags), UInt32(mode))
}

// MARK: fcntl and ioctl

public let F_DUPFD: Int32 = 0
public let F_GETFD: Int32 = 1
public let F_SETFD: Int32 = 2
public let F_GETFL: Int32 = 3
public let F_SETFL: Int32 = 4
public let F_PREALLOCATE: Int32 = 42
public let F_NOCACHE: Int32 = 48
public let F_FULLFSYNC: Int32 = 51
public let F_DUPFD_CLOEXEC: Int32 = 67
public let F_ALLOCATECONTIG: Int32 = 2
public let F_ALLOCATEALL: Int32 = 4
public let F_PEOFPOSMODE: Int32 = 3
public let FD_CLOEXEC: Int32 = 1

@discardableResult
public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 {
  switch command {
  case F_FULLFSYNC: Glibc.fsync(descriptor)
  case F_GETFD, F_GETFL: Glibc.fcntl(descriptor, command)
  default: preconditionFailure("fcntl \(command)")
  }
}

@discardableResult
public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: Int32) -> Int32 {
  switch command {
  case F_NOCACHE:
    Glibc.posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 ? 0 : -1
  case F_DUPFD_CLOEXEC: Glibc.fcntl(descriptor, Glibc.F_DUPFD_CLOEXEC, value)
  case F_SETFL: Glibc.fcntl(descriptor, command, linuxFlags(value))
  case F_SETFD, F_DUPFD: Glibc.fcntl(descriptor, command, value)
  default: preconditionFailure("fcntl \(command)")
  }
}

@discardableResult
public func fcntl(
  _ descriptor: Int32, _ command: Int32, _ value: UnsafeMutableRawPointer
) -> Int32 {
  switch command {
  case F_PREALLOCATE:
    let store = value.assumingMemoryBound(to: fstore_t.self)
    precondition(store.pointee.fst_posmode == F_PEOFPOSMODE && store.pointee.fst_offset == 0)
    var status = Glibc.stat()
    guard Glibc.fstat(descriptor, &status) == 0 else { return -1 }
    // From the physical end of the file.
    let result = shim_allocate(
      descriptor, Int64(status.st_blocks) * 512, store.pointee.fst_length)
    if result == 0 { store.pointee.fst_bytesalloc = store.pointee.fst_length }
    if result != 0, errno == EOPNOTSUPP { errno = ENOTSUP }
    return result
  default: preconditionFailure("fcntl \(command)")
  }
}

public let TIOCGWINSZ: UInt = 0x4008_7468
public let TIOCSWINSZ: UInt = 0x8008_7467

@discardableResult
public func ioctl(
  _ descriptor: Int32, _ request: UInt, _ value: UnsafeMutableRawPointer
) -> Int32 {
  switch request {
  case TIOCGWINSZ: Glibc.ioctl(descriptor, UInt(Glibc.TIOCGWINSZ), value)
  case TIOCSWINSZ: Glibc.ioctl(descriptor, UInt(Glibc.TIOCSWINSZ), value)
  default: preconditionFailure("ioctl \(request)")
  }
}

// MARK: Status

public let S_IFMT: mode_t = 0o170000
public let S_IFREG: mode_t = 0o100000
public let S_IFDIR: mode_t = 0o040000
public let S_IFLNK: mode_t = 0o120000
public let DT_UNKNOWN: Int32 = 0
public let DT_DIR: Int32 = 4
public let DT_REG: Int32 = 8
public let DT_LNK: Int32 = 10

private func darwinTime(_ time: Glibc.timespec) -> CDarwin.timespec {
  CDarwin.timespec(tv_sec: time.tv_sec, tv_nsec: time.tv_nsec)
}

private func darwinStatus(
  _ result: UnsafeMutablePointer<CDarwin.stat>!, _ call: (inout Glibc.stat) -> Int32
) -> Int32 {
  var status = Glibc.stat()
  guard call(&status) == 0 else { return -1 }
  result.pointee = CDarwin.stat()
  result.pointee.st_dev = Int32(truncatingIfNeeded: status.st_dev)
  result.pointee.st_mode = UInt16(status.st_mode)
  result.pointee.st_nlink = UInt16(clamping: status.st_nlink)
  result.pointee.st_ino = UInt64(status.st_ino)
  result.pointee.st_uid = status.st_uid
  result.pointee.st_gid = status.st_gid
  result.pointee.st_atimespec = darwinTime(status.st_atim)
  result.pointee.st_mtimespec = darwinTime(status.st_mtim)
  result.pointee.st_ctimespec = darwinTime(status.st_ctim)
  result.pointee.st_size = Int64(status.st_size)
  result.pointee.st_blocks = Int64(status.st_blocks)
  result.pointee.st_blksize = Int32(status.st_blksize)
  return 0
}

@discardableResult
public func fstat(_ descriptor: Int32, _ result: UnsafeMutablePointer<CDarwin.stat>!) -> Int32 {
  darwinStatus(result) { Glibc.fstat(descriptor, &$0) }
}

@discardableResult
public func stat(
  _ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<CDarwin.stat>!
) -> Int32 {
  darwinStatus(result) { Glibc.fstatat(Glibc.AT_FDCWD, path, &$0, 0) }
}

@discardableResult
public func lstat(
  _ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<CDarwin.stat>!
) -> Int32 {
  darwinStatus(result) { Glibc.lstat(path, &$0) }
}

@discardableResult
public func fstatat(
  _ directory: Int32, _ path: UnsafePointer<CChar>!,
  _ result: UnsafeMutablePointer<CDarwin.stat>!, _ flags: Int32
) -> Int32 {
  precondition(flags & ~AT_SYMLINK_NOFOLLOW == 0)
  return darwinStatus(result) {
    Glibc.fstatat(
      linuxDirectory(directory), path, &$0, flags == 0 ? 0 : Glibc.AT_SYMLINK_NOFOLLOW)
  }
}

@discardableResult
public func statvfs(
  _ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<CDarwin.statvfs>!
) -> Int32 {
  let descriptor = open(path, O_RDONLY)
  defer { Glibc.close(descriptor) }
  return fstatvfs(descriptor, result)
}

@discardableResult
public func fstatvfs(
  _ descriptor: Int32, _ result: UnsafeMutablePointer<CDarwin.statvfs>!
) -> Int32 {
  var status = Glibc.statvfs()
  guard Glibc.fstatvfs(descriptor, &status) == 0 else { return -1 }
  result.pointee = CDarwin.statvfs()
  result.pointee.f_bsize = status.f_bsize
  result.pointee.f_frsize = status.f_frsize
  result.pointee.f_blocks = UInt32(clamping: status.f_blocks)
  result.pointee.f_bfree = UInt32(clamping: status.f_bfree)
  result.pointee.f_bavail = UInt32(clamping: status.f_bavail)
  return 0
}

/// The filesystems that reserve blocks are HFS+, and the others on which Linux maps files are APFS.
@discardableResult
public func fstatfs(
  _ descriptor: Int32, _ result: UnsafeMutablePointer<CDarwin.statfs>!
) -> Int32 {
  let magic = shim_magic(descriptor)
  if magic < 0 { return -1 }
  let name =
    switch magic {
    case 0x6969: "nfs"
    case 0x517B, 0xFE53_4D42, 0xFF53_4D42: "smbfs"
    case 0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E, 0x6573_5546: "macfuse"
    case 0xEF53, 0x5846_5342, 0x0102_1994: "hfs"  // ext4, XFS, tmpfs
    default: "apfs"
    }
  result.pointee = CDarwin.statfs()
  withUnsafeMutableBytes(of: &result.pointee.f_fstypename) { $0.copyBytes(from: name.utf8) }
  return 0
}

// MARK: Directories

@discardableResult
public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
  Glibc.mkdir(path, UInt32(mode))
}

@discardableResult
public func mkdirat(_ directory: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
  Glibc.mkdirat(linuxDirectory(directory), path, UInt32(mode))
}

@discardableResult
public func mkfifo(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
  Glibc.mkfifo(path, UInt32(mode))
}

@discardableResult
public func chmod(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
  Glibc.chmod(path, UInt32(mode))
}

@discardableResult
public func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 {
  Glibc.fchmod(descriptor, UInt32(mode))
}

@discardableResult
public func fchmodat(
  _ directory: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t, _ flags: Int32
) -> Int32 {
  Glibc.fchmodat(linuxDirectory(directory), path, UInt32(mode), flags)
}

public func umask(_ mask: mode_t) -> mode_t { mode_t(Glibc.umask(UInt32(mask))) }

public let RENAME_SWAP: Int32 = 2

@discardableResult
public func renameatx_np(
  _ directory: Int32, _ name: UnsafePointer<CChar>!, _ otherDirectory: Int32,
  _ other: UnsafePointer<CChar>!, _ flags: UInt32
) -> Int32 {
  precondition(flags == UInt32(RENAME_SWAP))
  let result = shim_exchange(directory, name, otherDirectory, other)
  if result != 0, errno == EINVAL || errno == ENOSYS { errno = ENOTSUP }
  return result
}

public func fdopendir(_ descriptor: Int32) -> UnsafeMutablePointer<DIR>! {
  guard let stream = Glibc.fdopendir(descriptor) else { return nil }
  let directory = UnsafeMutablePointer<DIR>.allocate(capacity: 1)
  directory.initialize(to: DIR())
  directory.pointee.stream = UnsafeMutableRawPointer(stream)
  return directory
}

public func opendir(_ path: UnsafePointer<CChar>!) -> UnsafeMutablePointer<DIR>! {
  let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
  return descriptor < 0 ? nil : fdopendir(descriptor)
}

private func stream(_ directory: UnsafeMutablePointer<DIR>!) -> OpaquePointer {
  OpaquePointer(directory.pointee.stream!)
}

/// The memory behind the name is filled, so that a name that is read too far is wrong.
public func readdir(_ directory: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<
  CDarwin.dirent
>! {
  guard let found = Glibc.readdir(stream(directory)) else { return nil }
  let place = UnsafeMutableRawPointer(directory).advanced(
    by: MemoryLayout<DIR>.offset(of: \.entry)!)
  let entry = place.assumingMemoryBound(to: CDarwin.dirent.self)
  entry.pointee.d_ino = UInt64(found.pointee.d_ino)
  entry.pointee.d_type = found.pointee.d_type
  withUnsafePointer(to: &found.pointee.d_name) { name in
    let bytes = UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self)
    let count = strlen(bytes)
    entry.pointee.d_namlen = UInt16(count)
    withUnsafeMutableBytes(of: &entry.pointee.d_name) { target in
      _ = target.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "?"))
      memcpy(target.baseAddress!, bytes, count + 1)
    }
  }
  return entry
}

public func rewinddir(_ directory: UnsafeMutablePointer<DIR>!) {
  Glibc.rewinddir(stream(directory))
}

@discardableResult
public func closedir(_ directory: UnsafeMutablePointer<DIR>!) -> Int32 {
  let result = Glibc.closedir(stream(directory))
  directory.deallocate()
  return result
}

// MARK: Contents

public let SEEK_SET: Int32 = 0
public let SEEK_CUR: Int32 = 1
public let SEEK_END: Int32 = 2
public let SEEK_HOLE: Int32 = 3
public let SEEK_DATA: Int32 = 4

public func lseek(_ descriptor: Int32, _ offset: off_t, _ whence: Int32) -> off_t {
  precondition(whence != SEEK_HOLE)
  return whence == SEEK_DATA
    ? shim_seek_data(descriptor, offset) : off_t(Glibc.lseek(descriptor, Int(offset), whence))
}

@discardableResult
public func pread(
  _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ offset: off_t
) -> Int {
  Glibc.pread(descriptor, buffer, count, Int(offset))
}

@discardableResult
public func pwrite(
  _ descriptor: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ offset: off_t
) -> Int {
  Glibc.pwrite(descriptor, buffer, count, Int(offset))
}

@discardableResult
public func ftruncate(_ descriptor: Int32, _ length: off_t) -> Int32 {
  Glibc.ftruncate(descriptor, Int(length))
}

@discardableResult
public func truncate(_ path: UnsafePointer<CChar>!, _ length: off_t) -> Int32 {
  Glibc.truncate(path, Int(length))
}

@discardableResult
public func flock(_ descriptor: Int32, _ operation: Int32) -> Int32 {
  shim_flock(descriptor, operation)
}

public let LOCK_SH: Int32 = 1
public let LOCK_EX: Int32 = 2
public let LOCK_NB: Int32 = 4
public let LOCK_UN: Int32 = 8
public let F_OK: Int32 = 0
public let X_OK: Int32 = 1
public let W_OK: Int32 = 2
public let R_OK: Int32 = 4
public let STDIN_FILENO: Int32 = 0
public let STDOUT_FILENO: Int32 = 1
public let STDERR_FILENO: Int32 = 2
