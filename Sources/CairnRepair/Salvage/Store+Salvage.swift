public import CairnStore

extension Store {
  /// Copies everything sound in a damaged store into a new store. Changes nothing in the damaged
  /// store, which must not be open for writing.
  ///
  /// The copy has the same keys with the same values, metadata, costs, expiry, idle limits, write
  /// times and, if known, versions. Every copied record has passed its checksums, which also verify
  /// its position in the log. If the newest record of a key is damaged, salvage omits the key
  /// rather than restore an older value. Because salvage reads only the log, it may miss entries
  /// that an open finds in a checkpoint. It copies the sound records of a damaged last batch, which
  /// an open discards. Docs/Durability/Salvage.md describes each case.
  ///
  /// In the report, `isComplete` says whether the copy has every write that may have been
  /// acknowledged.
  ///
  /// If a record is lost with its key, an older value of that key may reappear, because the lost
  /// record may have been its newest value or its removal. The report's `warnings` say so. Read
  /// them before you use the copy in place of the store.
  ///
  /// - Parameters:
  ///   - path: the store. Its manifest and some of its files may be missing.
  ///   - destination: a path that does not exist, or an empty directory, outside the store. When
  ///     the call returns, the new store is durable. If the call throws, it removes the files it
  ///     has written. After a crash, the directory may contain an unfinished copy, marked by a file
  ///     `UNFINISHED-COPY`. It cannot be opened as a store.
  ///   - progress: called occasionally, on this thread.
  /// - Returns: a report of the copied and the lost entries. Damage is listed in the report, not
  ///   thrown.
  /// - Throws: `locked` if a process has the store open for writing; `noStore`, `notAStore`;
  ///   `unusable`; `unsupportedVersion` if a file has a newer format version;
  ///   `unsafeFile`, `unsupportedFileSystem`, `noSpace`, `system`.
  /// - Complexity: O(bytes). Takes memory for all keys and for 1 MiB windows, but not for values.
  @discardableResult
  public static func salvage(
    path: String, to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> SalvageReport {
    try salvage(path: path, to: destination, environment: .system(), progress: progress)
  }

  /// Salvages in an environment that the caller supplies, for simulations.
  package static func salvage(
    path: String, to destination: String, environment: Environment,
    segmentByteLimit: Int = 64 << 20, clock: any WallClock = SystemClock(),
    progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> SalvageReport {
    try Salvager.salvage(
      path: path, to: destination, segmentByteLimit: segmentByteLimit, clock: clock,
      environment: environment, progress: progress)
  }

  /// Copies everything sound in a damaged store into a new store, on a separate thread.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - destination: see the synchronous form.
  ///   - progress: called occasionally, on that thread.
  @discardableResult
  public static nonisolated(nonsending) func salvage(
    path: String, to destination: String,
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) -> SalvageReport {
    try await WorkQueue.performAlone { () throws(StoreError) in
      try salvage(path: path, to: destination, progress: progress)
    }
  }
}
