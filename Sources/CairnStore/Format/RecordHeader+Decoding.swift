extension RecordHeader {
  /// Reads the fields at the start of `bytes`, or returns `nil` if no record of up to `limit` bytes
  /// can have them. Does not verify the checksum; `hasValidChecksum` does.
  ///
  /// Never traps, whatever the bytes are. The lengths of a decoded header are within `limit`, so
  /// their sums cannot overflow.
  @inline(__always)
  package init?(decoding bytes: RawSpan, limit: Int) {
    guard bytes.byteCount >= Self.fixedByteCount else { return nil }
    let kindAndFlags = bytes.load(UInt16.self, at: 22)
    guard let kind = RecordKind(rawValue: UInt8(truncatingIfNeeded: kindAndFlags)) else {
      return nil
    }
    self.init(
      kind: kind, flags: RecordFlags(rawValue: UInt8(truncatingIfNeeded: kindAndFlags >> 8)))
    headerChecksum = bytes.load(UInt32.self, at: 0)
    valueChecksum = bytes.load(UInt32.self, at: 4)
    sequenceDelta = bytes.load(UInt32.self, at: 8)
    writtenDelta = bytes.load(UInt32.self, at: 12)
    valueByteCount = Int(bytes.load(UInt32.self, at: 16))
    keyByteCount = Int(bytes.load(UInt16.self, at: 20))
    if !flags.isEmpty {
      guard decodeOptionalFields(bytes) else { return nil }
    }
    switch kind {
    case .put: guard keyByteCount > 0 else { return nil }
    case .tombstone: guard keyByteCount > 0, valueByteCount == 0 else { return nil }
    case .roll: guard keyByteCount == 0, valueByteCount == 0, flags.isEmpty else { return nil }
    }
    guard byteCount <= limit else { return nil }
  }

  private mutating func decodeOptionalFields(_ bytes: RawSpan) -> Bool {
    guard flags.isSubset(of: .known), fieldByteCount <= bytes.byteCount else { return false }
    var offset = Self.fixedByteCount
    func next<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type) -> Value {
      defer { offset += MemoryLayout<Value>.size }
      return bytes.load(type, at: offset)
    }
    if flags.contains(.expiry) { expires = next(Int64.self) }
    if flags.contains(.idleLimit) { idleLimit = next(UInt64.self) }
    if flags.contains(.cost) { cost = next(UInt64.self) }
    if flags.contains(.metadata) { metadataByteCount = Int(next(UInt16.self)) }
    if flags.contains(.batch) {
      batchIndex = next(UInt32.self)
      batchCount = next(UInt32.self)
      guard batchIndex < batchCount else { return false }
    }
    if flags.contains(.syncMark) { syncMark = next(UInt64.self) }
    return true
  }

  /// Whether the header checksum is correct for a record at `offset` of the segment with this seed.
  /// `bytes` begins with the record and contains at least its head.
  @inline(__always)
  package func hasValidChecksum(_ bytes: RawSpan, at offset: Int, seed: CRC32C) -> Bool {
    Self.checksum(ofHead: bytes.extracting(0..<headByteCount), at: offset, seed: seed)
      == headerChecksum
  }

  /// The header checksum of the head (fields, key and metadata) of a record at `offset`.
  @inline(__always)
  package static func checksum(ofHead head: RawSpan, at offset: Int, seed: CRC32C) -> UInt32 {
    var checksum = seed
    checksum.update(UInt64(offset))
    checksum.update(head.extracting(4..<head.byteCount))
    return checksum.value
  }
}
