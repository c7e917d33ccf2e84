/// The only authority on which files make up a store. Replaced as a whole, atomically.
package struct Manifest: Sendable, Hashable {
  /// A segment that may still grow, or that no scan has confirmed yet.
  package struct OpenSegment: Sendable, Hashable {
    package var id: SegmentID
    package var salt: UInt64
    /// In a clean manifest, the segment's exact length. In any other, how much of the segment was
    /// durable when the session began, or 0. All earlier segments were then durable too.
    package var byteCount: Int

    package init(id: SegmentID, salt: UInt64, byteCount: Int) {
      self.id = id
      self.salt = salt
      self.byteCount = byteCount
    }
  }

  /// A segment that is durable and complete.
  package struct SealedSegment: Sendable, Hashable {
    package var id: SegmentID
    package var salt: UInt64
    /// The end of its records. The file may be longer.
    package var byteCount: Int
    package var lowestSequence: SequenceNumber
    package var highestSequence: SequenceNumber
    /// The newest sequence number when the compaction that wrote the segment began, or 0.
    package var compactedAt: SequenceNumber

    package init(
      id: SegmentID, salt: UInt64, byteCount: Int, lowestSequence: SequenceNumber,
      highestSequence: SequenceNumber, compactedAt: SequenceNumber
    ) {
      self.id = id
      self.salt = salt
      self.byteCount = byteCount
      self.lowestSequence = lowestSequence
      self.highestSequence = highestSequence
      self.compactedAt = compactedAt
    }
  }

  package static let magic: [UInt8] = [0x8B, 0x43, 0x52, 0x4E, 0x4D, 0x0D, 0x0A, 0x1A]  // "CRNM"

  /// 16 random bytes, the same in every file of the store.
  package var storeIdentifier: [UInt8]
  /// Grows by one with each replacement.
  package var generation: UInt64 = 0
  /// Files with this id or a higher one are left over from unfinished work.
  package var nextID: UInt64 = 1
  /// 16 random bytes: the key of the index's hash.
  package var hashSecret: [UInt8]
  /// Records up to this sequence number are ignored, because `removeAll` removed them.
  package var floorSequence: SequenceNumber = 0
  /// At least as high as every sequence number in use when the manifest was written.
  package var lastSequence: SequenceNumber = 0
  /// The id of the newest checkpoint, or 0.
  package var checkpointID: UInt64 = 0
  /// The checksum of that checkpoint's header, so that no other file can pass for the checkpoint.
  package var checkpointChecksum: UInt32 = 0
  /// The time of day when the manifest was written.
  package var lastTime = Timestamp(millisecondsSinceEpoch: 0)
  /// Identifies the boot in which the manifest was written: 16 bytes, or zeros in a backup that no
  /// session has written to.
  package var bootIdentifier: [UInt8]
  /// Whether nothing has been appended since the manifest was written. The lengths of the open
  /// segments are then exact.
  package var isClean = true
  /// In the order of the log. In an unclean manifest, the last ones are places reserved for future
  /// segments, which may have no file yet.
  package var openSegments: [OpenSegment] = []
  package var sealedSegments: [SealedSegment] = []
  /// Ids of unfinished files that no manifest lists yet: those of a compaction, a checkpoint or a
  /// large write.
  package var pendingIDs: [UInt64] = []
  /// Ids of segments and checkpoints that are no longer part of the store, but whose files may
  /// still exist.
  package var retiredIDs: [UInt64] = []

  /// The names of the segments and of the checkpoint that belong to the store.
  package var listedFiles: Set<String> {
    let segments = openSegments.map(\.id) + sealedSegments.map(\.id)
    var names = Set(segments.map { FileName.segment($0) })
    if checkpointID != 0 { names.insert(FileName.checkpoint(checkpointID)) }
    return names
  }

  /// The highest sequence number anywhere in the manifest.
  package var highestSequence: SequenceNumber {
    sealedSegments.reduce(max(floorSequence, lastSequence)) {
      max($0, $1.highestSequence, $1.compactedAt)
    }
  }

  /// The boot identifier of a backup.
  package static let noBoot = [UInt8](repeating: 0, count: 16)

  /// Whether this is a backup that no session has written to: each session writes its boot.
  package var isUnopened: Bool {
    bootIdentifier == Self.noBoot && isClean && openSegments.isEmpty
  }

  /// How many places a session reserves for future segments. Rolling to a reserved segment needs no
  /// new manifest, so this many segments can be filled while one manifest reaches the disk.
  package static let reservedSegmentCount = 32

  /// More numbers than a power cut can take. Since the last manifest on disk, at most 34 segments of
  /// up to 1 GiB were filled before a removal of all and 34 after it, and the removal and two large
  /// writes left numbers out, up to 2^30 each.
  package static let lostSequenceLimit: SequenceNumber = 1 << 33

  /// Adds places for future segments, one for each salt.
  package mutating func reserve(salts: [UInt64]) {
    for salt in salts {
      openSegments.append(
        OpenSegment(id: SegmentID(rawValue: nextID), salt: salt, byteCount: 0))
      nextID += 1
    }
  }

  /// The manifest of a session that continues from this one, which must be clean.
  package func continued(in bootIdentifier: [UInt8], at time: Timestamp, salts: [UInt64])
    -> Manifest
  {
    var next = self
    next.isClean = false
    next.generation &+= 1
    next.bootIdentifier = bootIdentifier
    next.lastTime = time
    next.reserve(salts: salts)
    return next
  }

  /// Whether this manifest continues a clean one and changes nothing else.
  package func continues(_ clean: Manifest, in bootIdentifier: [UInt8]) -> Bool {
    var expected = clean.continued(in: bootIdentifier, at: lastTime, salts: [])
    expected.openSegments = openSegments
    expected.nextID = nextID
    let known = clean.openSegments.count
    return clean.isClean && self == expected && openSegments.count > known
      && Array(openSegments.prefix(known)) == clean.openSegments
      && openSegments.dropFirst(known).allSatisfy {
        $0.byteCount == 0 && $0.id.rawValue >= clean.nextID
      }
  }

  /// Removes everything. The files of all segments must then be removed.
  ///
  /// - Parameter floor: at least as high as every sequence number in use.
  package mutating func removeAll(through floor: SequenceNumber) {
    floorSequence = floor
    retiredIDs += openSegments.map(\.id.rawValue) + sealedSegments.map(\.id.rawValue)
    openSegments = []
    sealedSegments = []
    if checkpointID != 0 { retiredIDs.append(checkpointID) }
    checkpointID = 0
    checkpointChecksum = 0
    isClean = false
  }

  package init(storeIdentifier: [UInt8], hashSecret: [UInt8], bootIdentifier: [UInt8]) {
    self.storeIdentifier = storeIdentifier
    self.hashSecret = hashSecret
    self.bootIdentifier = bootIdentifier
  }
}
