#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Starts threads. Injected, so that a test decides which threads start.
package struct ThreadStarter: Sendable {
  /// Runs the body on a new thread; `false` if none can be started.
  package let start: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool

  package init(start: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool) {
    self.start = start
  }

  /// pthread_create(3).
  package static let system = ThreadStarter { body in
    var thread = pthread_t()
    // SAFETY: the thread takes ownership of the passed reference.
    let context = unsafe Unmanaged.passRetained(Body(run: body))
    let result = unsafe pthread_create(
      &thread, nil,
      { context in
        guard let context = unsafe context else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    if result != 0 {
      unsafe context.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
