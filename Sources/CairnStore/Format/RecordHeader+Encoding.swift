extension RecordHeader {
  /// Writes the whole record to the start of `bytes`, without the header checksum, which `seal`
  /// adds.
  @_lifetime(bytes: copy bytes)
  @inline(__always)
  package func encode(
    key: RawSpan, metadata: RawSpan, value: RawSpan, into bytes: inout MutableRawSpan
  ) {
    // The padding is a part of the last word. What follows overwrites the rest of that word.
    bytes.store(UInt64(0), at: byteCount - 8)
    encodeHead(key: key, metadata: metadata, into: &bytes)
    bytes.copy(value, to: headByteCount)
  }

  /// Writes fields, key and metadata to the start of `bytes`, without the header checksum.
  @_lifetime(bytes: copy bytes)
  @inline(__always)
  package func encodeHead(key: RawSpan, metadata: RawSpan, into bytes: inout MutableRawSpan) {
    encodeFields(into: &bytes)
    bytes.copy(key, to: fieldByteCount)
    if !metadata.isEmpty { bytes.copy(metadata, to: fieldByteCount + key.byteCount) }
  }

  /// Writes only the fields to the start of `bytes`, without the header checksum.
  @_lifetime(bytes: copy bytes)
  @inline(__always)
  package func encodeFields(into bytes: inout MutableRawSpan) {
    bytes.store(valueChecksum, at: 4)
    bytes.store(sequenceDelta, at: 8)
    bytes.store(writtenDelta, at: 12)
    bytes.store(UInt32(valueByteCount), at: 16)
    bytes.store(UInt16(keyByteCount), at: 20)
    bytes.store(kind.rawValue, at: 22)
    bytes.store(flags.rawValue, at: 23)
    if !flags.isEmpty { encodeOptionalFields(into: &bytes) }
  }

  @_lifetime(bytes: copy bytes)
  private func encodeOptionalFields(into bytes: inout MutableRawSpan) {
    var offset = Self.fixedByteCount
    if flags.contains(.expiry) {
      bytes.store(expires, at: offset)
      offset += 8
    }
    if flags.contains(.idleLimit) {
      bytes.store(idleLimit, at: offset)
      offset += 8
    }
    if flags.contains(.cost) {
      bytes.store(cost, at: offset)
      offset += 8
    }
    if flags.contains(.metadata) {
      bytes.store(UInt16(metadataByteCount), at: offset)
      offset += 2
    }
    if flags.contains(.batch) {
      bytes.store(batchIndex, at: offset)
      bytes.store(batchCount, at: offset + 4)
      offset += 8
    }
    if flags.contains(.syncMark) { bytes.store(syncMark, at: offset) }
  }

  /// Completes the fields of an encoded record of a batch: number, time, batch size and sync mark.
  ///
  /// - Parameters:
  ///   - fieldByteCount: the size of the record's fields.
  ///   - syncMark: the sync mark, or `nil` if the record has no such field.
  @_lifetime(bytes: copy bytes)
  @inline(__always)
  package func encodeBatchFields(
    fieldByteCount: Int, syncMark: UInt64?, into bytes: inout MutableRawSpan
  ) {
    bytes.store(sequenceDelta, at: 8)
    bytes.store(writtenDelta, at: 12)
    var end = fieldByteCount
    if let syncMark {
      end -= 8
      bytes.store(syncMark, at: end)
    }
    bytes.store(batchCount, at: end - 4)
  }

  /// Adds the header checksum of the record at the start of `bytes`, which will be at `offset` in
  /// its segment.
  @_lifetime(bytes: copy bytes)
  @inline(__always)
  package func seal(_ bytes: inout MutableRawSpan, at offset: Int, seed: CRC32C) {
    let checksum = Self.checksum(
      ofHead: bytes.bytes.extracting(0..<headByteCount), at: offset, seed: seed)
    bytes.store(checksum, at: 0)
  }
}
