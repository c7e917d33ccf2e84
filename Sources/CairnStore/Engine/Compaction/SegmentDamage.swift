/// What is known of a segment that a round of compaction could not read.
///
/// The bytes without a sound record are *holes*. A round passes over a hole once no index entry
/// names a record in it. Until then the segment stays, and keeps tombstones from being dropped, but
/// only those whose keys may have a put in it:
///
/// - If the holes have no dead put, these are the keys with a hash in `hashes`: those of all sound
///   puts, and of the entries in the holes.
/// - Otherwise, a hole may have a dead put of any key K. When the index was read, K's newest record
///   was a put, whose hash is in `hashes` too, or a tombstone up to `lastUnknown`. Such a tombstone
///   is kept as long as the segment stays. It keeps the dead put dead, whatever is written to K
///   later.
struct SegmentDamage: Sendable {
  let holes: [Range<Int>]
  /// Whether the disk could not read some bytes. The error may pass.
  let hasReadErrors: Bool
  /// How often a round has failed before, and the time before which none tries again.
  private(set) var failureCount: Int
  var rest: Timestamp?
  /// The hashes, as far as the index knows them, and the locations of entries in holes.
  private let entries: [(hash: UInt64, location: Location)]
  private let hashes: Set<UInt64>
  private let lastUnknown: SequenceNumber
  /// Whether each tombstone has a sound head.
  private let hasAllTombstones: Bool

  /// Reads the heads of a segment, and the index.
  init(
    of segment: Segment, _ lookup: Lookup, _ log: LogWriter, failureCount: Int
  ) throws(StoreError) {
    self.failureCount = failureCount
    let end = segment.usage.end
    let found = SegmentUsage(total: UsageTotal())
    var hashes: Set<UInt64> = []
    var holes: [Range<Int>] = []
    var hasReadErrors = false
    var offset = SegmentHeader.byteCount
    var hole: Int?
    do throws(StoreError) {
      var scanner = try SegmentScanner(segment, end: end, passesUnreadable: true)
      while offset < end {
        let header = try hole == nil ? scanner.header(at: offset) : scanner.candidate(at: offset)
        guard let header else {
          hole = hole ?? offset
          // Nothing follows the end of the file.
          offset = scanner.holds(offset..<offset + 1) ? offset + 8 : end
          continue
        }
        if let start = hole { holes.append(start..<offset) }
        hole = nil
        if header.kind == .put {
          let hash = try scanner.withKey(of: header, at: offset) { lookup.hash.hash($0) }
          hashes.insert(HashIndex.known(hash))
        }
        offset += header.byteCount
        found.add(header, sequence: segment.sequence(of: header), end: offset, isLive: false)
      }
      hasReadErrors = !scanner.unreadable.isEmpty
    } catch {
      switch error {
      case .corrupt: break
      case .system(let failure) where !SystemError.isOfProcess(failure.errorNumber):
        // The file cannot even be opened. That may pass too.
        hasReadErrors = true
      default: throw error
      }
      hole = hole ?? offset
    }
    if let hole { holes.append(hole..<end) }
    var entries: [(hash: UInt64, location: Location)] = []
    try lookup.forEachEntry { entry, shard in
      guard segment.granules.contains(entry.location.granule) else { return }
      let offset = segment.offset(of: entry.location)
      if holes.contains(where: { $0.contains(offset) }) {
        entries.append((entry.hash(inShard: shard), entry.location))
      }
    }
    // An entry that was replaced in the meantime counts as a dead put.
    let hasAllDeadPuts = segment.usage.putCount == found.putCount + entries.count
    if hasAllDeadPuts {
      hashes.formUnion(entries.map(\.hash))
    } else {
      // Only now, because this takes memory for each key of the store.
      try lookup.forEachEntry { entry, shard in hashes.insert(entry.hash(inShard: shard)) }
    }
    self.hashes = hashes
    lastUnknown = hasAllDeadPuts ? 0 : log.lastSequence
    hasAllTombstones = segment.usage.tombstoneCount == found.tombstoneCount
    self.holes = holes
    self.entries = entries
    self.hasReadErrors = hasReadErrors
  }

  /// Whether a round may try the segment again: its pause is over, and an error of the disk may
  /// have passed, or no entry is left in a hole.
  func isDue(at now: Timestamp, _ index: HashIndex) -> Bool {
    if let rest, now < rest, rest <= now.advanced(by: Self.longestRest) { return false }
    return hasReadErrors || !hasLiveEntries(index)
  }

  /// Whether a round loses nothing if it passes over the holes. Tombstones below the barrier may
  /// be lost.
  func canBePassed(
    _ usage: SegmentUsage, barrier: SequenceNumber, _ index: HashIndex
  ) -> Bool {
    (hasAllTombstones || usage.highestTombstoneSequence < barrier) && !hasLiveEntries(index)
  }

  /// A record that is not live now is never live again.
  private func hasLiveEntries(_ index: HashIndex) -> Bool {
    entries.contains { index.find($0.hash, at: $0.location) { _ in } }
  }

  /// Sets the time of the next attempt. The pause doubles with each failure.
  mutating func pause(from now: Timestamp) {
    rest = now.advanced(by: min(Self.longestRest, .seconds(10 << min(failureCount, 10))))
    failureCount += 1
  }

  private static let longestRest = Duration.seconds(3600)

  /// Whether a tombstone must be kept, with all others of its key.
  func keepsAll(_ sequence: SequenceNumber) -> Bool { sequence <= lastUnknown }

  /// Whether the newest tombstone of a key with this hash must be kept.
  func keepsNewest(_ hash: UInt64) -> Bool { hashes.contains(HashIndex.known(hash)) }
}

/// The barriers that the segments outside a round impose.
struct TombstoneBarriers {
  /// The barrier of the segments that were read.
  var sound = SequenceNumber.max
  /// The others, with their barriers.
  var damaged: [(barrier: SequenceNumber, damage: SegmentDamage)] = []

  init() {}

  /// Call under the log's lock, because a segment's counts are exact only there.
  init(
    of appender: borrowing Appender, without leaving: Set<SegmentID>,
    _ known: [SegmentID: SegmentDamage]
  ) {
    for segment in appender.segments where !leaving.contains(segment.id) {
      let barrier = segment.tombstoneBarrier
      if let damage = known[segment.id] {
        if barrier < .max { damaged.append((barrier, damage)) }
      } else {
        sound = min(sound, barrier)
      }
    }
  }

  /// A segment whose tombstones are all below this may be dropped unread.
  var lowest: SequenceNumber { damaged.reduce(sound) { min($0, $1.barrier) } }
}

/// Tombstones that compaction has kept for damaged segments only. Of a key's tombstones, the newest
/// is enough.
struct HeldTombstones: Sendable {
  private struct Held {
    let sequence: SequenceNumber
    let segment: SegmentID
    let byteCount: Int
  }

  private var newest: [[UInt8]: Held] = [:]
  /// Their bytes in each segment.
  private(set) var byteCounts: [SegmentID: Int] = [:]

  /// Whether a newer tombstone of the key was kept. If that one was dropped since, a newer record
  /// of the key is in its place.
  func hasNewer(than sequence: SequenceNumber, of key: [UInt8]) -> Bool {
    newest[key].map { sequence < $0.sequence } ?? false
  }

  /// Notes a copied tombstone.
  ///
  /// - Parameter key: `nil` if no other tombstone makes this one superfluous.
  mutating func add(
    _ key: [UInt8]?, _ sequence: SequenceNumber, byteCount: Int, in segment: SegmentID
  ) {
    byteCounts[segment, default: 0] += byteCount
    guard let key else { return }
    let held = Held(sequence: sequence, segment: segment, byteCount: byteCount)
    guard let other = newest.updateValue(held, forKey: key) else { return }
    let older = other.sequence > sequence ? held : other
    byteCounts[older.segment, default: 0] -= older.byteCount
    if other.sequence > sequence { newest[key] = other }
  }
}
