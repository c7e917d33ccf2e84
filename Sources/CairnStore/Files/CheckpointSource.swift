internal import Synchronization

/// Gives the index its shards from a checkpoint; one that is damaged, from the log.
///
/// What it knows ends where the checkpoint does: later records are entered by replay when the store
/// is opened, which loads the shards that they concern. So a shard that is still unloaded has no
/// later records, and no write can have come since: it would have loaded the shard first.
final class CheckpointSource: ShardSource {
  private let file: CheckpointFile
  private let places: SegmentPlaces
  /// By the number in the table; `nil` for those that the store has no more.
  private let segments: [Segment?]
  /// Whether a segment is gone that entries, or the extensions of entries, name.
  let dropsEntries: Bool
  private let hash: SipHash
  private let floor: SequenceNumber
  private let recency: RecencyClock
  /// Warns, from under a lock too.
  private let warn: @Sendable (String) -> Void
  /// Whether the ticks are still those of the file.
  private let knowsOldest = Atomic(true)
  /// When entries that were left out were last accessed, by their hashes.
  private let droppedTicks = Lock<[UInt64: UInt64]>([:])
  /// Damaged shards that were found again in the log. They are kept as long as any shard is not loaded: a
  /// look that loads nothing may ask again.
  private let rebuilt = Lock<[Int: ShardContents]>([:])
  /// About so many entries are found again in one reading of the log. It bounds the memory that takes.
  private static let rebuildLimit = 1 << 20
  /// Extensions of entries that were left out, by their hashes.
  private let droppedExtensions = Lock<[UInt64: LifetimeExtension]>([:])

  init(
    _ file: CheckpointFile, segments: [SegmentID: Segment], hash: SipHash, floor: SequenceNumber,
    recency: RecencyClock, warn: @escaping @Sendable (String) -> Void
  ) {
    self.file = file
    places = SegmentPlaces(file.header.segments)
    self.segments = file.header.segments.map { segments[$0.id] }
    // One that had neither live puts nor tombstones nor extensions in force tells nothing of any entry.
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
    do throws(StoreError) { contents = try file.contents(ofShard: number, in: places) } catch {
      // Where entries are left out, the log alone does not tell what the rest amounts to.
      guard error.isLoss, !dropsEntries else { throw error }
      warn("\(error); what it held is read from the log")
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
        // Replay comes upon it in its new place.
        contents.extensions[put]?.location = .none
      }
    }
    return contents
  }

  /// The entries that were accessed longest ago, in that order; no other entry of the checkpoint has a lower
  /// tick than the last. Some may have been accessed or replaced since.
  func oldest() -> [RemovalCandidate] {
    if !knowsOldest.load(ordering: .relaxed) { return [] }
    do throws(StoreError) { return try file.oldest(in: places) } catch {
      warn("\(error); what goes first is looked for in the index")
      return []
    }
  }

  /// All ticks are about to change.
  func forgetOldest() { knowsOldest.store(false, ordering: .relaxed) }

  /// Whether the checkpoint knows what lies at a location.
  func covers(_ location: Location) -> Bool { places.contains(location) }

  private func isThere(_ location: Location) -> Bool {
    places.number(of: location).map { segments[$0] != nil } ?? false
  }

  /// Extensions of entries that were left out, whose records are there: the checkpoint counts them as
  /// being in force.
  var droppedExtensionsInPlace: [LifetimeExtension] {
    droppedExtensions.withLock { Array($0.values) }.filter { isThere($0.location) }
  }

  /// To when the lifetime of an entry was extended that was left out, since its record lies somewhere
  /// else now. The copy may have been made before the extension was, and the checkpoint after it.
  func droppedExtension(of hash: UInt64) -> LifetimeExtension? {
    guard var known = droppedExtensions.withLock({ $0[hash & ~0xFF_FF00] }) else { return nil }
    if !isThere(known.location) { known.location = .none }
    return known
  }

  /// When an entry that was left out, since its record lies somewhere else now, was last accessed.
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

  /// A damaged shard, found again together with all others that are damaged.
  private func rebuiltContents(ofShard number: Int) throws(StoreError) -> ShardContents {
    try rebuilt.withLock { (rebuilt) throws(StoreError) -> ShardContents in
      if let known = rebuilt[number] { return known }
      let found = try rebuild(damagedShards(with: number) { rebuilt[$0] != nil })
      rebuilt.merge(found) { $1 }
      return found[number] ?? ShardContents(entries: [])
    }
  }

  /// A damaged shard and others that are damaged too, as many as are found again in one reading of the log.
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

  /// Some shards, from all the records that the checkpoint covers.
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
    // When each was last accessed is lost: as where there is no checkpoint, opening the store counts.
    var contents: [Int: ShardContents] = [:]
    for number in numbers { contents[number] = ShardContents(entries: []) }
    for (key, found) in newest.sorted(by: { $0.value.sequence < $1.value.sequence }) {
      guard var flags = found.flags else { continue }
      let keyHash = key.withSpan { hash.hash($0) }
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
