/// Starts threads. Injected, so that a test decides which threads start.
package struct ThreadStarter: Sendable {
  /// Runs the body on a new thread; `false` if none can be started.
  package let start: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool

  package init(start: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool) {
    self.start = start
  }

  /// pthread_create(3).
  package static let system = ThreadStarter { body in
    // SAFETY: the thread takes ownership of the passed reference.
    let context = unsafe Unmanaged.passRetained(Body(run: body))
    let isStarted = unsafe startThread(context.toOpaque())
    if !isStarted { unsafe context.release() }
    return isStarted
  }

  /// Runs the body that `system` has passed to a thread.
  static func run(_ context: UnsafeMutableRawPointer?) {
    guard let context = unsafe context else { return }
    unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}

extension ThreadStarter {
  /// Runs `body` with every element at the same time, as far as threads can be started.
  ///
  /// - Throws: the error of the first element for which `body` fails, once all calls have returned.
  package func forEach<Element: Sendable>(
    _ elements: [Element], _ body: @escaping @Sendable (Element) throws(StoreError) -> Void
  ) throws(StoreError) {
    if elements.count <= 1 {
      for element in elements { try body(element) }
      return
    }
    let results = Lock<[Result<Void, StoreError>?]>(elements.map { _ in nil }, waits: true)
    @Sendable func run(_ number: Int) {
      let result = Result { () throws(StoreError) in try body(elements[number]) }
      results.withLock { $0[number] = result }
      results.wakeAll()
    }
    let refused = elements.indices.dropFirst().filter { number in !start { run(number) } }
    for number in [0] + refused { run(number) }
    for result in results.waitUntil({ $0.contains { $0 == nil } ? nil : $0 }) {
      try result?.get()
    }
  }

  /// Starts none.
  package static let none = ThreadStarter { _ in false }
}
