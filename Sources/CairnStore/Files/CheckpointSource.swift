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
  /// Whether entries refer to a segment that is gone.
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
  private let rebuilt = Lock<[Int: [IndexEntry]]>([:])
  /// Roughly how many entries one pass over the log rebuilds. Bounds the memory that a pass takes.
  private static let rebuildLimit = 1 << 20

  init(
    _ file: CheckpointFile, segments: [SegmentID: Segment], hash: SipHash, floor: SequenceNumber,
    recency: RecencyClock, warn: @escaping @Sendable (String) -> Void
  ) {
    self.file = file
    places = SegmentPlaces(file.header.segments)
    self.segments = file.header.segments.map { segments[$0.id] }
    // A segment without live puts or tombstones affects no entry.
    dropsEntries = zip(file.header.segments, self.segments).contains { covered, segment in
      segment == nil && (covered.livePutCount > 0 || covered.tombstoneCount > 0)
    }
    self.hash = hash
    self.floor = floor
    self.recency = recency
    self.warn = warn
  }

  func entries(ofShard number: Int) throws(StoreError) -> [IndexEntry] {
    var entries: [IndexEntry]
    do throws(StoreError) {
      entries = try file.entries(ofShard: number, in: places)
      // If no entries are omitted, a lookup would wait for a segment that is gone.
      if !dropsEntries, segments.contains(where: { $0 == nil }),
        !entries.allSatisfy({ isThere($0.location) })
      {
        let offset = file.header.shards[number].offset
        throw .corrupt(Corruption(file: file.name, offset: offset, cause: .differsFromLog))
      }
    } catch {
      // If entries are omitted, the log alone does not give the usage counts of the rest.
      guard error.isLoss, !dropsEntries else { throw error }
      warn("\(error); its contents are read from the log")
      return try rebuiltEntries(ofShard: number)
    }
    if !dropsEntries { return entries }
    entries.removeAll { entry in
      if isThere(entry.location) { return false }
      droppedTicks.withLock { $0[entry.hash(inShard: number)] = entry.tick }
      return true
    }
    return entries
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

  /// The last access of an entry that was omitted because its record has moved.
  func droppedTick(of hash: UInt64) -> UInt64? {
    droppedTicks.withLock { $0[HashIndex.known(hash)] }
  }

  private struct Found {
    var sequence: SequenceNumber
    var location: Location
    /// `nil` for a tombstone.
    var flags: IndexEntry.Flags?
  }

  /// A damaged shard, rebuilt together with other damaged ones.
  private func rebuiltEntries(ofShard number: Int) throws(StoreError) -> [IndexEntry] {
    try rebuilt.withLock { (rebuilt) throws(StoreError) -> [IndexEntry] in
      if let known = rebuilt[number] { return known }
      let found = try rebuild(damagedShards(with: number) { rebuilt[$0] != nil })
      rebuilt.merge(found) { $1 }
      return found[number] ?? []
    }
  }

  /// A damaged shard and other damaged ones, as many as one pass over the log rebuilds.
  private func damagedShards(with number: Int, except isKnown: (Int) -> Bool) -> Set<Int> {
    var damaged: Set<Int> = [number]
    var entryCount = file.header.shards[number].count
    for (other, shard) in file.header.shards.enumerated()
    where other != number && shard.count > 0 && !isKnown(other) {
      if entryCount + shard.count > Self.rebuildLimit { continue }
      do throws(StoreError) { _ = try file.entries(ofShard: other, in: places) } catch {
        damaged.insert(other)
        entryCount += shard.count
      }
    }
    return damaged
  }

  /// Rebuilds shards from all the records that the checkpoint covers.
  private func rebuild(_ numbers: Set<Int>) throws(StoreError) -> [Int: [IndexEntry]] {
    let isWanted = (0..<HashIndex.shardCount).map { numbers.contains($0) }
    var newest: [[UInt8]: Found] = [:]
    for (covered, segment) in zip(file.header.segments, segments) {
      guard let segment else { continue }
      var scanner = try SegmentScanner(segment, end: covered.end)
      try scanner.readAll(of: segment) { (scanner, header, offset) throws(StoreError) in
        let sequence = segment.sequence(of: header)
        if header.kind == .roll || sequence <= floor { return }
        let location = segment.location(at: offset)
        try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) -> Void in
          let hash = hash.hash(key)
          guard isWanted[HashIndex.shard(of: hash)] else { return }
          let key = key.copied()
          if let known = newest[key], known.sequence >= sequence { return }
          newest[key] = Found(
            sequence: sequence, location: location,
            flags: header.kind == .put ? (header.canExpire ? .canExpire : []) : nil)
        }
      }
    }
    // The last accesses of these entries are lost. As without a checkpoint, opening the store
    // counts as an access.
    var entries: [Int: [IndexEntry]] = [:]
    for number in numbers { entries[number] = [] }
    for (key, found) in newest.sorted(by: { $0.value.sequence < $1.value.sequence }) {
      guard let flags = found.flags else { continue }
      let keyHash = hash.hash(key.rawSpan)
      entries[HashIndex.shard(of: keyHash)]?.append(
        IndexEntry(
          hash: HashIndex.stored(keyHash), location: found.location, tick: recency.advance(),
          flags: flags))
    }
    for number in numbers { entries[number]?.sort { $0.hash < $1.hash } }
    return entries
  }
}
