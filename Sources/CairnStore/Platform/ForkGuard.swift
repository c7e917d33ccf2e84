internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Distinguishes a forked child from the process that opened a store, using a page that the kernel
/// zeroes in the child. A check costs one load.
@safe
final class ForkGuard: @unchecked Sendable {
  // SAFETY: the page is never unmapped, and zeros are an atomic 0. Only `arm` writes it, with the
  // same value from every thread of a process. `nil` if the kernel cannot zero the page in a child
  // (before Linux 4.14); forks are then not detected.
  private let page: UnsafeMutablePointer<Atomic<Int32>>?

  private static let shared = ForkGuard()

  private init() {
    let byteCount = Int(sysconf(Int32(_SC_PAGESIZE)))
    let address = unsafe mmap(
      nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED,
      unsafe madvise(address, byteCount, MADV_WIPEONFORK) == 0
    else {
      unsafe page = nil
      return
    }
    unsafe page = address.bindMemory(to: Atomic<Int32>.self, capacity: 1)
  }

  /// Marks the calling process, and returns its mark.
  static func arm() -> Mark {
    guard let page = unsafe shared.page else { return unsafe Mark(page: nil, process: 0) }
    let process = getpid()
    unsafe page.pointee.store(process, ordering: .relaxed)
    return unsafe Mark(page: page, process: process)
  }

  /// The mark of the process that opened a store.
  @safe
  struct Mark: @unchecked Sendable {
    // SAFETY: see `ForkGuard.page`.
    fileprivate let page: UnsafeMutablePointer<Atomic<Int32>>?
    fileprivate let process: Int32

    fileprivate init(page: UnsafeMutablePointer<Atomic<Int32>>?, process: Int32) {
      unsafe self.page = unsafe page
      self.process = process
    }

    /// Whether this process is a child of the one that made the mark.
    @inline(__always)
    var isForeign: Bool {
      guard let page = unsafe page else { return false }
      return unsafe page.pointee.load(ordering: .relaxed) != process
    }
  }
}

/// An object that each process makes for itself. In a forked child, a lock of the parent's object
/// may stay locked, and a condition variable may wait for threads that do not exist.
final class PerProcess<Object: AnyObject & Sendable>: Sendable {
  private struct Made: Sendable {
    let object: Object
    let mark = ForkGuard.arm()
  }

  private let make: @Sendable () -> Object
  private let made: Lock<Made>

  init(_ make: @escaping @Sendable () -> Object) {
    self.make = make
    made = Lock(Made(object: make()))
  }

  /// The calling process's object.
  var object: Object {
    made.withLock { made in
      if made.mark.isForeign { made = Made(object: make()) }
      return made.object
    }
  }
}
