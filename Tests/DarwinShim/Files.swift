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

func linuxDirectory(_ directory: Int32) -> Int32 {
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
