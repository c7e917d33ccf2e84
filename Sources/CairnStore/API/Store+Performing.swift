/// What waits for the disk, off the threads that tasks run on.
extension Store {
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
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws -> Result
  ) async throws -> Result {
    try await perform { (store) throws(StoreError) in Swift.Result { try body(store) } }.get()
  }
}
