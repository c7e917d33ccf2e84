public import CairnStore

/// Removing entries together, by their tags.
extension DiskCache {
  /// Removes all entries with a tag in one write, however many there are.
  ///
  ///     try cache.setValue(page, forKey: url, options: .tags(["user/7"]))
  ///     try cache.removeAll(tagged: "user/7")
  ///
  /// When the call returns, no read finds an entry with this tag that existed when the call began.
  /// Reads find entries that are written later. If a load began before the call, its callers get
  /// the value, but a value with the tag is not kept, and later callers do not get it. The entries
  /// are removed in the background, and observers receive each removal. Until then, `count()` and
  /// the limits include them, and `sweepingTags` of `statistics()` includes the tag.
  ///
  /// A concurrent update of a value with the tag happens before the removal, or finds no value. The
  /// mechanism resembles generations in memcached's namespaces, and Varnish's bans.
  ///
  /// - Parameters:
  ///   - tag: 1 to 255 bytes of UTF-8.
  ///   - durability: `nil` for the configured class.
  /// If an entry cannot be read, its tags are unknown, and all removed tags wait for it. Once 1,000
  /// wait, the next removal removes all entries with tags.
  ///
  /// - Throws: `invalidTag`, also if the entries of 1,000 other tags are still being removed.
  ///   Otherwise see `setValue`.
  /// - Complexity: O(tags whose entries are still being removed), whatever the number of entries.
  public func removeAll(tagged tag: String, durability: Durability? = nil) throws(StoreError) {
    try finishing(.removal) { (entered) throws(StoreError) in
      try enterRemoval(ofTag: tag, durability: durability, &entered)
    }
  }

  private func enterRemoval(
    ofTag tag: String, durability: Durability?, _ entered: inout PendingWrite
  ) throws(StoreError) {
    let tag = try TagLimits.bytes(of: tag)
    // If it fails, another removal or the sweep has written the record but not yet published it.
    while try !mark(tag, durability, &entered) { try refreshMarks() }
  }

  /// Removes all entries with a tag, like the synchronous form, but blocks no thread.
  public nonisolated(nonsending) func removeAll(
    tagged tag: String, durability: Durability? = nil
  ) async throws(StoreError) {
    try await finishing(.removal) { [self] (entered) throws(StoreError) in
      try enterRemoval(ofTag: tag, durability: durability, &entered)
    }
  }

  /// The keys with a tag that a read would find, except keys that cannot be decoded.
  ///
  /// - Throws: `invalidTag`; otherwise see `keys()`.
  /// - Complexity: O(keys), with a read of each record's head.
  public func keys(tagged tag: String) throws(StoreError) -> [Key] {
    let tag = try TagLimits.bytes(of: tag)
    return try collectingKeys { body in
      try forEachHead { key, metadata in
        var hasTag = false
        CacheMetadata.forEachTag(in: metadata) { found in
          hasTag = tag.rawSpan.equals(found)
          return !hasTag
        }
        return hasTag ? try body(key) : .next
      }
    }
  }

  /// Writes the mark of a tag.
  ///
  /// - Returns: `false` if the record's version differs from the known one, in which case nothing
  ///   was written.
  private func mark(
    _ tag: [UInt8], _ durability: Durability?, _ entered: inout PendingWrite
  ) throws(StoreError) -> Bool {
    var removals: [RemovalEvent] = []
    var pending: PendingWrite?
    var failure: StoreError?
    var hasMarkedAll = false
    events.holdBack()
    marks.beginRemoval(of: tag)
    do throws(StoreError) {
      pending = try enterMark(of: tag, durability, &removals, hasMarkedAll: &hasMarkedAll)
    } catch { failure = error }
    // Do this before any observer runs: an observer may write an entry with the tag, and would wait
    // for this.
    marks.endRemoval(of: tag)
    flights.noteRemoval(ofTag: String(decoding: tag, as: UTF8.self))
    removals.removeAll { $0.isOfMarks }
    drop(removals)
    let heldBack = events.takeHeldBack()
    events.settle([], after: removals)
    for event in heldBack { events.report(event) }
    if let failure {
      // The record may have been written anyway.
      if !failure.hasWrittenNothing { try? refreshMarks() }
      noteFailedRemoval(failure)
      throw failure
    }
    guard let pending else { return false }
    if hasMarkedAll {
      events.log(
        .warning, .damage,
        "an entry cannot be read, and \(TagLimits.markCount) removed tags wait for it: all entries"
          + " with tags are removed")
    }
    store.wakeHousekeeping()
    entered.add(pending)
    return true
  }

  private func enterMark(
    of tag: [UInt8], _ durability: Durability?, _ removals: inout [RemovalEvent],
    hasMarkedAll: inout Bool
  ) throws(StoreError) -> PendingWrite? {
    var table: TagTable
    let version: UInt64?
    (table, version) = marks.known
    hasMarkedAll = try table.mark(tag, store.lastVersion, mayMarkAll: marks.isStuck)
    let (value, key) = (table.encoded, ReservedKey.marks)
    let (result, pending) = try store.enter(
      value.rawSpan, forKey: key.rawSpan, expecting: version, options: .ofMarks,
      durability: durability, removals: &removals)
    guard case .stored(let stored) = result else { return nil }
    marks.publish(table, version: stored)
    return pending
  }

  /// Loads the marks that earlier sessions left.
  func loadMarks() throws(StoreError) {
    marks.begin(store)
    try refreshMarks()
    if marks.isActive { store.wakeHousekeeping() }
  }

  /// Reads the record of the marks again. If it is damaged, all tags count as removed, because no
  /// removed entry may be found.
  private func refreshMarks() throws(StoreError) {
    if try marks.refresh(store) { return }
    let (table, version) = try store.distrustMarks()
    marks.publish(table, version: version)
    events.log(
      .warning, .recovery,
      "the record of removed tags is damaged, so all entries with tags are removed")
    store.wakeHousekeeping()
  }

  // MARK: What is hidden

  /// The entry that `read` finds, unless a mark hides it or it is the cache's own record.
  func unhidden(
    _ read: () throws(StoreError) -> PinnedEntry?
  ) throws(StoreError) -> PinnedEntry? {
    var earlier: TagTable?
    while true {
      let record = try read()
      guard let record, !isReserved(record) else { return nil }
      if !mayBeHidden(record) { return record }
      let table: TagTable
      if let earlier { table = earlier } else { table = try removedTags() }
      if isHidden(record, by: table) { return nil }
      // Between these two reads, the sweep may have removed the entry and then the mark. So the
      // entry is read again after the table.
      if earlier != nil { return record }
      earlier = table
    }
  }

  private func isReserved(_ record: borrowing PinnedEntry) -> Bool {
    ReservedKey.contains(record.key)
  }

  private func mayBeHidden(_ record: borrowing PinnedEntry) -> Bool {
    marks.mayHide(record.metadata, record.version)
  }

  private func isHidden(_ record: borrowing PinnedEntry, by table: TagTable) -> Bool {
    guard table.hides(record.metadata, record.version) else { return false }
    drop([.entry(key: record.key.copied(), version: record.version, cause: .removed)])
    return true
  }

  /// The current marks.
  func removedTags() throws(StoreError) -> TagTable {
    return try marks.current().table
  }

  /// The entry that a read finds while marks exist.
  @inline(never)
  func unhiddenEntry(
    forKey key: RawSpan, part: Record.Part, isAccess: Bool
  ) throws(StoreError) -> PinnedEntry? {
    // A read must not make the store keep a hidden entry.
    let record = try unhidden { () throws(StoreError) in
      try readingPinnedEntry(forKey: key, part: part, isAccess: false)
    }
    if record != nil, isAccess, !marks.isFollowing { _ = try? store.touch(key) }
    return record
  }

  /// Removes the entry of a key if a mark hides it, so that a write finds what a read would find.
  ///
  /// - Returns: the tags and the version of the remaining entry, or `nil` if there is no entry or
  ///   it has no tags.
  @discardableResult
  func settle(_ key: RawSpan) throws(StoreError) -> (tags: [[UInt8]], version: UInt64)? {
    if !marks.isUsed || marks.isFollowing { return nil }
    let table = marks.known.table
    let record: PinnedEntry?
    do throws(StoreError) {
      record = try store.pinnedEntry(forKey: key, part: .head, isAccess: false)
    } catch {
      // The write itself reports the damage or replaces the entry.
      guard case .corrupt = error else { throw error }
      return nil
    }
    guard let record else { return nil }
    if table.hides(record.metadata, record.version) {
      do throws(StoreError) {
        _ = try store.compareAndRemove(
          forKey: key, expecting: record.version, durability: .process)
      } catch {
        // If the disk takes no more writes, the write itself says so.
        if !error.isOfStoppedDisk { throw error }
      }
      return nil
    }
    let tags = CacheMetadata.tags(in: record.metadata)
    return tags.isEmpty ? nil : (tags, record.version)
  }

  /// Throws if a key is reserved for the cache.
  func checkKey(_ key: RawSpan) throws(StoreError) {
    if ReservedKey.contains(key) {
      throw .invalidKey(reason: "its prefix is reserved for the cache")
    }
  }

  /// The options of an update, in the store's form. If they have no tags, the entry keeps its own
  /// tags unchanged, even beyond the limits: another version of this library may have had other
  /// limits.
  func stored(
    _ options: EntryOptions, keeping tags: [[UInt8]]?
  ) throws(StoreError) -> EntryOptions {
    guard options.tags == nil, let tags, !tags.isEmpty else { return try stored(options) }
    return encode(tags, in: options)
  }

  /// Options with these tags, in the store's form.
  @inline(never)
  func encode(_ tags: [[UInt8]], in options: EntryOptions) -> EntryOptions {
    if !tags.isEmpty { marks.noteUse() }
    return options.encoded(
      metadata: CacheMetadata(tag: valueCoder.tag, tags: tags, rest: options.metadataBytes).encoded)
  }
}

extension Store {
  /// Marks every tag as removed. Replaces the record of the marks, which cannot be trusted.
  ///
  /// - Returns: the new table, and the version of its record.
  @discardableResult
  func distrustMarks() throws(StoreError) -> (table: TagTable, version: UInt64) {
    let table = TagTable(all: lastVersion)
    let version = try setValue(
      table.encoded, forKey: ReservedKey.marks, options: .ofMarks, durability: nil)
    return (table, version)
  }
}

extension EntryOptions {
  /// Whether the entry may have tags, in either form of the options.
  @usableFromInline
  var mayHaveTags: Bool {
    if tags == nil, metadataBytes.isEmpty { return false }
    return tags?.isEmpty == false || CacheMetadata.hasTags(metadataBytes.rawSpan)
  }
}

extension RemovalEvent {
  /// Whether this is about the record of the marks.
  var isOfMarks: Bool {
    guard case .entry(let key, _, _) = self else { return false }
    return key == ReservedKey.marks
  }
}

extension StoreError {
  /// Whether a write that threw this error has certainly written nothing.
  var hasWrittenNothing: Bool {
    switch self {
    case .noSpace, .invalidKey, .tooLarge, .readOnly, .unsupportedOption, .unencodable, .invalidTag:
      true
    default: false
    }
  }
}
