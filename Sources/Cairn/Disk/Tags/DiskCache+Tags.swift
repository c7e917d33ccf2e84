public import CairnStore

/// Entries that go together.
extension DiskCache {
  /// Removes all entries with a tag, however many they are, in one write.
  ///
  ///     try cache.setValue(page, forKey: url, options: .tags(["user/7"]))
  ///     try cache.removeAll(tagged: "user/7")
  ///
  /// When it returns, no read finds an entry with this tag in either tier that was there when the call began; what is
  /// written from then on is found. What a load brings that began before is not kept if it has the tag; who waits for that
  /// load is given it all the same. The entries themselves go in the background, which observers are told of one by one; until
  /// they are gone they count for the limits and in `count()`, and a removed tag counts in `statistics().sweepingTagCount`.
  ///
  /// An update of a value that has the tag, and that comes at the same moment, comes before the removal or finds nothing. The
  /// idea of a mark is that of generations in memcached's namespaces, and of Varnish's bans.
  ///
  /// - Parameters:
  ///   - tag: 1 to 255 bytes of UTF-8.
  ///   - durability: `nil`: the configuration's.
  /// - Throws: `invalidTag`; `tooManyRemovedTags` where the entries of 1,000 other tags are still to be removed in the
  ///   background; else as `setValue`.
  /// - Complexity: O(tags that are still to be swept), whatever the number of entries.
  public func removeAll(tagged tag: String, durability: Durability? = nil) throws(CacheError) {
    let tag = try TagLimits.bytes(of: tag)
    marks.beginRemoval(of: tag)
    defer { marks.endRemoval(of: tag) }
    do throws(CacheError) { return try mark(tag, durability) } catch {
      guard case .store(.vanished) = error else { throw error }
    }
    // With its directory all went that had the tag.
    try recreate()
  }

  /// Removes all entries with a tag; as the synchronous form, but no thread waits.
  public nonisolated(nonsending) func removeAll(
    tagged tag: String, durability: Durability? = nil
  ) async throws(CacheError) {
    try await onWorkers { (cache) throws(CacheError) in
      try cache.removeAll(tagged: tag, durability: durability)
    }
  }

  /// The keys of all entries with a tag that a read would find, but for those that cannot be decoded.
  ///
  /// - Throws: `invalidTag`; else as `keys()`.
  /// - Complexity: O(keys), with a look at the head of each record.
  public func keys(tagged tag: String) throws(CacheError) -> [Key] {
    let tag = try TagLimits.bytes(of: tag)
    return try collectingKeys { body in
      try forEachHead { key, metadata in
        var hasTag = false
        CacheMetadata.forEachTag(in: metadata) { found in
          hasTag = tag.withBytes { $0.equals(found) }
          return !hasTag
        }
        return hasTag ? try body(key) : .next
      }
    }
  }

  /// Writes the mark of a tag.
  private func mark(_ tag: [UInt8], _ durability: Durability?) throws(CacheError) {
    let store = store
    var (table, version) = marks.current
    while true {
      // Nobody writes between this look and the versions that are given before it.
      try table.mark(tag, store.lastVersion)
      var removals: [RemovalEvent] = []
      let (result, pending) = try entering(
        table, in: store, expecting: version, durability, &removals)
      drop(removals)
      guard case .stored(let stored) = result else {
        // Somebody wrote the record who has not said so yet, or the sweep did.
        events.settle([], after: removals)
        (table, version) = try readMarks(in: store)
        continue
      }
      marks.publish(table, version: stored)
      events.settle([], after: removals)
      store.wakeHousekeeping()
      do throws(StoreError) { try store.finish(pending) } catch { throw .store(error) }
      return
    }
  }

  /// Enters the record of the marks.
  private func entering(
    _ table: TagTable, in store: Store, expecting version: UInt64?, _ durability: Durability?,
    _ removals: inout [RemovalEvent]
  ) throws(CacheError) -> (CompareAndSetResult, PendingWrite) {
    do throws(StoreError) {
      let (result, pending) = try table.encoded.withBytes { (value) throws(StoreError) in
        try ReservedKey.marks.withBytes { (key) throws(StoreError) in
          try store.enter(
            value, forKey: key, expecting: version, options: .ofMarks, durability: durability,
            removals: &removals)
        }
      }
      removals.removeAll { $0.isOfMarks }
      return (result, pending)
    } catch {
      removals.removeAll { $0.isOfMarks }
      drop(removals)
      events.settle([], after: removals)
      throw .store(error)
    }
  }

  /// What the record of the marks says.
  private func readMarks(in store: Store) throws(CacheError) -> (TagTable, version: UInt64?) {
    let entry: Entry?
    do throws(StoreError) { entry = try store.entry(forKey: ReservedKey.marks) } catch {
      throw .store(error)
    }
    guard let entry else { return (TagTable(), nil) }
    let version = entry.info.version
    // What makes no sense was not written by this cache, and was found when it was opened.
    let table = entry.value.withBytes { TagTable(decoding: $0, recordVersion: version) }
    return (table ?? TagTable(all: version), version)
  }

  /// Takes over the marks that earlier sessions have left. Where they are damaged or cannot be trusted, everything that has
  /// tags counts as removed: what should be gone must not be found.
  func loadMarks() throws(CacheError) {
    marks.begin(store)
    let entry: Entry?
    do throws(StoreError) { entry = try store.entry(forKey: ReservedKey.marks) } catch {
      guard case .corrupt = error else { throw .store(error) }
      return try distrustMarks(error.description)
    }
    guard let entry else { return }
    let version = entry.info.version
    if salvageReport?.warnings.contains(.versionsChanged) == true {
      return try distrustMarks("a salvage has given new versions")
    }
    let table = entry.value.withBytes { TagTable(decoding: $0, recordVersion: version) }
    guard let table else { return try distrustMarks("it makes no sense") }
    marks.publish(table, version: version)
    store.wakeHousekeeping()
  }

  private func distrustMarks(_ reason: String) throws(CacheError) {
    events.log(
      .warning, .recovery,
      "the record of removed tags cannot be trusted, so all entries with tags are removed: \(reason)"
    )
    let table = TagTable(all: store.lastVersion)
    do throws(StoreError) {
      let version = try store.setValue(
        table.encoded, forKey: ReservedKey.marks, options: .ofMarks, durability: nil)
      marks.publish(table, version: version)
    } catch { throw .store(error) }
    store.wakeHousekeeping()
  }

  // MARK: What is hidden

  /// Whether what was found is not to be found: an entry that a mark hides, which memory must not show either, or a record of
  /// the cache's own.
  @inline(never)
  func isHidden(_ record: borrowing PinnedEntry) -> Bool {
    let key = record.key
    if ReservedKey.contains(key) { return true }
    guard marks.hides(record.metadata, record.version) else { return false }
    if held != nil {
      recency?.drop(.entry(key: key.copied(), version: record.version, cause: .removed))
    }
    return true
  }

  /// What a read finds while there are marks.
  @inline(never)
  func unhiddenEntry(
    forKey key: RawSpan, part: Record.Part, isAccess: Bool
  ) throws(CacheError) -> PinnedEntry? {
    // What is hidden must not stay for being asked for.
    let record = try readingPinnedEntry(forKey: key, part: part, isAccess: false)
    guard let record, !isHidden(record) else { return nil }
    if marks.isFollowing, hasTags(record) {
      // Between both looks the sweep may have taken the mark away, after the entry.
      let again = try readingPinnedEntry(forKey: key, part: .head, isAccess: false)
      guard let again, again.version == record.version else {
        return try unhiddenEntry(forKey: key, part: part, isAccess: isAccess)
      }
    }
    if isAccess { _ = try? store.touch(key) }
    return record
  }

  private func hasTags(_ record: borrowing PinnedEntry) -> Bool {
    CacheMetadata.hasTags(record.metadata)
  }

  /// Whether a key has an entry on disk that a mark hides.
  func hasHidden(_ key: Key) throws(CacheError) -> Bool {
    if !marks.isActive { return false }
    return try keyCoder.encode(key) { (key) throws(CacheError) in
      let record = try readingPinnedEntry(forKey: key, part: .head, isAccess: false)
      guard let record else { return false }
      return isHidden(record)
    }
  }

  /// Removes the entry of a key that a mark hides, so that a write finds what a read would find.
  ///
  /// - Returns: the tags of the entry that the key has now, and its version; `nil` where it has none or has no tags.
  @discardableResult
  func settle(_ key: RawSpan) throws(CacheError) -> (tags: [[UInt8]], version: UInt64)? {
    if !marks.isUsed { return nil }
    return try storing { () throws(StoreError) -> (tags: [[UInt8]], version: UInt64)? in
      let record: PinnedEntry?
      do throws(StoreError) {
        record = try store.pinnedEntry(forKey: key, part: .head, isAccess: false)
      } catch {
        // Who writes the key is told, or replaces it.
        guard case .corrupt = error else { throw error }
        return nil
      }
      guard let record else { return nil }
      if marks.hides(record.metadata, record.version) {
        _ = try store.compareAndRemove(
          forKey: key, expecting: record.version, durability: .process)
        return nil
      }
      var tags: [[UInt8]] = []
      CacheMetadata.forEachTag(in: record.metadata) { tag in
        tags.append(tag.copied())
        return true
      }
      return tags.isEmpty ? nil : (tags, record.version)
    }
  }

  /// Throws where a key is one of the cache's own.
  func checkKey(_ key: RawSpan) throws(CacheError) {
    if ReservedKey.contains(key) { throw .reservedKey }
  }

  /// Options with tags as they go to the store.
  @inline(never)
  func tagged(_ options: EntryOptions, _ tags: [String]) throws(CacheError) -> EntryOptions {
    let tags = try TagLimits.bytes(of: tags)
    if !tags.isEmpty { marks.noteUse() }
    return options.replacingMetadata(
      by: CacheMetadata(tag: valueCoder.tag, tags: tags, rest: options.metadataBytes).encoded)
  }
}

extension EntryOptions {
  /// Whether an entry of these may have tags, as the caller gives them or as they go to the store.
  @usableFromInline
  var mayHaveTags: Bool {
    tags?.isEmpty == false || metadataBytes.withBytes { CacheMetadata.hasTags($0) }
  }

  /// The same for an update, which keeps the tags of the entry.
  func keeping(tags kept: [[UInt8]]?) -> EntryOptions {
    guard tags == nil, let kept, !kept.isEmpty else { return self }
    var options = self
    options.tags = kept.map { String(decoding: $0, as: UTF8.self) }
    return options
  }
}

extension RemovalEvent {
  /// Whether it is about the record of the marks.
  var isOfMarks: Bool {
    guard case .entry(let key, _, _) = self else { return false }
    return key == ReservedKey.marks
  }
}
