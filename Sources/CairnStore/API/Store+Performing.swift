/// What waits for the disk, off the threads that tasks run on.
extension Store {
  /// Opens the store at a path on a thread that opens share; as `init(path:configuration:)`.
  ///
  /// - Throws: as `init(path:configuration:)`; `cancelled` where the task was cancelled before the work began.
  public static func open(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) -> Store {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
      try Store(path: path, configuration: configuration)
    }
  }

  /// Opens the store at a path for reading, on a thread that opens share; as `init(readingAt:configuration:)`.
  ///
  /// - Throws: as `init(readingAt:configuration:)`; `cancelled` where the task was cancelled before the work began.
  public static func open(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) -> Store {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
      try Store(readingAt: path, configuration: configuration)
    }
  }

  /// Does work that throws errors of the store only on one of the store's own threads, so that none of those that
  /// tasks run on waits for the disk. As many run at once as `concurrentCallLimit` in the configuration says; the
  /// others wait in line.
  ///
  ///     let version = try await store.perform { (store) throws(StoreError) in
  ///       try store.setValue("hello", forKey: "greeting", durability: .durable)
  ///     }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `cancelled` where the task was cancelled before the work began, at once: nothing
  ///   was done then. Once begun, the work goes on to its end.
  /// - Complexity: a hop to another thread and back.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(StoreError) in try body(self) }
  }

  /// Does any work with the store off the threads that tasks run on.
  ///
  ///     let summary = try await store.perform { try $0.trim(toCount: 10_000) }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `StoreError.cancelled` where the task was cancelled before the work began:
  ///   nothing was done then. Once begun, the work goes on to its end.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws -> Result
  ) async throws -> Result {
    try await perform { (store) throws(StoreError) in Swift.Result { try body(store) } }.get()
  }

  /// As `scrub(bytesPerSecond:progress:)`, on a thread of its own, so it holds up no other call.
  ///
  /// - Returns: what was found; `isComplete` is `false` where the task was cancelled meanwhile.
  /// - Throws: as `scrub(bytesPerSecond:progress:)`; never `cancelled`.
  @discardableResult
  public func performScrub(
    bytesPerSecond: Int? = nil,
    progress: @escaping @Sendable (ScrubProgress) -> Visit = { _ in .next }
  ) async throws(StoreError) -> ScrubReport {
    let isCancelled = Lock(false)
    let result = await withTaskCancellationHandler { () -> Swift.Result<ScrubReport, StoreError> in
      do throws(StoreError) {
        return .success(
          try await WorkQueue.performAlone { () throws(StoreError) in
            try self.scrub(bytesPerSecond: bytesPerSecond) {
              isCancelled.withLock { $0 } ? .stop : progress($0)
            }
          })
      } catch { return .failure(error) }
    } onCancel: {
      isCancelled.withLock { $0 = true }
    }
    return try result.get()
  }

  /// As `sync()`. It waits in line as all work does, and is done also where the task is cancelled: who asks for it
  /// on the way out means to keep what was written.
  ///
  /// - Throws: as `sync()`; never `cancelled`.
  public func performSync() async throws(StoreError) {
    try await workers.performUncancelled { () throws(StoreError) in try self.sync() }
  }

  /// As `close()`, on a thread of its own, so it waits in no line, and also where the task is cancelled. A close is
  /// never given up.
  ///
  /// - Throws: as `close()`; never `cancelled`.
  public func performClose() async throws(StoreError) {
    try await WorkQueue.performAlone { () throws(StoreError) in try self.close() }
  }
}
