/// The contents of a checkpoint: the state of a store at one moment.
struct CheckpointBasis {
  let id: UInt64
  let floor: SequenceNumber
  let lastSequence: SequenceNumber
  let snapshot: IndexSnapshot
  let segments: [Checkpoint.CoveredSegment]
  /// The segments that may not be on disk yet, and the offset up to which each must be synced.
  let unsynced: [(segment: Segment, end: Int)]
  /// The number of appended bytes at the moment of the checkpoint.
  var appendedByteCount = 0

  /// The size of the file without the header.
  var leastByteCount: Int {
    snapshot.count * Checkpoint.entryByteCount
      + Checkpoint.oldestSectionByteCount(CheckpointWriter.oldestCount(of: snapshot.count))
  }
}

/// A checkpoint whose file is on disk but not yet listed in a manifest.
struct WrittenCheckpoint {
  let basis: CheckpointBasis
  let checksum: UInt32
  let byteCount: Int
}

/// Writes the file of a checkpoint.
struct CheckpointWriter: ~Copyable {
  /// Entries are collected in a buffer of this size.
  private static let pieceByteCount = 1 << 20

  private let file: File
  private var header: Checkpoint
  private var buffer: [UInt8] = []
  /// The file offset of the buffer.
  private var offset: Int
  /// The least recently used entries. They tell a store that is opened at its limit which entries
  /// to evict first.
  private var oldest: CandidateSelection?

  /// Creates the file and allocates all its blocks.
  ///
  /// - Throws: `noSpace`, `system`.
  init(_ basis: CheckpointBasis, samples: Int, file: File, storeIdentifier: [UInt8])
    throws(StoreError)
  {
    var header = Checkpoint(storeIdentifier: storeIdentifier, id: basis.id)
    header.floorSequence = basis.floor
    header.lastSequence = basis.lastSequence
    header.segments = basis.segments
    header.samples = Array(
      repeating: Checkpoint.Sample(tick: 0, time: Timestamp(millisecondsSinceEpoch: 0)),
      count: samples)
    header.oldestCount = Self.oldestCount(of: basis.snapshot.count)
    try file.allocate(
      from: 0,
      to: header.headerByteCount + basis.leastByteCount,
      orExtend: true)
    self.init(header, file)
  }

  // An initialiser that throws must delegate: the compiler of Swift 6.2 crashes on one that does
  // not, in a type that cannot be copied.
  private init(_ header: Checkpoint, _ file: File) {
    self.header = header
    self.file = file
    offset = header.headerByteCount
    oldest = header.oldestCount == 0 ? nil : CandidateSelection(limit: header.oldestCount)
  }

  /// How many of the oldest entries are stored again: enough to evict while the index is scanned.
  static func oldestCount(of count: Int) -> Int { min((count + 15) / 16, Checkpoint.oldestLimit) }

  /// Adds the entries of the next shard.
  mutating func add(_ entries: [IndexEntry], shard number: Int) throws(StoreError) {
    var shard = Checkpoint.Shard()
    shard.offset = offset + buffer.count
    shard.count = entries.count
    let start = buffer.count
    buffer.append(
      contentsOf: repeatElement(0, count: entries.count * Checkpoint.entryByteCount))
    buffer.withMutableSpan(in: start..<buffer.count) { bytes in
      for (index, entry) in entries.enumerated() {
        if entry.flags.contains(.canExpire) { shard.expirableCount += 1 }
        bytes.store(entry.words.0, at: index * Checkpoint.entryByteCount)
        bytes.store(entry.words.1, at: index * Checkpoint.entryByteCount + 8)
        oldest?.add(RemovalCandidate(entry, inShard: number, rank: entry.tick))
      }
    }
    shard.checksum = CRC32C.checksum(
      of: buffer.rawSpan.extracting(start..<buffer.count))
    header.shards[number] = shard
    if buffer.count >= Self.pieceByteCount { try flush() }
  }

  private mutating func addOldest() {
    let chosen = oldest.take()?.sorted() ?? []
    header.oldestCount = chosen.count
    if chosen.isEmpty { return }
    let start = buffer.count
    for candidate in chosen {
      buffer.append(littleEndian: candidate.entry.words.0)
      buffer.append(littleEndian: candidate.entry.words.1)
      buffer.append(littleEndian: UInt64(candidate.shard))
    }
    buffer.append(
      littleEndian: CRC32C.checksum(of: buffer.rawSpan.extracting(start..<buffer.count))
    )
  }

  private mutating func flush() throws(StoreError) {
    try file.write(buffer.rawSpan, at: offset)
    offset += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes the rest, and syncs the file.
  ///
  /// - Parameters: the last tick, and one or more samples.
  /// - Returns: the checksum of the header, and the size of the file.
  consuming func finish(
    tick: UInt64, samples: [Checkpoint.Sample]
  ) throws(StoreError) -> (checksum: UInt32, byteCount: Int) {
    addOldest()
    try flush()
    // Ticks advance while the shards are written, so only the current tick is at least as high as
    // every entry's.
    header.tick = tick
    let (room, count) = (header.samples.count, samples.count)
    for index in 0..<room {
      // If there are fewer samples, the last one is repeated, which changes nothing. If there are
      // more, some in the middle are dropped, but not the last one: without it, the latest reads
      // would seem as old as the beginning of this checkpoint.
      let chosen = count > room ? index * (count - 1) / (room - 1) : min(index, count - 1)
      header.samples[index] = samples[chosen]
    }
    let bytes = header.encodedHeader()
    try file.write(bytes.rawSpan, at: 0)
    if try file.status().byteCount != offset { try file.truncate(to: offset) }
    // DURABILITY: the contents are on disk before a manifest lists the file. (Without the sync, a
    // power cut could leave a listed file with unwritten pages. The checksums would reveal them,
    // and the open would scan the log.)
    try file.synchronize()
    return (bytes.rawSpan.load(UInt32.self, at: bytes.count - 4), offset)
  }
}
