import Glibc

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
