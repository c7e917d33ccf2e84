/// Maintenance on demand.
///
/// The store compacts by itself in the background: ``StoreConfiguration/spaceBound`` controls when.
extension Store {
  /// Reclaims the space of all dead records: copies the live records of each segment that has dead
  /// ones, and removes the old segments.
  ///
  /// Safe to call from any thread. Reads and writes continue meanwhile. Compaction works in rounds.
  /// Each round writes up to two segments, needs space for them, and makes the log durable. With
  /// less space, compaction works in smaller pieces. If the call throws, no data is lost, and the
  /// space that earlier rounds reclaimed stays reclaimed.
  ///
  /// Damaged values are copied as they are. Segments with other damage stay unchanged while an entry
  /// may need the damaged records, and the report counts them.
  ///
  /// - Returns: how many segments and bytes were compacted.
  /// - Throws: `noSpace` if the disk has no room for a round and smaller pieces reclaim nothing;
  ///   `durabilityUnknown`, `poisoned`, `readOnly`; `closed`, also if the store closes during the
  ///   call; `usedAfterFork`, `system`.
  /// - Complexity: O(bytes in segments with dead records). Uses 32 bytes of memory per record of a
  ///   round.
  @discardableResult
  public func compact() throws(StoreError) -> CompactionReport {
    try engine.compactor.compact()
  }

  /// Copies the current state of the store into a new store, while writes continue. See
  /// `Snapshot.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    let snapshot = try snapshot()
    defer { snapshot.close() }
    return try snapshot.backup(to: destination, progress: progress)
  }

  /// Reads and checks the whole log once. A scrub finds damage even in data that nobody reads, so
  /// that you learn of it while you still have an undamaged backup. With
  /// ``StoreConfiguration/scrubBytesPerSecond``, maintenance scrubs continuously. For a store that
  /// is not open, `Store.verify` of the module `CairnRepair` checks all files.
  ///
  /// Safe to call from any thread, even on a store open for reading. Reads and writes never wait
  /// for a scrub. A scrub checks the records that exist when the call begins: every head, and the
  /// value of every key that a read would find. It does not read cached pages from the disk again.
  /// It changes nothing, even if it finds damage.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: the highest average rate, 1 or more, or `nil` for no limit. The call
  ///     pauses this thread to stay below that rate.
  ///   - progress: called on this thread after each 256 KiB, and ten times a second during a pause.
  ///     Returning `.stop` ends the scrub.
  /// - Returns: how much was read, and the damage. The configuration's `damageObserver` and log
  ///   also receive each damaged place.
  /// - Throws: `invalidConfiguration`; `closed`, also if the store closes during the call;
  ///   `usedAfterFork`, `outOfMemory`, `system`.
  /// - Complexity: O(bytes of the log), excluding dead values, plus O(keys) for each damaged head.
  ///   Takes 256 KiB of memory, and loads the whole index.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(StoreError) -> CheckReport {
    do throws(StoreError) {
      return try currentEngine.scrubber.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    } catch { throw error.located(in: path) }
  }

  /// Runs maintenance now, not in the background: removes expired entries, compacts to the space
  /// bound, restores the configured free disk space, and takes a few steps of a scrub.
  ///
  /// Safe to call from any thread. Reads and writes continue meanwhile.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `vanished`, `closed`, `usedAfterFork`, `system`.
  ///   If a job fails, the call runs the others, then throws the first error.
  /// - Complexity: O(1) if there is nothing to do.
  public func maintain() throws(StoreError) { try engine.housekeeper.maintain() }
}
