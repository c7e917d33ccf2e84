package import CairnStore

/// Corrects the checksums of an encoding, as someone who knows the format would, to reach the code
/// behind the checks.
package enum ChecksumRepair {
  package static func manifest(_ bytes: inout [UInt8], size: Bool) {
    guard bytes.count >= 20 else { return }
    if size { bytes.set(UInt64(bytes.count), at: 12, count: 4) }
    bytes.set(checksum(bytes[..<(bytes.count - 4)]), at: bytes.count - 4, count: 4)
  }

  package static func segmentHeader(_ bytes: inout [UInt8]) {
    guard bytes.count >= SegmentHeader.byteCount else { return }
    bytes.set(checksum(bytes[..<64]), at: 64, count: 4)
  }

  /// Repairs the record at an offset of `bytes`, which is at `place` of its segment, and returns
  /// its size; `nil` if there is none.
  package static func record(
    _ bytes: inout [UInt8], at offset: Int = 0, place: Int, seed: CRC32C, header: Bool = true,
    value: Bool = true
  ) -> Int? {
    let limit = bytes.count - offset
    let fields = RecordHeader(
      decoding: bytes.rawSpan.extracting(offset..<bytes.count), limit: limit)
    guard let fields else { return nil }
    if value {
      let range = fields.valueRange
      bytes.set(
        checksum(bytes[(offset + range.lowerBound)..<(offset + range.upperBound)]), at: offset + 4,
        count: 4)
    }
    if header {
      let sum = RecordHeader.checksum(
        ofHead: bytes.rawSpan.extracting(offset..<(offset + fields.headByteCount)), at: place,
        seed: seed)
      bytes.set(UInt64(sum), at: offset, count: 4)
    }
    return fields.byteCount
  }

  /// Repairs the header and every record of a segment, even after holes.
  ///
  /// - Parameter unrepaired: which record keeps its header checksum, counted from 1.
  package static func segment(_ bytes: inout [UInt8], values: Bool, unrepaired: Int) {
    segmentHeader(&bytes)
    guard bytes.count >= SegmentHeader.byteCount else { return }
    var seed = CRC32C()
    seed.update(bytes.number(at: 40, count: 8))
    seed.update(bytes.number(at: 32, count: 8))
    var offset = SegmentHeader.byteCount
    var number = 0
    while offset < bytes.count {
      number += 1
      let byteCount = record(
        &bytes, at: offset, place: offset, seed: seed, header: number != unrepaired, value: values)
      if byteCount == nil { number -= 1 }
      offset += byteCount ?? 8
    }
  }

  /// Repairs the checksums of a checkpoint, of its shards first.
  ///
  /// - Parameter shape: whether to also correct its size, its number of entries and where its
  ///   shards begin, as far as these follow from other numbers.
  package static func checkpoint(_ bytes: inout [UInt8], shape: Bool) {
    guard bytes.count >= Checkpoint.fixedByteCount else { return }
    let size = Checkpoint.headerByteCount(
      samples: Int(bytes.number(at: 72, count: 4)), segments: Int(bytes.number(at: 76, count: 4)))
    guard size <= bytes.count else { return }
    if shape { bytes.set(UInt64(size), at: 12, count: 4) }
    let table = size - 8 - Checkpoint.shardCount * Checkpoint.shardByteCount
    var start = size
    var entryCount: UInt64 = 0
    for place in stride(from: table, to: size - 8, by: Checkpoint.shardByteCount) {
      let count = bytes.number(at: place + 8, count: 4)
      let byteCount = Int(count) * Checkpoint.entryByteCount
      if shape { bytes.set(UInt64(start), at: place, count: 8) }
      let offset = bytes.number(at: place, count: 8)
      if offset <= UInt64(bytes.count), byteCount <= bytes.count - Int(offset) {
        let sum = checksum(bytes[Int(offset)..<(Int(offset) + byteCount)])
        bytes.set(sum, at: place + 16, count: 4)
      }
      start += byteCount
      entryCount += count
    }
    if shape { bytes.set(entryCount, at: 64, count: 8) }
    let oldestEnd =
      start + Int(bytes.number(at: size - 8, count: 4)) * Checkpoint.oldestByteCount
    if oldestEnd > start, oldestEnd + 4 <= bytes.count {
      bytes.set(checksum(bytes[start..<oldestEnd]), at: oldestEnd, count: 4)
    }
    bytes.set(checksum(bytes[..<(size - 4)]), at: size - 4, count: 4)
  }

  private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    UInt64(CRC32C.checksum(of: Array(bytes).rawSpan))
  }
}
