/// The records of a batch, encoded for the log.
@usableFromInline
struct BatchRecords: ~Copyable {
  /// Facts about a record, available without reading its bytes.
  struct Operation: BitwiseCopyable {
    var hash: UInt64
    /// The offset of its record in the batch.
    var offset: Int
    /// The size of its record.
    var byteCount: Int
    /// The chunk that contains the record's head, and the head's offset there.
    fileprivate var chunk: Int32
    fileprivate var position: Int32
    fileprivate var fieldByteCount: UInt8
    var isPut: Bool
    fileprivate var canExpire: Bool
    fileprivate var keyByteCount: UInt16
    fileprivate var metadataByteCount: UInt16

    fileprivate var headByteCount: Int {
      Int(fieldByteCount) + Int(keyByteCount) + Int(metadataByteCount)
    }
  }

  /// What a key must have when the batch is appended.
  struct Requirement {
    var key: [UInt8]
    var hash: UInt64
    var expectation: Expectation
  }

  /// A part of the records' bytes. A head is never split.
  private struct Chunk {
    /// The chunk's offset in the batch.
    var offset: Int
    /// The chunk's bytes, followed by zeros as room for more.
    var bytes: [UInt8] = []
    var byteCount = 0
    /// The index in `values` of the value that is this chunk, or `nil` if `bytes` contains the
    /// chunk.
    var value: Int?
  }

  /// A chunk with several records grows up to this size.
  private static let chunkByteCount = 1 << 20
  /// A value of at least this size is a chunk of its own. The batch keeps it without a copy if it
  /// can.
  @inlinable static var keptByteCount: Int { 64 << 10 }

  /// The value itself, if the batch can keep it.
  @usableFromInline
  static func kept(_ value: some ByteSource) -> (any ImmutableBytes)? {
    value as? any ImmutableBytes
  }

  /// The bytes, without what is known only when the batch is written: sequence numbers, time,
  /// header checksums and the number of operations.
  private var chunks: [Chunk] = []
  /// The values that are chunks of their own.
  private var values: [any ImmutableBytes] = []
  /// The total size of the records.
  private(set) var byteCount = 0
  /// Whether the batch only removes keys. It may then use the room reserved for removals.
  private(set) var isRemoval = true
  private(set) var operations: [Operation] = []
  private(set) var requirements: [Requirement] = []
  /// The last of the first `indexedCount` operations on each key. Blind batches need no such index.
  private var lastNumbers: [[UInt8]: Int] = [:]
  private var indexedCount = 0
  private var usage = SegmentUsage.Sum()
  private let limits: WriteLimits
  private let hash: SipHash
  private let now: Timestamp

  init(limits: WriteLimits, hash: SipHash, now: Timestamp) {
    self.limits = limits
    self.hash = hash
    self.now = now
  }

  /// Adds a put or, without a value, a tombstone.
  ///
  /// - Parameter source: the value itself, if it is large and the batch can keep it.
  @usableFromInline
  mutating func add(
    key: RawSpan, value: RawSpan?, of source: (any ImmutableBytes)? = nil, options: EntryOptions
  ) throws(StoreError) {
    var header =
      if let value {
        try limits.putHeader(key: key, value: value, options: options, now: now)
      } else {
        try limits.tombstoneHeader(key: key)
      }
    header.flags.insert(.batch)
    header.batchIndex = UInt32(operations.count)
    // Replaced by `seal`. Until then, the head can be decoded.
    header.batchCount = .max
    // The first record always has a sync mark, so that its size does not depend on when it is
    // written.
    if operations.isEmpty { header.flags.insert(.syncMark) }
    if value != nil { try limits.checkSize(of: header) }
    let (size, head) = (header.byteCount, header.headByteCount)
    guard byteCount + size <= limits.batchByteLimit, operations.count < Int(Int32.max) else {
      throw .tooLarge("batch", byteCount: byteCount + size, limit: limits.batchByteLimit)
    }
    let isPut = value != nil
    let value = if let value { value } else { RawSpan() }
    let hasOwnChunk = value.byteCount >= Self.keptByteCount
    let range = makeRoom(hasOwnChunk ? head : size)
    let number = chunks.count - 1
    chunks[number].bytes.withMutableSpan(in: range) { bytes in
      let metadata = options.metadataBytes.rawSpan
      if hasOwnChunk {
        header.encodeHead(key: key, metadata: metadata, into: &bytes)
      } else {
        header.encode(key: key, metadata: metadata, value: value, into: &bytes)
      }
    }
    if hasOwnChunk {
      let kept: any ImmutableBytes = if let source { source } else { value.copied() }
      addChunk(kept, byteCount: value.byteCount, padding: size - head - value.byteCount)
    }
    operations.append(
      Operation(
        hash: hash.hash(key), offset: byteCount, byteCount: size, chunk: Int32(number),
        position: Int32(range.lowerBound), fieldByteCount: UInt8(header.fieldByteCount),
        isPut: isPut, canExpire: header.canExpire,
        keyByteCount: UInt16(header.keyByteCount),
        metadataByteCount: UInt16(header.metadataByteCount)))
    usage.add(header, byteCount: size, number: operations.count - 1)
    if isPut { isRemoval = false }
    byteCount += size
  }

  mutating func require(_ expectation: Expectation, ofKey key: RawSpan) throws(StoreError) {
    try limits.checkKey(key)
    requirements.append(
      Requirement(key: key.copied(), hash: hash.hash(key), expectation: expectation))
  }

  // MARK: Reading

  /// The last operation on a key, or `nil` if the batch does not change it.
  mutating func lastOperation(onKey key: [UInt8]) throws(StoreError) -> Operation? {
    while indexedCount < operations.count {
      let key = try withKey(of: operations[indexedCount]) { $0.copied() }
      lastNumbers[key] = indexedCount
      indexedCount += 1
    }
    return lastNumbers[key].map { operations[$0] }
  }

  /// What a put makes of a key. Its version is 0.
  func entry(of put: Operation) -> ByteEntry {
    let bytes = chunks[Int(put.chunk)].bytes
    let record = bytes.rawSpan.extracting(Int(put.position)..<bytes.count)
    guard let header = RecordHeader(decoding: record, limit: .max) else {
      preconditionFailure("a batch encodes its own records")
    }
    let value: [UInt8]
    if header.valueByteCount >= Self.keptByteCount {
      let next = chunks[Int(put.chunk) + 1]
      value = next.value.map { values[$0].withBytes { $0.copied() } } ?? []
    } else {
      value = record.extracting(header.valueRange).copied()
    }
    return ByteEntry(
      key: record.extracting(header.keyRange).copied(), value: value,
      metadata: record.extracting(header.metadataRange).copied(),
      info: header.info(version: 0, written: now))
  }

  /// Extends the last chunk, or begins one, and returns the new bytes' range in it.
  @inline(__always)
  private mutating func makeRoom(_ count: Int) -> Range<Int> {
    let hasRoom = chunks.last.map { $0.byteCount + count <= $0.bytes.count } ?? false
    if !hasRoom { extendLastChunk(by: count) }
    let number = chunks.count - 1
    let start = chunks[number].byteCount
    chunks[number].byteCount = start + count
    return start..<(start + count)
  }

  @inline(never)
  private mutating func extendLastChunk(by count: Int) {
    let isFull = chunks.last.map { $0.byteCount > 0 && $0.byteCount + count > Self.chunkByteCount }
    if isFull ?? true { chunks.append(Chunk(offset: byteCount)) }
    let number = chunks.count - 1
    let old = chunks[number].bytes.count
    let more = max(chunks[number].byteCount + count - old, min(old, Self.chunkByteCount - old), 512)
    chunks[number].bytes.append(contentsOf: repeatElement(0, count: more))
  }

  /// Adds a value after the head of its record, and a chunk that begins with the padding.
  private mutating func addChunk(_ value: any ImmutableBytes, byteCount: Int, padding: Int) {
    let offset = chunks[chunks.count - 1].offset + chunks[chunks.count - 1].byteCount
    chunks.append(Chunk(offset: offset, byteCount: byteCount, value: values.count))
    values.append(value)
    chunks.append(Chunk(offset: offset + byteCount))
    _ = makeRoom(padding)
  }

  // MARK: Writing

  /// Completes the records for a batch that begins at `start` in a segment with this header.
  mutating func seal(
    at start: Int, in segment: SegmentHeader, firstSequence: SequenceNumber, written: Timestamp,
    syncMark: Int
  ) {
    let seed = segment.recordSeed
    var stamp = RecordHeader(kind: .put)
    stamp.stamp(firstSequence, written: written, in: segment)
    stamp.batchCount = UInt32(operations.count)
    for index in operations.indices {
      let operation = operations[index]
      let range = Int(operation.position)..<(Int(operation.position) + operation.headByteCount)
      let mark = index == 0 ? UInt64(syncMark) : nil
      let copy = stamp
      chunks[Int(operation.chunk)].bytes.withMutableSpan(in: range) { head in
        copy.encodeBatchFields(
          fieldByteCount: Int(operation.fieldByteCount), syncMark: mark, into: &head)
        let checksum = RecordHeader.checksum(
          ofHead: head.bytes, at: start + operation.offset, seed: seed)
        head.store(checksum, at: 0)
      }
      stamp.sequenceDelta &+= 1
    }
  }

  /// Counts the records in the usage of their segment.
  ///
  /// - Parameter isLive: whether the puts count as live.
  func count(
    in usage: SegmentUsage, at start: Int, firstSequence: SequenceNumber, isLive: Bool
  ) {
    usage.add(
      self.usage, firstSequence: firstSequence, count: operations.count, end: start + byteCount,
      isLive: isLive)
  }

  /// Calls `body` with the offset and the bytes of each chunk, in order.
  func forEachChunk(
    _ body: (Int, RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) {
    for chunk in chunks where chunk.byteCount > 0 {
      let source: any ImmutableBytes = chunk.value.map { values[$0] } ?? chunk.bytes
      try source.withBytes { (bytes) throws(StoreError) in
        try body(chunk.offset, bytes.extracting(0..<chunk.byteCount))
      }
    }
  }

  // MARK: Publishing

  /// Calls `body` with the key of an operation.
  @inline(__always)
  func withKey<Result>(
    of operation: Operation, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let start = Int(operation.position) + Int(operation.fieldByteCount)
    let bytes = chunks[Int(operation.chunk)].bytes
    return try body(bytes.rawSpan.extracting(start..<(start + Int(operation.keyByteCount))))
  }

  /// The deadline of an operation's entry, accessed at `now`, or `nil` if the entry cannot expire.
  @inline(__always)
  func deadline(of operation: Operation, accessed now: Timestamp) -> Deadline? {
    operation.canExpire ? readDeadline(of: operation, accessed: now) : nil
  }

  @inline(never)
  private func readDeadline(of operation: Operation, accessed now: Timestamp) -> Deadline? {
    let bytes = chunks[Int(operation.chunk)].bytes
    let record = bytes.rawSpan.extracting(Int(operation.position)..<bytes.count)
    return RecordHeader(decoding: record, limit: .max)?.deadline { now }
  }
}
