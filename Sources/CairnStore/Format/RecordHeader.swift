/// The kind of a record.
package enum RecordKind: UInt8, Sendable {
  /// A key and its value.
  case put = 1
  /// The removal of a key.
  case tombstone = 2
  /// The end of a rolled segment.
  case roll = 3
}

/// The optional fields after the fixed part of a record, in this order.
package struct RecordFlags: OptionSet, Sendable, Hashable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Expiry: milliseconds since the Unix epoch, i64.
  package static let expiry = RecordFlags(rawValue: 1 << 0)
  /// Idle limit: milliseconds, u64.
  package static let idleLimit = RecordFlags(rawValue: 1 << 1)
  /// Cost, u64.
  package static let cost = RecordFlags(rawValue: 1 << 2)
  /// Length of the metadata: u16.
  package static let metadata = RecordFlags(rawValue: 1 << 3)
  /// Index in an atomic batch, u32, and the batch's record count, u32.
  package static let batch = RecordFlags(rawValue: 1 << 4)
  /// Sync mark, u64. When the record was written, everything before this offset of the segment was
  /// durable, and so were all earlier segments. 0: unknown.
  package static let syncMark = RecordFlags(rawValue: 1 << 5)

  package static let known: RecordFlags = [
    .expiry, .idleLimit, .cost, .metadata, .batch, .syncMark,
  ]
}

/// The fixed part of a record and its optional fields. The header checksum makes the lengths
/// trustworthy before a read uses them.
///
///     0           4          8               12             16          20         22     23      24
///     ┌───────────┬──────────┬───────────────┬──────────────┬───────────┬──────────┬──────┬───────┬──
///     │ headerCRC │ valueCRC │ sequenceDelta │ writtenDelta │ valueSize │ keySize  │ kind │ flags │ …
///     └───────────┴──────────┴───────────────┴──────────────┴───────────┴──────────┴──────┴───────┴──
///     … optional fields │ key │ metadata │ value │ zeros to a multiple of 8
///
/// The header checksum covers, in this order: the segment's salt and id and the record's offset (8
/// bytes each), then the record from byte 4 to the end of the metadata. The value has a separate
/// checksum, so that a damaged value affects one key and headers can be read alone.
package struct RecordHeader: Sendable, Hashable {
  package static let fixedByteCount = 24
  /// The fixed part and every optional field.
  package static let maximumFieldByteCount = 24 + 8 + 8 + 8 + 2 + 8 + 8
  /// The size that a sync mark adds to an appended record.
  package static let syncMarkByteCount = 8
  /// The size of a roll record.
  package static let rollByteCount = 24

  package var headerChecksum: UInt32 = 0
  package var valueChecksum: UInt32 = 0
  package var sequenceDelta: UInt32 = 0
  package var writtenDelta: UInt32 = 0
  package var valueByteCount: Int = 0
  package var keyByteCount: Int = 0
  package var kind: RecordKind
  package var flags: RecordFlags = [] {
    didSet { fieldByteCount = Self.fieldByteCount(flags) }
  }
  package var expires: Int64 = 0
  package var idleLimit: UInt64 = 0
  package var cost: UInt64 = 0
  package var metadataByteCount: Int = 0
  package var batchIndex: UInt32 = 0
  package var batchCount: UInt32 = 0
  package var syncMark: UInt64 = 0

  /// Bytes of the fixed part and the optional fields: the offset of the key. Follows from `flags`.
  package private(set) var fieldByteCount = fixedByteCount

  @inline(__always)
  package init(kind: RecordKind, flags: RecordFlags = []) {
    self.kind = kind
    self.flags = flags
    fieldByteCount = Self.fieldByteCount(flags)
  }

  @inline(__always)
  private static func fieldByteCount(_ flags: RecordFlags) -> Int {
    flags.isEmpty ? fixedByteCount : fixedByteCount + optionalByteCount(flags)
  }

  @inline(__always)
  package static func optionalByteCount(_ flags: RecordFlags) -> Int {
    let words = flags.subtracting(.metadata).rawValue.nonzeroBitCount
    return words * 8 + (flags.contains(.metadata) ? 2 : 0)
  }

  /// Bytes before the value.
  package var headByteCount: Int {
    @inline(__always) get { fieldByteCount + keyByteCount + metadataByteCount }
  }

  /// Bytes of the whole record, including padding.
  package var byteCount: Int {
    @inline(__always) get { (headByteCount + valueByteCount + 7) & ~7 }
  }

  /// The bytes of the key, relative to the record.
  package var keyRange: Range<Int> {
    @inline(__always) get { fieldByteCount..<(fieldByteCount + keyByteCount) }
  }

  package var metadataRange: Range<Int> {
    @inline(__always) get { (headByteCount - metadataByteCount)..<headByteCount }
  }

  package var valueRange: Range<Int> {
    @inline(__always) get { headByteCount..<(headByteCount + valueByteCount) }
  }

  /// Sets the record's number and time, relative to the bases of its segment.
  @inline(__always)
  mutating func stamp(
    _ sequence: SequenceNumber, written: Timestamp, in segment: borrowing SegmentHeader
  ) {
    sequenceDelta = UInt32(sequence - segment.baseSequence)
    let seconds = written.millisecondsSinceEpoch / 1000
    writtenDelta = UInt32(clamping: seconds - segment.baseTime)
  }

  /// Whether the record can expire.
  package var canExpire: Bool {
    // Without a set, which the compiler may make in memory.
    @inline(__always) get { flags.contains(.expiry) || flags.contains(.idleLimit) }
  }
}
