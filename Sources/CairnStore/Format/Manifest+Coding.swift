// Layout, little-endian; Docs/FileFormat.md has the table.
//
//     0        8       10      12     16           …                                   end-4
//     ┌────────┬───────┬───────┬──────┬────────────┬──────────────────────────────────┬───────┐
//     │ magic  │ major │ minor │ size │ fixed part │ open │ sealed │ pending │ retired │ CRC   │
//     └────────┴───────┴───────┴──────┴────────────┴──────────────────────────────────┴───────┘

extension Manifest {
  /// The bytes of the store's UUID.
  package static let identifierRange = 16..<32
  package static let nextIDOffset = 40
  package static let lastSequenceOffset = 72
  private static let fixedByteCount = 136
  private static let openByteCount = 24
  private static let sealedByteCount = 48
  /// Far more than the largest store needs. Limits how much is read.
  package static let maximumByteCount = 64 << 20

  package func encoded() -> [UInt8] {
    let byteCount =
      Self.fixedByteCount + openSegments.count * Self.openByteCount
      + sealedSegments.count * Self.sealedByteCount + (pendingIDs.count + retiredIDs.count) * 8 + 4
    var bytes: [UInt8] = []
    bytes.reserveCapacity(byteCount)
    bytes.append(contentsOf: Self.magic)
    bytes.append(littleEndian: FormatVersion.major)
    bytes.append(littleEndian: FormatVersion.minor)
    bytes.append(littleEndian: UInt32(byteCount))
    bytes.append(contentsOf: storeIdentifier)
    bytes.append(littleEndian: generation)
    bytes.append(littleEndian: nextID)
    bytes.append(contentsOf: hashSecret)
    bytes.append(littleEndian: floorSequence)
    bytes.append(littleEndian: lastSequence)
    bytes.append(littleEndian: checkpointID)
    bytes.append(littleEndian: lastTime.millisecondsSinceEpoch)
    bytes.append(contentsOf: bootIdentifier)
    bytes.append(littleEndian: UInt32(isClean ? 1 : 0))
    bytes.append(littleEndian: UInt32(openSegments.count))
    bytes.append(littleEndian: UInt32(sealedSegments.count))
    bytes.append(littleEndian: UInt32(pendingIDs.count))
    bytes.append(littleEndian: UInt32(retiredIDs.count))
    bytes.append(littleEndian: checkpointChecksum)
    for segment in openSegments {
      bytes.append(littleEndian: segment.id.rawValue)
      bytes.append(littleEndian: segment.salt)
      bytes.append(littleEndian: UInt64(segment.byteCount))
    }
    for segment in sealedSegments {
      bytes.append(littleEndian: segment.id.rawValue)
      bytes.append(littleEndian: segment.salt)
      bytes.append(littleEndian: UInt64(segment.byteCount))
      bytes.append(littleEndian: segment.lowestSequence)
      bytes.append(littleEndian: segment.highestSequence)
      bytes.append(littleEndian: segment.compactedAt)
    }
    for id in pendingIDs + retiredIDs { bytes.append(littleEndian: id) }
    bytes.append(littleEndian: CRC32C.checksum(of: bytes.rawSpan))
    return bytes
  }

  /// Reads a manifest from all the bytes of its file.
  ///
  /// - Throws: `corrupt` with the offset of the damage, or `unsupportedVersion`.
  package init(decoding bytes: RawSpan) throws(StoreError) {
    func corrupt(_ offset: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(Corruption(file: FileName.manifest, offset: offset, cause: cause))
    }
    guard bytes.byteCount >= Self.fixedByteCount + 4 else { throw corrupt(0, .fileTooShort) }
    guard bytes.extracting(0..<8).copied() == Self.magic else {
      throw corrupt(0, .badMagic)
    }
    // Check the version before the size: another version may keep the size elsewhere.
    let major = bytes.load(UInt16.self, at: 8)
    let checksumOffset = bytes.byteCount - 4
    let isIntact =
      CRC32C.checksum(of: bytes.extracting(0..<checksumOffset))
      == bytes.load(UInt32.self, at: checksumOffset)
    guard major == FormatVersion.major || !isIntact else {
      throw .unsupportedVersion(file: FileName.manifest, major: Int(major))
    }
    guard Int(bytes.load(UInt32.self, at: 12)) == bytes.byteCount else {
      throw corrupt(12, .badLength)
    }
    guard isIntact, major == FormatVersion.major else { throw corrupt(0, .badChecksum) }

    self.init(
      storeIdentifier: bytes.extracting(Self.identifierRange).copied(),
      hashSecret: bytes.extracting(48..<64).copied(),
      bootIdentifier: bytes.extracting(96..<112).copied())
    generation = bytes.load(UInt64.self, at: 32)
    nextID = bytes.load(UInt64.self, at: Self.nextIDOffset)
    floorSequence = bytes.load(UInt64.self, at: 64)
    lastSequence = bytes.load(UInt64.self, at: Self.lastSequenceOffset)
    checkpointID = bytes.load(UInt64.self, at: 80)
    lastTime = Timestamp(millisecondsSinceEpoch: bytes.load(Int64.self, at: 88))
    isClean = bytes.load(UInt32.self, at: 112) & 1 == 1
    checkpointChecksum = bytes.load(UInt32.self, at: 132)
    let counts = (0..<4).map { Int(bytes.load(UInt32.self, at: 116 + 4 * $0)) }
    let expected =
      Self.fixedByteCount + counts[0] * Self.openByteCount + counts[1] * Self.sealedByteCount
      + (counts[2] + counts[3]) * 8 + 4
    guard expected == bytes.byteCount else { throw corrupt(116, .badLength) }

    var offset = Self.fixedByteCount
    func next() -> UInt64 {
      defer { offset += 8 }
      return bytes.load(UInt64.self, at: offset)
    }
    for _ in 0..<counts[0] {
      openSegments.append(
        OpenSegment(
          id: SegmentID(rawValue: next()), salt: next(), byteCount: Int(clamping: next())))
    }
    for _ in 0..<counts[1] {
      sealedSegments.append(
        SealedSegment(
          id: SegmentID(rawValue: next()), salt: next(), byteCount: Int(clamping: next()),
          lowestSequence: next(), highestSequence: next(), compactedAt: next()))
    }
    for _ in 0..<counts[2] { pendingIDs.append(next()) }
    for _ in 0..<counts[3] { retiredIDs.append(next()) }

    // A valid checksum does not prove that the fields make sense.
    let ids = openSegments.map(\.id) + sealedSegments.map(\.id)
    guard Set(ids).count == ids.count, ids.allSatisfy({ $0.rawValue < nextID }) else {
      throw corrupt(Self.fixedByteCount, .badHeader)
    }
    let sequences =
      [floorSequence, lastSequence, nextID]
      + sealedSegments.flatMap { [$0.lowestSequence, $0.highestSequence, $0.compactedAt] }
    guard sequences.allSatisfy({ $0 <= FormatVersion.highestSequence }) else {
      throw corrupt(Self.nextIDOffset, .badHeader)
    }
    let lengths = SegmentHeader.byteCount...FormatVersion.highestOffset
    guard sealedSegments.allSatisfy({ lengths.contains($0.byteCount) }),
      openSegments.allSatisfy({ lengths.contains($0.byteCount) || !isClean && $0.byteCount == 0 })
    else { throw corrupt(Self.fixedByteCount, .badLength) }
  }
}
