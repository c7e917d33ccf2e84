import Glibc

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
  OpaquePointer(directory.pointee.stream).unsafelyUnwrapped
}

/// The memory behind the name is filled, so that a name that is read too far is wrong.
public func readdir(_ directory: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<
  CDarwin.dirent
>! {
  guard let found = Glibc.readdir(stream(directory)) else { return nil }
  let place = UnsafeMutableRawPointer(directory).advanced(
    by: MemoryLayout<DIR>.offset(of: \.entry).unsafelyUnwrapped)
  let entry = place.assumingMemoryBound(to: CDarwin.dirent.self)
  entry.pointee.d_ino = UInt64(found.pointee.d_ino)
  entry.pointee.d_type = found.pointee.d_type
  withUnsafePointer(to: &found.pointee.d_name) { name in
    let bytes = UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self)
    let count = strlen(bytes)
    entry.pointee.d_namlen = UInt16(count)
    withUnsafeMutableBytes(of: &entry.pointee.d_name) { target in
      _ = target.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "?"))
      memcpy(target.baseAddress.unsafelyUnwrapped, bytes, count + 1)
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
