/// What the store does for itself, now.
///
/// The space of values that were overwritten or removed is given back in the background, by compaction,
/// as ``StoreConfiguration/spaceBound`` wants it.
extension Store {
  /// Gives back all space that can be given back: every segment with a dead record is written anew,
  /// the live records only, and removed.
  ///
  /// May be called from any thread, beside readers and writers, and lets them go on. It works in rounds
  /// that write up to two segments each, and makes the log durable with each. It needs that much free space;
  /// with less it goes by pieces. When it throws, what earlier rounds gave back stays so, and nothing is lost.
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
    try engine.compactor.compact()
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

  /// Reads the whole log once and checks it, so that damage to what nobody reads is found while a backup without it
  /// still exists. Maintenance does the same with ``StoreConfiguration/scrubBytesPerSecond``; `verify` reads all
  /// files of a store that nobody has open.
  ///
  /// May be called from any thread, beside readers and writers, and of a store that is open for reading; nobody waits
  /// for it. It reads what is there at the call: every head, and the value of every key that a read would find. What the
  /// page cache holds is not read from the disk. Nothing is changed, even if something is damaged.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: how fast on average, 1 or more; `nil`: as fast as it goes. It rests on this thread.
  ///   - progress: called after each 256 KiB, and ten times a second while it rests, on this thread; `.stop` ends the
  ///     scrub there.
  /// - Returns: what was read and what is damaged; each place is also told to the configuration's `damageObserver` and log.
  /// - Throws: `invalidConfiguration`; `closed`, also when the store is closed meanwhile; `usedAfterFork`,
  ///   `outOfMemory`, `system`.
  /// - Complexity: O(bytes of the log), excluding dead values; O(keys) more for each damaged head. Takes memory for
  ///   256 KiB; the index is loaded as a whole.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (ScrubProgress) -> Visit = { _ in .next }
  ) throws(StoreError) -> ScrubReport {
    do throws(StoreError) {
      return try currentEngine.scrubber.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    } catch { throw error.located(in: path) }
  }

  /// Does at once everything the store does for itself now and then: removes what has expired, keeps the
  /// free space that the configuration asks for, compacts where the space bound wants it, and scrubs a little
  /// where that is due.
  ///
  /// Safe from any thread, beside readers and writers; they go on.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`: the first
  ///   error, after all was tried.
  /// - Complexity: O(1) where nothing is due.
  public func maintain() throws(StoreError) { try engine.housekeeper.maintain() }
}
