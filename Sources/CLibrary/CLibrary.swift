// The C library of the system, for all files that use it. Where the systems have the same thing under different names,
// files use that of Linux.

#if canImport(Darwin)
  @_exported public import Darwin

  /// Opens a directory only to inspect its location.
  public var O_PATH: Int32 { O_SEARCH }

  extension stat {
    public var st_mtim: timespec { st_mtimespec }
  }

  extension sigaction {
    public var __sigaction_handler: __sigaction_u {
      get { unsafe __sigaction_u }
      set { unsafe __sigaction_u = newValue }
    }
  }

  extension __sigaction_u {
    public var sa_handler: (@convention(c) (Int32) -> Void)? {
      get { unsafe __sa_handler }
      set { unsafe __sa_handler = newValue }
    }
  }
#elseif canImport(Glibc)
  @_exported public import Glibc

  /// Glibc's module does not expose it. The value is the same on every Linux that Swift supports.
  public var O_PATH: Int32 { 0o10_000_000 }
#elseif canImport(Musl)
  @_exported public import Musl
#endif
