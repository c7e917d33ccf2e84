internal import CairnStore

// A call first enters its writes, then finishes them. Only the second half waits for a sync, so it
// is all in which the synchronous and the async forms of a call differ.
extension DiskCache {
  /// Enters writes by calling `enter`, and finishes them.
  ///
  /// - Parameter operation: for the times of calls. `nil` if the call is not timed.
  func finishing<Result>(
    _ operation: CacheOperation?,
    _ enter: (inout PendingWrite) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let start = callStart()
    defer { note(operation, since: start) }
    var entered = PendingWrite()
    // If `enter` throws, the writes that it made before must still become durable.
    let result = Swift.Result { () throws(StoreError) in try enter(&entered) }
    try store.finish(entered)
    return try result.get()
  }

  /// Enters writes by calling `enter` on one of the cache's own threads, and finishes them without
  /// blocking a thread.
  ///
  /// - Parameter isLong: whether `enter` takes long. If so, the call throws `cancelled` if the task
  ///   is cancelled before that begins. Otherwise cancellation has no effect.
  nonisolated(nonsending) func finishing<Result: Sendable>(
    _ operation: CacheOperation?, isLong: Bool = false,
    _ enter: @escaping @Sendable (inout PendingWrite) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try checkProcess()
    let start = callStart()
    defer { note(operation, since: start) }
    let work: @Sendable () throws(StoreError) -> (Swift.Result<Result, StoreError>, PendingWrite) =
      {
        [self] () throws(StoreError) in
        var entered = PendingWrite()
        let result = Swift.Result { () throws(StoreError) in try enter(&entered) }
        entered = store.slowed(entered)
        return (result, entered)
      }
    let result: Swift.Result<Result, StoreError>
    let entered: PendingWrite
    if isLong {
      (result, entered) = try await workers.perform(orThrow: .cancelled, work)
    } else {
      (result, entered) = try await store.entering.performUncancelled(work)
    }
    try await store.finish(entered)
    return try result.get()
  }
}
