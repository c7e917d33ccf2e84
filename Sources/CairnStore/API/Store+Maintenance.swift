/// Maintenance on demand.
///
/// Compaction reclaims the space of overwritten and removed values in the background, as
/// ``StoreConfiguration/spaceBound`` asks.
extension Store {
  /// Reclaims all reclaimable space: copies the live records of every segment that has dead
  /// records, and removes the old segments.
  ///
  /// Safe to call from any thread. Readers and writers continue. Compaction works in rounds. Each
  /// round writes up to two segments, makes the log durable and needs space for those segments.
  /// With less space, it works in pieces. If it throws, the space that earlier rounds reclaimed
  /// stays reclaimed, and nothing is lost.
  ///
  /// Leaves damaged segments unchanged and reports them.
  ///
  /// - Returns: the result of the compaction.
  /// - Throws: `noSpace` if the disk has no room for a round of even one segment;
  ///   `durabilityUnknown`, `poisoned`, `readOnly`; `closed`, also if the store closes during the
  ///   call; `usedAfterFork`, `system`.
  /// - Complexity: O(bytes in segments with dead records). Uses 32 bytes of memory per record of a
  ///   round.
  @discardableResult
  public func compact() throws(StoreError) -> CompactionReport {
    try engine.compactor.compact()
  }

  /// Copies the current state of the store into a new store while writes continue. See
  /// `Snapshot.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    let snapshot = try snapshot()
    defer { snapshot.close() }
    return try snapshot.backup(to: destination, progress: progress)
  }

  /// Reads and checks the whole log once, to find damage in data that nobody reads while an
  /// undamaged backup still exists. With ``StoreConfiguration/scrubBytesPerSecond``, maintenance
  /// does the same continuously. `verify` reads all files of a store that is not open.
  ///
  /// Safe to call from any thread, even on a store open for reading. Readers and writers never wait
  /// for it. It checks the records that exist when the call begins: every head, and the value of
  /// every key that a read would find. It does not reread cached pages from the disk. It changes
  /// nothing, even if it finds damage.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: the average rate, 1 or more, or `nil` for no limit. The call pauses this
  ///     thread to keep the rate.
  ///   - progress: called after each 256 KiB, and ten times a second during a pause, on this
  ///     thread; `.stop` ends the scrub there.
  /// - Returns: the amount read and the damage. The configuration's `damageObserver` and log also
  ///   receive each damaged place.
  /// - Throws: `invalidConfiguration`; `closed`, also if the store closes during the call;
  ///   `usedAfterFork`, `outOfMemory`, `system`.
  /// - Complexity: O(bytes of the log), excluding dead values, plus O(keys) for each damaged head.
  ///   Uses 256 KiB of memory and loads the whole index.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(StoreError) -> ScrubReport {
    do throws(StoreError) {
      return try currentEngine.scrubber.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    } catch { throw error.located(in: path) }
  }

  /// Does all due maintenance at once: removes expired entries, keeps the configured free space,
  /// compacts to the space bound, and takes a few scrub steps if due.
  ///
  /// Safe to call from any thread. Readers and writers continue.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`: the first
  ///   error, after trying everything.
  /// - Complexity: O(1) if nothing is due.
  public func maintain() throws(StoreError) { try engine.housekeeper.maintain() }
}
