/// The records of a batch, in the form that the log will have.
@usableFromInline
struct BatchRecords: ~Copyable {
  struct Operation {
    var header: RecordHeader
    /// The offset of its record in `bytes`.
    var offset: Int
    var hash: UInt64
  }

  /// The bytes, with zeros in the fields that are known only at the write: sequence numbers, time
  /// and header checksums.
  private(set) var bytes: [UInt8] = []
  /// The number of bytes that the records take.
  private(set) var byteCount = 0
  /// Whether it only removes, so that it may use the same reserved room as a removal.
  private(set) var isRemoval = true
  var operations: [Operation] = []
  private let limits: WriteLimits
  private let hash: SipHash
  private let now: Timestamp

  init(limits: WriteLimits, hash: SipHash, now: Timestamp) {
    self.limits = limits
    self.hash = hash
    self.now = now
  }

  /// Adds a put or, without a value, a tombstone.
  @usableFromInline
  mutating func add(
    key: RawSpan, value: RawSpan?, options: EntryOptions
  ) throws(StoreError) {
    var header =
      if let value {
        try limits.putHeader(key: key, value: value, options: options, now: now)
      } else {
        try limits.tombstoneHeader(key: key)
      }
    header.flags.insert(.batch)
    header.batchIndex = UInt32(operations.count)
    // The first record always has a sync mark, so that its size does not depend on when it is
    // written.
    if operations.isEmpty { header.flags.insert(.syncMark) }
    if value != nil { try limits.checkSize(of: header) }
    let offset = byteCount
    let total = offset + header.byteCount
    guard total <= limits.batchByteLimit, operations.count < Int(Int32.max) else {
      throw .batchTooLarge(byteCount: total, limit: limits.batchByteLimit)
    }
    if total > bytes.count {
      let more = max(total - bytes.count, min(bytes.count, 1 << 20), 512)
      bytes.append(contentsOf: repeatElement(0, count: more))
    }
    byteCount = total
    bytes.withMutableSpan(in: offset..<total) { record in
      options.metadataBytes.withSpan { metadata in
        if let value {
          header.encode(key: key, metadata: metadata, value: value, into: &record)
        } else {
          header.encode(key: key, metadata: metadata, value: RawSpan(), into: &record)
        }
      }
    }
    if value != nil { isRemoval = false }
    operations.append(Operation(header: header, offset: offset, hash: hash.hash(key)))
  }

  /// Completes the records for a batch that begins at `start` in a segment with this header.
  mutating func seal(
    at start: Int, in segment: SegmentHeader, firstSequence: SequenceNumber, written: Timestamp,
    syncMark: Int
  ) {
    let seed = segment.recordSeed
    for index in operations.indices {
      operations[index].header.stamp(
        firstSequence + UInt64(index), written: written, in: segment)
      operations[index].header.batchCount = UInt32(operations.count)
      if index == 0 { operations[index].header.syncMark = UInt64(syncMark) }
      seal(index, at: start, seed: seed)
    }
  }

  /// Counts the records in the usage of their segment.
  ///
  /// - Parameter isLive: whether its puts count as live.
  func count(
    in usage: SegmentUsage, at start: Int, firstSequence: SequenceNumber, isLive: Bool
  ) {
    for (index, operation) in operations.enumerated() {
      usage.add(
        operation.header, sequence: firstSequence + UInt64(index),
        end: start + operation.offset + operation.header.byteCount,
        isLive: isLive && operation.header.kind == .put)
    }
  }

  /// Updates the bytes of a record from its header and adds the checksum, for a batch that begins
  /// at `start` in the segment.
  private mutating func seal(_ index: Int, at start: Int, seed: CRC32C) {
    let operation = operations[index]
    let range = operation.offset..<(operation.offset + operation.header.byteCount)
    bytes.withMutableSpan(in: range) { record in
      operation.header.encodeFields(into: &record)
      operation.header.seal(&record, at: start + operation.offset, seed: seed)
    }
  }
}
