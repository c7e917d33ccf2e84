package import CairnStore

/// Valid encodings, with the places of the numbers in them.
package struct EncodingGenerator {
  package struct Encoding {
    package var bytes: [UInt8]
    package var fields: [EncodedField]
  }

  package var random: FuzzRandom

  package init(random: FuzzRandom) { self.random = random }

  // MARK: Manifests

  package mutating func manifest() -> (value: Manifest, encoding: Encoding) {
    var manifest = Manifest(
      storeIdentifier: random.bytes(count: 16), hashSecret: random.bytes(count: 16),
      bootIdentifier: random.bytes(count: 16))
    manifest.generation = random.next()
    manifest.floorSequence = random.next() >> 3
    manifest.lastSequence = random.next() >> 3
    manifest.checkpointID = random.next()
    manifest.checkpointChecksum = UInt32(truncatingIfNeeded: random.next())
    manifest.lastTime = Timestamp(millisecondsSinceEpoch: Int64(bitPattern: random.next()))
    manifest.isClean = random.once(in: 2)
    var nextID = UInt64(1 + random.below(1000))
    func id() -> SegmentID {
      defer { nextID += 1 }
      return SegmentID(rawValue: nextID)
    }
    for _ in 0..<random.below(4) {
      let isUnknown = !manifest.isClean && random.once(in: 2)
      manifest.openSegments.append(
        Manifest.OpenSegment(
          id: id(), salt: random.next(), byteCount: isUnknown ? 0 : 72 + random.below(1 << 40 - 72))
      )
    }
    for _ in 0..<random.below(4) {
      manifest.sealedSegments.append(
        Manifest.SealedSegment(
          id: id(), salt: random.next(), byteCount: 72 + random.below(1 << 40 - 72),
          lowestSequence: random.next() >> 3, highestSequence: random.next() >> 3,
          compactedAt: random.next() >> 3))
    }
    for _ in 0..<random.below(3) { manifest.pendingIDs.append(random.next()) }
    for _ in 0..<random.below(3) { manifest.retiredIDs.append(random.next()) }
    manifest.nextID = nextID
    var fields = [
      (8, 2), (10, 2), (12, 4), (32, 8), (40, 8), (64, 8), (72, 8), (80, 8), (88, 8), (112, 4),
      (116, 4), (120, 4), (124, 4), (128, 4), (132, 4),
    ].map { EncodedField($0, $1) }
    let bytes = manifest.encoded()
    for offset in stride(from: 136, to: bytes.count - 4, by: 8) {
      fields.append(EncodedField(offset, 8))
    }
    return (manifest, Encoding(bytes: bytes, fields: fields))
  }

  // MARK: Segments

  private static let headerFields = [
    (8, 2), (10, 2), (12, 4), (16, 8), (32, 8), (40, 8), (48, 8), (56, 8), (64, 4), (68, 4),
  ].map { EncodedField($0, $1) }

  package mutating func segmentHeader(
    storeIdentifier: [UInt8]? = nil, id: UInt64? = nil
  ) -> (value: SegmentHeader, encoding: Encoding) {
    let header = SegmentHeader(
      storeIdentifier: storeIdentifier ?? random.bytes(count: 16),
      id: SegmentID(rawValue: id ?? random.next() >> 2), salt: random.next(),
      baseSequence: 1 + random.next() >> UInt64(3 + random.below(60)),
      baseTime: Int64(random.below(1 << 50)) - 1 << 49)
    return (header, Encoding(bytes: header.encoded(), fields: Self.headerFields))
  }

  // MARK: Records

  package mutating func recordHeader() -> RecordHeader {
    var header = RecordHeader(kind: random.once(in: 4) ? .tombstone : .put)
    header.sequenceDelta = UInt32(random.below(1 << 16))
    header.writtenDelta = UInt32(random.below(1 << 16))
    header.keyByteCount = 1 + random.below(random.once(in: 8) ? 300 : 4)
    header.valueByteCount =
      header.kind == .put ? random.below(random.once(in: 8) ? 2000 : 12) : 0
    for flag in [RecordFlags.expiry, .idleLimit, .cost, .metadata] where random.once(in: 6) {
      header.flags.insert(flag)
    }
    if header.flags.contains(.expiry) {
      header.expires =
        SegmentCheck.now.millisecondsSinceEpoch + Int64(random.below(5)) - 2
    }
    if header.flags.contains(.idleLimit) { header.idleLimit = UInt64(random.below(3)) }
    if header.flags.contains(.cost) { header.cost = random.next() }
    if header.flags.contains(.metadata) { header.metadataByteCount = random.below(40) }
    return header
  }

  /// Encodes a record whose sizes are set, with arbitrary bytes for its parts.
  package mutating func encode(
    _ header: inout RecordHeader, at place: Int, seed: CRC32C
  ) -> Encoding {
    // Few keys, so that records replace each other.
    let key = [UInt8](repeating: UInt8(random.below(4)), count: header.keyByteCount)
    let metadata = random.bytes(count: header.metadataByteCount)
    let value = random.bytes(count: header.valueByteCount)
    header.valueChecksum = CRC32C.checksum(of: value.rawSpan)
    var bytes = [UInt8](repeating: 0, count: header.byteCount)
    let encoded = header
    bytes.withMutableSpan { bytes in
      encoded.encode(
        key: key.rawSpan, metadata: metadata.rawSpan, value: value.rawSpan, into: &bytes)
      encoded.seal(&bytes, at: place, seed: seed)
    }
    header.headerChecksum = UInt32(bytes.number(at: 0, count: 4))
    return Encoding(bytes: bytes, fields: Self.fields(of: header))
  }

  private static func fields(of header: RecordHeader) -> [EncodedField] {
    var fields = [(0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 2), (22, 1), (23, 1)]
    var offset = RecordHeader.fixedByteCount
    let sizes: [(RecordFlags, [Int])] = [
      (.expiry, [8]), (.idleLimit, [8]), (.cost, [8]), (.metadata, [2]), (.batch, [4, 4]),
      (.syncMark, [8]),
    ]
    for (flag, sizes) in sizes where header.flags.contains(flag) {
      for size in sizes {
        fields.append((offset, size))
        offset += size
      }
    }
    return fields.map { EncodedField($0, $1) }
  }

  /// A segment as a store writes it: units, perhaps a roll, then nothing, zeros or remains.
  package mutating func segment(
    storeIdentifier: [UInt8]? = nil, id: UInt64? = nil, first: UInt64? = nil
  ) -> (encoding: Encoding, next: UInt64) {
    var (header, encoding) = segmentHeader(storeIdentifier: storeIdentifier, id: id)
    if let first {
      header.baseSequence = first
      encoding.bytes = header.encoded()
    }
    var delta: UInt32 = 0
    var mark = 0
    func append(_ record: RecordHeader, _ generator: inout EncodingGenerator) {
      var record = record
      record.sequenceDelta = delta
      let start = encoding.bytes.count
      let encoded = generator.encode(&record, at: start, seed: header.recordSeed)
      encoding.bytes += encoded.bytes
      encoding.fields += encoded.fields.map { EncodedField(start + $0.offset, $0.size) }
      if record.kind != .roll { delta += 1 }
    }
    for _ in 0..<random.below(6) {
      let isBatch = random.once(in: 3)
      let count = isBatch ? 1 + random.below(4) : 1
      if random.once(in: 3) { mark = encoding.bytes.count }
      for index in 0..<count {
        var record = recordHeader()
        if isBatch {
          record.flags.insert(.batch)
          record.batchIndex = UInt32(index)
          record.batchCount = UInt32(count)
        }
        if index == 0, isBatch || random.once(in: 3) {
          record.flags.insert(.syncMark)
          record.syncMark = UInt64(random.once(in: 2) ? mark : 0)
        }
        append(record, &self)
      }
    }
    if random.once(in: 3) { append(RecordHeader(kind: .roll), &self) }
    switch random.below(4) {
    case 0: encoding.bytes += [UInt8](repeating: 0, count: 8 * random.below(64))
    case 1: encoding.bytes += random.bytes(count: random.below(64))
    default: break
    }
    return (encoding, header.baseSequence + UInt64(delta))
  }

  /// One segment, or two consecutive ones.
  package mutating func segments() -> Encoding {
    let identifier = random.bytes(count: 16)
    let id = UInt64(random.below(1000))
    var (encoding, next) = segment(storeIdentifier: identifier, id: id)
    if random.once(in: 4) {
      let start = encoding.bytes.count
      let second = segment(storeIdentifier: identifier, id: id + 1, first: next).encoding
      encoding.bytes += second.bytes
      encoding.fields += second.fields.map { EncodedField(start + $0.offset, $0.size) }
      next = 0
    }
    return encoding
  }
}
