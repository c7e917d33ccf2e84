import Glibc

public let PROT_NONE: Int32 = 0
public let PROT_READ: Int32 = 1
public let PROT_WRITE: Int32 = 2
public let MAP_SHARED: Int32 = 1
public let MAP_PRIVATE: Int32 = 2
public let MAP_ANON: Int32 = 0x1000
public let MAP_ANONYMOUS: Int32 = 0x1000
public let MADV_DONTNEED: Int32 = 4
public var MAP_FAILED: UnsafeMutableRawPointer! { Glibc.MAP_FAILED }

public func mmap(
  _ address: UnsafeMutableRawPointer!, _ count: Int, _ protection: Int32, _ flags: Int32,
  _ descriptor: Int32, _ offset: off_t
) -> UnsafeMutableRawPointer! {
  precondition(flags & ~(MAP_SHARED | MAP_PRIVATE | MAP_ANON) == 0)
  let anonymous = flags & MAP_ANON != 0 ? Glibc.MAP_ANONYMOUS : 0
  return Glibc.mmap(
    address, count, protection, flags & ~MAP_ANON | anonymous, descriptor, Int(offset))
}

/// Darwin keeps the pages: MADV_DONTNEED is a hint.
@discardableResult
public func madvise(_ address: UnsafeMutableRawPointer!, _ count: Int, _ advice: Int32) -> Int32 {
  precondition(advice == MADV_DONTNEED)
  return 0
}
