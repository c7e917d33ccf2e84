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
