internal import Synchronization

/// Loads index shards from a checkpoint, and rebuilds damaged ones from the log.
///
/// The source has nothing later than the checkpoint. When the store is opened, replay enters the
/// later records and loads their shards, so a shard that is still unloaded has no later records. No
/// write can have changed it either, because a write loads the shard first.
final class CheckpointSource: ShardSource {
  private let file: CheckpointFile
  private let places: SegmentPlaces
  /// Indexed by the number in the checkpoint's table; `nil` for segments that the store no longer
  /// has.
  private let segments: [Segment?]
  /// Whether entries or their extensions refer to a segment that is gone.
  let dropsEntries: Bool
  private let hash: SipHash
  private let floor: SequenceNumber
  private let recency: RecencyClock
  /// Logs a warning; may be called under a lock.
  private let warn: @Sendable (String) -> Void
  /// Whether the ticks are still those in the file.
  private let knowsOldest = Atomic(true)
  /// The last accesses of omitted entries, by their hashes.
  private let droppedTicks = Lock<[UInt64: UInt64]>([:])
  /// Damaged shards that were rebuilt from the log. They are kept until all shards are loaded,
  /// because a lookup that loads nothing may need them again.
  private let rebuilt = Lock<[Int: ShardContents]>([:])
  /// Roughly how many entries one pass over the log rebuilds. Bounds the memory that a pass takes.
  private static let rebuildLimit = 1 << 20
  /// Extensions of omitted entries, by their hashes.
  private let droppedExtensions = Lock<[UInt64: LifetimeExtension]>([:])

  init(
    _ file: CheckpointFile, segments: [SegmentID: Segment], hash: SipHash, floor: SequenceNumber,
    recency: RecencyClock, warn: @escaping @Sendable (String) -> Void
  ) {
    self.file = file
    places = SegmentPlaces(file.header.segments)
    self.segments = file.header.segments.map { segments[$0.id] }
    // A segment without live puts, tombstones or extensions in force affects no entry.
    dropsEntries = zip(file.header.segments, self.segments).contains { covered, segment in
      segment == nil
        && (covered.livePutCount > 0 || covered.tombstoneCount > 0
          || covered.liveExtensionCount > 0)
    }
    self.hash = hash
    self.floor = floor
    self.recency = recency
    self.warn = warn
  }

  func contents(ofShard number: Int) throws(StoreError) -> ShardContents {
    var contents: ShardContents
    do throws(StoreError) {
      contents = try file.contents(ofShard: number, in: places)
      // If no entries are omitted, a lookup would wait for a segment that is gone.
      if !dropsEntries, segments.contains(where: { $0 == nil }),
        !contents.entries.allSatisfy({ isThere($0.location) })
      {
        let offset = file.header.shards[number].offset
        throw .corrupt(Corruption(file: file.name, offset: offset, cause: .differsFromLog))
      }
    } catch {
      // If entries are omitted, the log alone does not give the usage counts of the rest.
      guard error.isLoss, !dropsEntries else { throw error }
      warn("\(error); its contents are read from the log")
      return try rebuiltContents(ofShard: number)
    }
    if !dropsEntries { return contents }
    let extensions = contents.extensions
    contents.entries.removeAll { entry in
      if isThere(entry.location) { return false }
      let hash = entry.hash << 24 | UInt64(number)
      droppedTicks.withLock { $0[hash] = entry.tick }
      if let known = extensions[entry.location] {
        droppedExtensions.withLock { $0[hash] = known }
      }
      return true
    }
    for (put, known) in contents.extensions {
      if !isThere(put) {
        contents.extensions[put] = nil
      } else if !isThere(known.location) {
        // Replay finds the extension in its new place.
        contents.extensions[put]?.location = .none
      }
    }
    return contents
  }

  /// The least recently used entries, in that order. The tick of every other entry of the
  /// checkpoint is at least as high as that of the last one. Some entries may have been accessed or
  /// replaced since then.
  func oldest() -> [RemovalCandidate] {
    if !knowsOldest.load(ordering: .relaxed) { return [] }
    do throws(StoreError) { return try file.oldest(in: places) } catch {
      warn("\(error); the index is searched for the entries to remove first")
      return []
    }
  }

  /// Must be called before all ticks are renumbered.
  func forgetOldest() { knowsOldest.store(false, ordering: .relaxed) }

  /// Whether the checkpoint covers the record at a location.
  func covers(_ location: Location) -> Bool { places.contains(location) }

  private func isThere(_ location: Location) -> Bool {
    places.number(of: location).map { segments[$0] != nil } ?? false
  }

  /// Extensions that are still in place although their entries were omitted. The checkpoint counts
  /// them as in force.
  var droppedExtensionsInPlace: [LifetimeExtension] {
    droppedExtensions.withLock { Array($0.values) }.filter { isThere($0.location) }
  }

  /// The extended end of an entry's lifetime, if the entry was omitted because its record has
  /// moved. The record may have been copied before the extension was written, and the checkpoint
  /// made afterwards.
  func droppedExtension(of hash: UInt64) -> LifetimeExtension? {
    guard var known = droppedExtensions.withLock({ $0[hash & ~0xFF_FF00] }) else { return nil }
    if !isThere(known.location) { known.location = .none }
    return known
  }

  /// The last access of an entry that was omitted because its record has moved.
  func droppedTick(of hash: UInt64) -> UInt64? {
    droppedTicks.withLock { $0[hash & ~0xFF_FF00] }
  }

  private struct Found {
    var sequence: SequenceNumber
    var location: Location
    /// `nil` for a tombstone.
    var flags: IndexEntry.Flags?
    var expires: Int64?
  }

  /// A damaged shard, rebuilt together with other damaged ones.
  private func rebuiltContents(ofShard number: Int) throws(StoreError) -> ShardContents {
    try rebuilt.withLock { (rebuilt) throws(StoreError) -> ShardContents in
      if let known = rebuilt[number] { return known }
      let found = try rebuild(damagedShards(with: number) { rebuilt[$0] != nil })
      rebuilt.merge(found) { $1 }
      return found[number] ?? ShardContents(entries: [])
    }
  }

  /// A damaged shard and other damaged ones, as many as one pass over the log rebuilds.
  private func damagedShards(with number: Int, except isKnown: (Int) -> Bool) -> Set<Int> {
    var damaged: Set<Int> = [number]
    var entryCount = file.header.shards[number].count
    for (other, shard) in file.header.shards.enumerated()
    where other != number && shard.count > 0 && !isKnown(other) {
      if entryCount + shard.count > Self.rebuildLimit { continue }
      do throws(StoreError) { _ = try file.contents(ofShard: other, in: places) } catch {
        damaged.insert(other)
        entryCount += shard.count
      }
    }
    return damaged
  }

  /// Rebuilds shards from all the records that the checkpoint covers.
  private func rebuild(_ numbers: Set<Int>) throws(StoreError) -> [Int: ShardContents] {
    let isWanted = (0..<HashIndex.shardCount).map { numbers.contains($0) }
    var newest: [[UInt8]: Found] = [:]
    var extensions = ExtensionsByTarget()
    for (covered, segment) in zip(file.header.segments, segments) {
      guard let segment else { continue }
      var scanner = try SegmentScanner(segment, end: covered.end)
      var offset = SegmentHeader.byteCount
      while offset < covered.end {
        guard let header = try scanner.header(at: offset) else {
          throw segment.corruption(at: offset, .badRecordHeader)
        }
        if header.kind == .roll { break }
        let sequence = segment.sequence(of: header)
        if sequence > floor {
          let location = segment.location(at: offset)
          try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) -> Void in
            let hash = hash.hash(key)
            guard isWanted[HashIndex.shard(of: hash)] else { return }
            if header.kind == .extension {
              extensions.add(header, sequence: sequence, hash: hash, at: location, floor: floor)
              return
            }
            let key = key.copied()
            if let known = newest[key], known.sequence >= sequence { return }
            newest[key] = Found(
              sequence: sequence, location: location,
              flags: header.kind == .put ? (header.canExpire ? .canExpire : []) : nil,
              expires: header.flags.contains(.expiry) ? header.expires : nil)
          }
        }
        offset += header.byteCount
      }
    }
    // The last accesses of these entries are lost. As without a checkpoint, opening the store
    // counts as an access.
    var contents: [Int: ShardContents] = [:]
    for number in numbers { contents[number] = ShardContents(entries: []) }
    for (key, found) in newest.sorted(by: { $0.value.sequence < $1.value.sequence }) {
      guard var flags = found.flags else { continue }
      let keyHash = hash.hash(key.rawSpan)
      let shard = HashIndex.shard(of: keyHash)
      if let expires = found.expires, let known = extensions[found.sequence], known.hash == keyHash,
        known.lifetime.expires > expires
      {
        flags.insert(.extended)
        contents[shard]?.extensions[found.location] = known.lifetime
      }
      contents[shard]?.entries.append(
        IndexEntry(
          hash: HashIndex.stored(keyHash), location: found.location, tick: recency.advance(),
          flags: flags))
    }
    for number in numbers { contents[number]?.entries.sort { $0.hash < $1.hash } }
    return contents
  }
}
