public import CairnStore

/// Removing many entries at once, from both tiers. For details, see the same methods of ``Store``.
/// Trims use the sizes on disk, and the access order of both tiers together. To shrink only memory,
/// trim `memory`. A trim to a count, cost or age of zero removes every entry.
///
/// Compaction reclaims the space in the background. To reclaim it at once, for example on a full
/// disk, call `trim(.toFreeDiskSpace(…))`, or `compact()` after the trim.
extension DiskCache {
  /// Sets new limits, and removes the least recently used entries until the cache is within them.
  /// The memory tier has its own limits: set them on `memory`.
  ///
  /// Each call sets both limits, and `nil` removes a limit. The next open uses its configuration
  /// again.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum bytes of all entries, including keys and metadata, or `nil` for no
  ///     limit. The limit that follows from `diskByteLimit` applies in any case.
  /// - Throws: `invalidConfiguration` for a limit of 0 or less; nothing is then
  ///   changed. Otherwise see `trim`.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try store.setLimits(countLimit: countLimit, byteLimit: byteLimit)
  }

  /// Removes entries by count, size, age or expiry.
  ///
  ///     try cache.trim(.toBytes(512 << 20, order: .largestFirst))
  ///
  /// - Parameter trim: which entries to remove. Bytes are those on disk.
  /// - Returns: a summary of the removed entries. Their cost is in bytes.
  /// - Throws: see the same method of ``/CairnStore/Store``. Earlier removals stay.
  @discardableResult
  public func trim(_ trim: Trim) throws(StoreError) -> RemovalSummary {
    try finishing(nil) { (entered) throws(StoreError) in try enter(trim, &entered) }
  }

  /// Removes every entry for which `shouldRemove` returns `true`. The closure can decide by key,
  /// size, cost or age.
  ///
  ///     try cache.remove { key, info in info.valueByteCount > 1 << 20 }
  ///
  /// The closure is called once for each unexpired entry on disk, in no particular order, with no
  /// lock held. Removal begins after the closure has seen every entry. An entry that has been
  /// rewritten since then stays. So does an entry whose key cannot be decoded, which the log
  /// reports.
  ///
  /// - Throws: any error of `shouldRemove`, unchanged; nothing is then removed. Otherwise a
  ///   ``/CairnStore/StoreError``.
  /// - Complexity: O(keys), with a read of each record's head.
  @discardableResult
  public func remove(
    where shouldRemove: (_ key: Key, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    try finishing(nil) { (entered) throws(StoreError) in
      Result { try enterRemoval(where: shouldRemove, &entered) }
    }.get()
  }

  func enterRemoval(
    where shouldRemove: (_ key: Key, _ info: EntryInfo) throws -> Bool,
    _ entered: inout PendingWrite
  ) throws -> RemovalSummary {
    dropAnyKept()
    // Read before the iteration, because a mark is removed only after the entries it hides.
    let table = try removedTags()
    var isFirst = true
    let summary = try store.trimmer.remove(durability: nil, &entered) { key, metadata, info in
      if ReservedKey.contains(key) || table.hides(metadata, info.version) { return false }
      guard let decoded = decodableKey(key, isFirst: isFirst) else {
        isFirst = false
        return false
      }
      guard try shouldRemove(decoded, info) else { return false }
      try noteWrite(key)
      return true
    }
    // The closure was not called for expired entries. No later call may return them.
    if flights.retained > 0 { _ = try enter(.expired, &entered) }
    flights.history.forgetAll()
    return summary
  }

  /// Removes every entry, and reclaims the space. The removal is on disk when the call returns.
  /// Observers receive a single event.
  ///
  /// - Parameter progress: called after each file is removed, on this thread, with no lock held. By
  ///   then, reads find no entry.
  /// - Complexity: O(segments), whatever the number of keys.
  public func removeAll(progress: (WorkProgress) -> Void = { _ in }) throws(StoreError) {
    try removeAll(callStart(), progress: progress)
  }

  func removeAll(
    _ start: CallStart, progress: (WorkProgress) -> Void
  ) throws(StoreError) {
    defer { note(.removal, since: start) }
    flights.noteRemovalOfAll()
    do throws(StoreError) { try store.removeAll(progress: progress) } catch {
      noteFailedRemoval(error)
      throw error
    }
  }

  func enter(
    _ trim: Trim, _ entered: inout PendingWrite
  ) throws(StoreError) -> RemovalSummary {
    var trim = trim
    var removesAll = false
    switch trim {
    case .toCount(let count, let order):
      removesAll = count <= 0
      let recordCount = try marks.recordCount()
      trim = .toCount(min(count, .max - 1) + recordCount, order: order)
    case .toBytes(let cost, _): removesAll = cost <= 0
    case .unused(let age), .older(let age): removesAll = age <= .zero
    case .toFreeDiskSpace, .expired: break
    }
    if removesAll {
      trim = .toCount(0)
      dropAnyKept()
    }
    if case .expired = trim { held?.trim(.expired) }
    return try store.trimmer.run(trim, durability: nil, &entered)
  }
}
