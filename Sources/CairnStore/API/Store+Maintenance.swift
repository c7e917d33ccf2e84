/// Maintenance on demand.
///
/// Compaction reclaims the space of overwritten and removed values in the background, as
/// ``StoreConfiguration/spaceBound`` asks.
extension Store {
  /// Reclaims all reclaimable space: rewrites every segment that has a dead record, keeping only
  /// the live records, and removes the old one.
  ///
  /// Safe to call from any thread; readers and writers continue. It works in rounds. Each round
  /// writes up to two segments, makes the log durable and needs that much free space; with less, it
  /// works in pieces. If it throws, the space that earlier rounds reclaimed stays reclaimed, and
  /// nothing is lost.
  ///
  /// Leaves damaged segments unchanged; the report says so.
  ///
  /// - Returns: what was done.
  /// - Throws: `noSpace` if there is no room for a round of even one segment; `durabilityUnknown`,
  ///   `poisoned`, `readOnly`, `closed`, also if the store closes meanwhile, `usedAfterFork`,
  ///   `system`.
  /// - Complexity: O(bytes in segments with dead records). Uses memory for 32 bytes a record of a
  ///   round.
  @discardableResult
  public func compact() throws(StoreError) -> CompactionReport {
    try engine.compactor.compact()
  }

  /// Copies the current state of the store into a new store while writes continue; see
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
  /// does the same; `verify` reads all files of a store that nobody has open.
  ///
  /// Safe to call from any thread, also on a store open for reading; readers and writers never wait
  /// for it. It reads what is there at the call: every head, and the value of every key that a read
  /// would find. Pages in the page cache are not read from the disk. It changes nothing, even if it
  /// finds damage.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: the average rate, 1 or more; `nil`: no limit. The pauses are on this
  ///     thread.
  ///   - progress: called after each 256 KiB, and ten times a second during a pause, on this
  ///     thread; `.stop` ends the scrub there.
  /// - Returns: what was read and what is damaged. The configuration's `damageObserver` and log
  ///   also receive each place.
  /// - Throws: `invalidConfiguration`; `closed`, also if the store closes meanwhile;
  ///   `usedAfterFork`, `outOfMemory`, `system`.
  /// - Complexity: O(bytes of the log), excluding dead values; O(keys) more for each damaged head.
  ///   Uses 256 KiB of memory and loads the whole index.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(StoreError) -> ScrubReport {
    do throws(StoreError) {
      return try currentEngine.scrubber.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    } catch { throw error.located(in: path) }
  }

  /// Does all due maintenance at once: removes expired entries, keeps the free space that the
  /// configuration asks for, compacts to the space bound, and scrubs a little if that is due.
  ///
  /// Safe to call from any thread; readers and writers continue.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`: the first
  ///   error, after everything was tried.
  /// - Complexity: O(1) if nothing is due.
  public func maintain() throws(StoreError) { try engine.housekeeper.maintain() }
}
