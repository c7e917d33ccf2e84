/// What the store does for itself, now.
///
/// The space of values that were overwritten or removed is given back in the background, by compaction,
/// as ``StoreConfiguration/spaceBound`` wants it.
extension Store {
  /// Gives back all space that can be given back: every segment with a dead record is written anew,
  /// the live records only, and removed.
  ///
  /// May be called from any thread, beside readers and writers, and lets them go on. It works in rounds
  /// that write a segment, a sixteenth of the live bytes, or half of what is to be given back, whichever
  /// is most, and makes the log durable with each. It needs that much free space; where there is less it
  /// goes segment by segment. When it throws, what the rounds before gave back stays so, and nothing is lost.
  ///
  /// A segment that is damaged is left as it is; the report says so.
  ///
  /// - Returns: what was done.
  /// - Throws: `noSpace` where there is no room for a round even of one segment; `durabilityUnknown`,
  ///   `poisoned`, `readOnly`, `closed`, also when the store is closed meanwhile, `usedAfterFork`,
  ///   `system`.
  /// - Complexity: O(bytes in segments with dead records). Takes memory for 32 bytes a record of a round.
  @discardableResult
  public func compact() throws(StoreError) -> CompactionReport {
    defer { engine.requestFirstRound() }
    return try engine.compact()
  }

  /// Copies the store as it is now into a new one, while it goes on; as `Snapshot.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (BackupProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    let snapshot = try snapshot()
    defer { snapshot.close() }
    return try snapshot.backup(to: destination, progress: progress)
  }

  /// Does at once all that the store does for itself now and then: removes what has expired, keeps the
  /// free space that the configuration asks for, and compacts where the space bound wants it.
  ///
  /// Safe from any thread, beside readers and writers; they go on.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`: the first
  ///   error, after all was tried.
  /// - Complexity: O(1) where nothing is due.
  public func maintain() throws(StoreError) { try engine.maintain() }
}
