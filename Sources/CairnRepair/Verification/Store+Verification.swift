public import CairnStore

extension Store {
  /// Checks every byte of the files of a store that is not open for writing, and compares its
  /// checkpoint with the log.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - progress: called after each segment, on this thread.
  /// - Returns: a report. Damage is listed in the report, not thrown.
  /// - Throws: `locked`, `noStore`, `notAStore`, `unsupportedVersion`, `unsupportedFileSystem`,
  ///   `unsafeFile`, `outOfMemory`, `system`: the store could not be checked.
  /// - Complexity: O(bytes). Takes memory for the manifest and a 1 MiB window. If the store has a
  ///   checkpoint, also takes as much memory as the index of the open store, and a descriptor for
  ///   each segment.
  public static func verify(
    path: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> CheckReport {
    try verify(path: path, environment: .system(), progress: progress)
  }

  /// Checks a store in an environment that the caller supplies, for simulations.
  package static func verify(
    path: String, environment: Environment, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> CheckReport {
    try Verifier.verify(path: path, environment: environment, progress: progress)
  }

  /// Checks every byte of the files of a store that is not open for writing, on a separate thread.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - progress: called after each segment, on that thread.
  public static nonisolated(nonsending) func verify(
    path: String, progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) -> CheckReport {
    try await WorkQueue.performAlone { () throws(StoreError) in
      try verify(path: path, progress: progress)
    }
  }
}
