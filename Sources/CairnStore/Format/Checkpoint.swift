/// The first part of a checkpoint's file: everything except the index entries, which follow it
/// shard by shard.
package struct Checkpoint: Sendable, Hashable {
  /// The time at which a tick was assigned.
  package struct Sample: Sendable, Hashable {
    package var tick: UInt64
    package var time: Timestamp

    package init(tick: UInt64, time: Timestamp) {
      self.tick = tick
      self.time = time
    }
  }

  /// The part of a segment that the checkpoint covers.
  package struct CoveredSegment: Sendable, Hashable {
    package var id: SegmentID
    package var salt: UInt64
    /// The checkpoint covers the records before this offset, and none at or after it.
    package var end: Int
    /// The segment's first granule in the address space of locations.
    package var granule = 0
    package var granuleCount = 1
    package var liveByteCount = 0
    package var putCount = 0
    package var livePutCount = 0
    package var tombstoneCount = 0
    package var tombstoneByteCount = 0
    /// The sequence number of the newest tombstone; 0 if there is none.
    package var highestTombstone: SequenceNumber = 0
    /// 0 if there are no records.
    package var lowestSequence: SequenceNumber = 0
    package var highestSequence: SequenceNumber = 0
    /// In milliseconds; `Int64.max` if no record expires.
    package var earliestExpiry = Int64.max
    /// In milliseconds; `UInt64.max` if no record has a limit.
    package var shortestIdleLimit = UInt64.max

    package init(id: SegmentID, salt: UInt64, end: Int) {
      self.id = id
      self.salt = salt
      self.end = end
    }

    /// The granules that the segment occupies.
    package var granules: Range<Int> { granule..<(granule + granuleCount) }
    /// The maximum bytes that fit in the granules.
    package var capacity: Int { granuleCount * Location.granuleByteCount }
  }

  /// Where the file has the entries of one shard.
  package struct Shard: Sendable, Hashable {
    package var offset = 0
    package var count = 0
    /// How many entries can expire.
    package var expirableCount = 0
    package var checksum: UInt32 = 0

    package init() {}

    package var byteCount: Int { count * Checkpoint.entryByteCount }
  }

  package static let magic: [UInt8] = [0x8B, 0x43, 0x52, 0x4E, 0x43, 0x0D, 0x0A, 0x1A]  // "CRNC"
  package static let shardCount = 256
  package static let entryByteCount = 16
  package static let oldestByteCount = 24
  /// No index has more entries in a shard, and no checkpoint repeats more of the oldest. The limits
  /// bound the memory that a forged file can take.
  package static let shardEntryLimit = 1 << 24
  package static let oldestLimit = 4096
  /// All ticks are below this limit.
  package static let tickLimit: UInt64 = 1 << 44

  package var storeIdentifier: [UInt8]
  package var id: UInt64
  /// The floor when the checkpoint was made. If the store's floor differs, the store has been
  /// emptied since.
  package var floorSequence: SequenceNumber = 0
  /// The checkpoint covers every record up to this number, and none above it.
  package var lastSequence: SequenceNumber = 0
  /// No entry has a higher tick.
  package var tick: UInt64 = 0
  package var samples: [Sample] = []
  package var segments: [CoveredSegment] = []
  /// One for each of the 256 shards.
  package var shards = [Shard](repeating: Shard(), count: Checkpoint.shardCount)

  /// How many entries, the least recently used, are repeated at the end of the file.
  package var oldestCount = 0

  package init(storeIdentifier: [UInt8], id: UInt64) {
    self.storeIdentifier = storeIdentifier
    self.id = id
  }

  package var entryCount: Int { shards.reduce(0) { $0 + $1.count } }

  /// The size of the header, which is the offset of the first entry.
  package var headerByteCount: Int {
    Self.headerByteCount(samples: samples.count, segments: segments.count)
  }

  /// The offset of the oldest entries.
  package var oldestOffset: Int { headerByteCount + shards.reduce(0) { $0 + $1.byteCount } }
  /// The size of the oldest entries with their checksum.
  package var oldestSectionByteCount: Int { Self.oldestSectionByteCount(oldestCount) }

  package static func oldestSectionByteCount(_ count: Int) -> Int {
    count == 0 ? 0 : count * oldestByteCount + 4
  }

  /// The size of the whole file.
  package var byteCount: Int { oldestOffset + oldestSectionByteCount }
}

extension Checkpoint {
  /// Whether the checkpoint can belong to the store of this manifest.
  package func agrees(with manifest: Manifest) -> Bool {
    guard floorSequence == manifest.floorSequence else { return false }
    var ends: [SegmentID: (salt: UInt64, end: Int)] = [:]
    for entry in manifest.sealedSegments { ends[entry.id] = (entry.salt, entry.byteCount) }
    for entry in manifest.openSegments {
      // In a store that was not closed, a file's length is known only once the file has been read.
      ends[entry.id] = (entry.salt, manifest.isClean ? entry.byteCount : .max)
    }
    return segments.allSatisfy { covered in
      guard covered.id.rawValue < manifest.nextID else { return false }
      guard let listed = ends[covered.id] else { return true }
      return listed.salt == covered.salt && covered.end <= listed.end
        && (listed.end == .max || listed.end <= covered.capacity)
    }
  }
}
