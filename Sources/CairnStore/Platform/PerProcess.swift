internal import CCairn

/// Distinguishes a forked child from the process that made the mark. A check costs one load.
///
/// Every fork that runs the handlers of pthread_atfork(3) is noticed.
@usableFromInline
@safe
package struct ProcessMark: @unchecked Sendable {
  // SAFETY: the address of a global. The word changes only in a child, before that has threads.
  @usableFromInline let forkCount: UnsafePointer<UInt64>
  @usableFromInline let own: UInt64

  @usableFromInline
  package init() {
    unsafe forkCount = cairn_fork_count_address()
    own = unsafe forkCount.pointee
  }

  /// Whether this process is a child of the one that made the mark.
  @inlinable
  @inline(__always)
  package var isForeign: Bool { unsafe forkCount.pointee != own }
}

/// An object that each process makes for itself. In a forked child, the parent's object may contain
/// locks that stay locked, and may wait for threads that do not exist.
package final class PerProcess<Object: AnyObject & Sendable>: @unchecked Sendable {
  // SAFETY: used only under the lock.
  private var made: (object: Object, mark: ProcessMark)?
  private let make: @Sendable () -> Object

  /// - Parameter make: must not use another object of this type.
  package init(_ make: @escaping @Sendable () -> Object) { self.make = make }

  /// The calling process's object.
  package var object: Object {
    makingPerProcess.withLock { _ in
      if let made, !made.mark.isForeign { return made.object }
      // The parent's object is never released: a `deinit` could wait for one of its locks.
      if let made { _ = unsafe Unmanaged.passRetained(made.object) }
      let object = make()
      made = (object, ProcessMark())
      return object
    }
  }
}

/// The lock under which every process makes its objects.
private let makingPerProcess = Lock((), isOfProcess: true)
