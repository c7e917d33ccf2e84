/// Long operations for async code. They run on their own threads, not on Swift's cooperative
/// threads.
extension Store {
  /// Opens the store at a path for reading and writing, or creates it.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public convenience init(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) {
    try await self.init(path: path, configuration: configuration, readOnly: false)
  }

  /// Opens the store at a path for reading.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public convenience init(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) {
    try await self.init(path: path, configuration: configuration, readOnly: true)
  }

  /// Opens the store at a path for reading, and follows the process that writes to it.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public convenience init(
    following path: String, freshness: Freshness = .everyRead,
    configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) {
    let follower = try await WorkQueue.opening.perform(orThrow: .cancelled) {
      () throws(StoreError) in
      try Follower(
        path: path, freshness: freshness, configuration: configuration, environment: .system())
    }
    self.init(
      path: path, configuration: configuration, engine: follower.shell, follower: follower)
  }

  /// Opens the store at a path, calls `body`, and closes the store, whether or not `body` throws.
  ///
  ///     let count = try await Store.withStore(path: "/var/lib/example/blobs") { store in
  ///       try await store.setValue("hello", forKey: "greeting")
  ///       return try store.count()
  ///     }
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, unchanged; otherwise see `init(path:configuration:)` and
  ///   `close()`.
  public nonisolated(nonsending) static func withStore<Result>(
    path: String, configuration: StoreConfiguration = StoreConfiguration(),
    _ body: nonisolated(nonsending) (Store) async throws -> Result
  ) async throws -> Result {
    let store = try await Store(path: path, configuration: configuration)
    let result: Result
    do { result = try await body(store) } catch {
      try? await store.close()
      throw error
    }
    try await store.close()
    return result
  }

  /// Lets later reads see every write acknowledged before this call, on one of the store's own
  /// threads. See the synchronous form.
  public nonisolated(nonsending) func catchUp() async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.catchUp() }
  }

  private convenience init(
    path: String, configuration: StoreConfiguration, readOnly: Bool
  ) async throws(StoreError) {
    self.init(
      path: path, configuration: configuration,
      engine: try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
        try Engine(
          path: path, configuration: configuration, environment: .system(), readOnly: readOnly)
      })
  }

  /// Makes every write durable, marks the store clean and releases its lock, like the synchronous
  /// form. The close does not queue behind other calls to the store, and cancellation does not stop
  /// it.
  public nonisolated(nonsending) func close() async throws(StoreError) {
    try await WorkQueue.performAlone { () throws(StoreError) in try self.close() }
  }

  /// Removes entries by count, size, age or expiry.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began. Once begun, the work finishes.
  @discardableResult
  public nonisolated(nonsending) func trim(
    _ trim: Trim, durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await trimming { (trimmer, pending) throws(StoreError) in
      try trimmer.run(trim, durability: durability, &pending)
    }
  }

  /// Sets new limits, and removes the least recently used entries until the limits hold.
  /// Cancellation: see `trim`.
  public nonisolated(nonsending) func setLimits(
    countLimit: Int?, byteLimit: Int?
  ) async throws(StoreError) {
    try await perform { (store) throws(StoreError) in
      try store.setLimits(countLimit: countLimit, byteLimit: byteLimit)
    }
  }

  /// Removes every entry for which `isRemoved` returns `true`. The closure runs on one of the
  /// store's own threads. Cancellation: see `trim`.
  @discardableResult
  public nonisolated(nonsending) func remove(
    durability: Durability? = nil,
    where isRemoved: @escaping @Sendable (_ key: RawSpan, _ info: EntryInfo) throws -> Bool
  ) async throws -> RemovalSummary {
    try await trimming { (trimmer, pending) throws(StoreError) in
      Swift.Result {
        try trimmer.remove(durability: durability, &pending) { key, _, info in
          try isRemoved(key, info)
        }
      }
    }.get()
  }

  /// Removes entries on another thread by calling `body`, and waits for the removals' durability
  /// without a thread.
  private nonisolated(nonsending) func trimming<Result: Sendable>(
    _ body: @escaping @Sendable (Trimmer, inout PendingWrite) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    let (result, pending) = try await perform { (store) throws(StoreError) in
      var pending = PendingWrite()
      let result = try body(store.trimmer, &pending)
      return (result, pending)
    }
    try await finish(pending)
    return result
  }

  /// Reclaims the space of dead records. Cancellation: see `trim`.
  @discardableResult
  public nonisolated(nonsending) func compact() async throws(StoreError) -> CompactionReport {
    try await perform { (store) throws(StoreError) in try store.compact() }
  }

  /// Runs maintenance now, not in the background. Cancellation: see `trim`.
  public nonisolated(nonsending) func maintain() async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.maintain() }
  }

  /// Copies the current state of the store. Cancellation: see `trim`.
  ///
  /// - Parameters:
  ///   - destination: see the synchronous form.
  ///   - progress: called occasionally, on the thread that does the work.
  @discardableResult
  public nonisolated(nonsending) func backup(
    to destination: String, progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) -> BackupReport {
    try await perform { (store) throws(StoreError) in
      try store.backup(to: destination, progress: progress)
    }
  }

  /// Reads and checks the whole log once, like the synchronous form. A scrub has its own thread, so
  /// it delays no other call.
  ///
  /// - Returns: how much was read, and the damage. `isComplete` is `false` if the task was
  ///   cancelled during the scrub.
  /// - Throws: see the synchronous form. Never throws `cancelled`.
  @discardableResult
  public nonisolated(nonsending) func scrub(
    bytesPerSecond: Int? = nil,
    progress: @escaping @Sendable (WorkProgress) -> Visit = { _ in .next }
  ) async throws(StoreError) -> CheckReport {
    let isCancelled = Lock(false)
    let result = await withTaskCancellationHandler { () -> Swift.Result<CheckReport, StoreError> in
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
}

// MARK: Any work

extension Store {
  /// Lets async code call the synchronous forms.
  ///
  ///     let version = try store.synchronous { try $0.setValue("hello", forKey: "greeting") }
  ///
  /// These forms block the thread while they wait for memory or the disk. A durable write waits for
  /// a sync, which delays all other work queued on that thread.
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`.
  @inlinable
  @discardableResult
  public func synchronous<Result: ~Copyable, Failure: Error>(
    _ body: (Store) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(self)
  }

  /// Runs any work with the store on one of the store's own threads. Use it, for example, to read
  /// values that are not in the page cache, because such reads block their thread until the disk
  /// delivers the values. At most `concurrentCallLimit` calls run at once. Other calls queue.
  ///
  ///     let value = try await store.perform { try $0.value(forKey: "cold") }
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`. `StoreError.cancelled` if the task is cancelled before the work
  ///   begins. The call then throws without delay, and the work is not done. Once begun, the work
  ///   finishes.
  /// - Complexity: two thread switches, in addition to the work.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws -> Result
  ) async throws -> Result {
    try await perform { (store) throws(StoreError) in Swift.Result { try body(store) } }.get()
  }

  @discardableResult
  package nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(StoreError) in try body(self) }
  }
}
