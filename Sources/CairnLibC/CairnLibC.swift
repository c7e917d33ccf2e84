// The C library of the system, for all files that use it. Where the systems have the same thing under different names,
// files use that of Linux.

#if canImport(Darwin)
  @_exported public import Darwin

  /// Opens a directory only to inspect its location.
  public var O_PATH: Int32 { O_SEARCH }

  extension stat {
    public var st_mtim: timespec { st_mtimespec }
  }

  /// The resource, as the calls take it.
  @inlinable
  public func resourceNumber(_ number: Int32) -> Int32 { number }
#elseif canImport(Glibc)
  @_exported public import Glibc

  /// Glibc's module does not expose it. The value is the same on every Linux that Swift supports.
  public var O_PATH: Int32 { 0o10_000_000 }

  /// The resource, as the calls take it.
  @inlinable
  public func resourceNumber(_ number: __rlimit_resource) -> __rlimit_resource_t {
    __rlimit_resource_t(number.rawValue)
  }
#elseif canImport(Musl)
  @_exported public import Musl
#endif
