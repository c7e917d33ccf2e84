/// The sole authority on which files make up a store. Replaced as a whole, atomically.
package struct Manifest: Sendable, Hashable {
  /// A segment that may still grow or that no scan has confirmed yet.
  package struct OpenSegment: Sendable, Hashable {
    package var id: SegmentID
    package var salt: UInt64
    /// In a clean manifest its exact length; in any other how much of it, and all of the segments
    /// before it, was durable when the session began, or 0.
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
    /// Where its records end. The file may be longer.
    package var byteCount: Int
    package var lowestSequence: SequenceNumber
    package var highestSequence: SequenceNumber
    /// 0, or the newest sequence number when the compaction that wrote it began.
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
  /// Every file with this id or a higher one is left over from something that did not finish.
  package var nextID: UInt64 = 1
  /// 16 random bytes: the key of the index's hash.
  package var hashSecret: [UInt8]
  /// Records with this sequence number or a lower one do not count: a removal of all.
  package var floorSequence: SequenceNumber = 0
  /// At least every sequence number in use when the manifest was written.
  package var lastSequence: SequenceNumber = 0
  /// The id of the newest checkpoint, or 0.
  package var checkpointID: UInt64 = 0
  /// The checksum of that checkpoint's header: no other file can pass for it.
  package var checkpointChecksum: UInt32 = 0
  /// The time of day when the manifest was written.
  package var lastTime = Timestamp(millisecondsSinceEpoch: 0)
  /// The run of the kernel in which it was written: 16 bytes.
  package var bootIdentifier: [UInt8]
  /// Whether nothing was appended since, so that the lengths of the open segments are exact.
  package var isClean = true
  /// In the order of the log.
  package var openSegments: [OpenSegment] = []
  package var sealedSegments: [SealedSegment] = []
  /// Ids handed out to a running compaction.
  package var pendingIDs: [UInt64] = []
  /// Ids of segments that hold nothing any more and whose files may still be there.
  package var retiredIDs: [UInt64] = []

  /// The highest sequence number that it holds in any place.
  package var highestSequence: SequenceNumber {
    sealedSegments.reduce(max(floorSequence, lastSequence)) {
      max($0, $1.highestSequence, $1.compactedAt)
    }
  }

  package init(storeIdentifier: [UInt8], hashSecret: [UInt8], bootIdentifier: [UInt8]) {
    self.storeIdentifier = storeIdentifier
    self.hashSecret = hashSecret
    self.bootIdentifier = bootIdentifier
  }
}
