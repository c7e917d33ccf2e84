/// The first bytes of a segment.
///
///     0        8       10      12         16     32    40     48             56         64      68
///     ┌────────┬───────┬───────┬──────────┬──────┬─────┬──────┬──────────────┬──────────┬───────┬─────┐
///     │ magic  │ major │ minor │ reserved │ UUID │ id  │ salt │ baseSequence │ baseTime │ CRC   │ 0   │
///     └────────┴───────┴───────┴──────────┴──────┴─────┴──────┴──────────────┴──────────┴───────┴─────┘
///
/// The salt is random. The file may receive blocks of an older segment, and the salt makes that
/// segment's records invalid here. The sequence numbers and times of records are relative to the
/// two bases.
package struct SegmentHeader: Sendable, Hashable {
  package static let byteCount = 72
  package static let identifierOffset = 16
  package static let baseSequenceOffset = 48
  private static let saltOffset = 40
  private static let baseTimeOffset = 56
  private static let checksumOffset = 64
  /// A byte with the high bit set, the name, CR LF and a DOS end-of-file character: these detect
  /// transfers that mangle text (as in PNG).
  package static let magic: [UInt8] = [0x8B, 0x43, 0x52, 0x4E, 0x53, 0x0D, 0x0A, 0x1A]  // "CRNS"

  package var storeIdentifier: [UInt8]
  package var id: SegmentID
  package var salt: UInt64
  /// No record in the segment has a lower sequence number.
  package var baseSequence: SequenceNumber
  /// Seconds since the Unix epoch. No record in the segment was written earlier.
  package var baseTime: Int64

  package init(
    storeIdentifier: [UInt8], id: SegmentID, salt: UInt64, baseSequence: SequenceNumber,
    baseTime: Int64
  ) {
    self.storeIdentifier = storeIdentifier
    self.id = id
    self.salt = salt
    self.baseSequence = baseSequence
    self.baseTime = baseTime
  }

  /// The base time for a header made now, limited to the valid range.
  package static func baseTime(for now: Timestamp) -> Int64 {
    min(max(now.millisecondsSinceEpoch / 1000, -baseTimeLimit), baseTimeLimit)
  }

  /// Times further from the epoch, in seconds, are refused.
  private static let baseTimeLimit: Int64 = 1 << 50

  package func encoded() -> [UInt8] {
    var bytes = Self.magic
    bytes.append(littleEndian: FormatVersion.major)
    bytes.append(littleEndian: FormatVersion.minor)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(contentsOf: storeIdentifier)
    bytes.append(littleEndian: id.rawValue)
    bytes.append(littleEndian: salt)
    bytes.append(littleEndian: baseSequence)
    bytes.append(littleEndian: baseTime)
    bytes.append(littleEndian: CRC32C.checksum(of: bytes.rawSpan))
    bytes.append(littleEndian: UInt32(0))
    return bytes
  }

  /// - Throws: `corrupt` naming the file, or `unsupportedVersion`.
  package init(decoding bytes: RawSpan, file: String) throws(StoreError) {
    guard bytes.byteCount >= Self.byteCount else {
      throw .corrupt(Corruption(file: file, offset: 0, cause: .fileTooShort))
    }
    guard bytes.extracting(0..<8).copied() == Self.magic else {
      throw .corrupt(Corruption(file: file, offset: 0, cause: .badMagic))
    }
    let checksum = bytes.load(UInt32.self, at: Self.checksumOffset)
    guard CRC32C.checksum(of: bytes.extracting(0..<Self.checksumOffset)) == checksum else {
      throw .corrupt(Corruption(file: file, offset: 0, cause: .badChecksum))
    }
    let major = bytes.load(UInt16.self, at: 8)
    guard major == FormatVersion.major else {
      throw .unsupportedVersion(file: file, major: Int(major))
    }
    storeIdentifier = Self.identifier(in: bytes)
    id = SegmentID(rawValue: bytes.load(UInt64.self, at: 32))
    salt = Self.salt(in: bytes)
    baseSequence = bytes.load(UInt64.self, at: Self.baseSequenceOffset)
    baseTime = bytes.load(Int64.self, at: Self.baseTimeOffset)
    guard (1...FormatVersion.highestSequence).contains(baseSequence),
      id.rawValue < FormatVersion.highestSequence,
      baseTime.magnitude <= Self.baseTimeLimit.magnitude
    else { throw .corrupt(Corruption(file: file, offset: 32, cause: .badHeader)) }
    guard bytes.load(UInt32.self, at: 68) == 0 else {
      throw .corrupt(Corruption(file: file, offset: 68, cause: .badPadding))
    }
  }

  /// Reconstructs a damaged header from fields known from other sources. The checksum then verifies
  /// the rest.
  ///
  /// - Parameters:
  ///   - raw: the bytes of the damaged header.
  ///   - baseSequence: the base sequence number, or `nil` to take the one in the bytes.
  package init?(
    restoring raw: RawSpan, storeIdentifier: [UInt8], id: SegmentID, salt: UInt64,
    baseSequence: SequenceNumber? = nil
  ) {
    let header = SegmentHeader(
      storeIdentifier: storeIdentifier, id: id, salt: salt,
      baseSequence: baseSequence ?? raw.load(UInt64.self, at: Self.baseSequenceOffset),
      baseTime: raw.load(Int64.self, at: Self.baseTimeOffset))
    let encoded = header.encoded()
    let checksum = encoded.rawSpan.load(UInt32.self, at: Self.checksumOffset)
    guard checksum == raw.load(UInt32.self, at: Self.checksumOffset),
      let decoded = try? SegmentHeader(decoding: encoded.rawSpan, file: "")
    else { return nil }
    self = decoded
  }

  /// The store's identifier in the bytes of a header, damaged or not.
  package static func identifier(in raw: RawSpan) -> [UInt8] {
    raw.extracting(identifierOffset..<32).copied()
  }

  /// The salt in the bytes of a header, damaged or not.
  package static func salt(in raw: RawSpan) -> UInt64 { raw.load(UInt64.self, at: saltOffset) }

  /// The checksum of the salt and the id. The header checksum of every record continues from it, so
  /// a record written elsewhere is not valid here.
  package var recordSeed: CRC32C { Self.recordSeed(salt: salt, id: id) }

  package static func recordSeed(salt: UInt64, id: SegmentID) -> CRC32C {
    var seed = CRC32C()
    seed.update(salt)
    seed.update(id.rawValue)
    return seed
  }
}

/// The format version that this code writes. It reads every minor version of the same major
/// version, and refuses all others.
package enum FormatVersion {
  package static let major: UInt16 = 1
  package static let minor: UInt16 = 0
  package static let text = "\(major).\(minor)"
  /// No sequence number or id can be higher. The bound keeps sums of forged numbers from
  /// overflowing. At a million writes a second, it is reached after 146,000 years.
  package static let highestSequence: SequenceNumber = 1 << 62
  /// A session that writes begins with no higher number. Half of the numbers are reserved for the
  /// session: the next open must accept what it wrote.
  package static let writableLimit: SequenceNumber = highestSequence / 2
  /// The maximum length of a file, in bytes. This bound has the same purpose.
  package static let highestOffset = 1 << 40
}
