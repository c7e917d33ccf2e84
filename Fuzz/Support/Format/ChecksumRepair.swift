package import CairnStore

/// Makes the checksums of an encoding right, as someone would who knows the format, so that what
/// lies behind them is reached.
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

  /// Repairs the record at an offset of `bytes`, which stands at `place` of its segment, and
  /// returns its size; `nil` where there is none.
  package static func record(
    _ bytes: inout [UInt8], at offset: Int = 0, place: Int, seed: CRC32C, header: Bool = true,
    value: Bool = true
  ) -> Int? {
    let limit = bytes.count - offset
    let fields = bytes.withSpan {
      RecordHeader(decoding: $0.extracting(offset..<$0.byteCount), limit: limit)
    }
    guard let fields else { return nil }
    if value {
      let range = fields.valueRange
      bytes.set(
        checksum(bytes[(offset + range.lowerBound)..<(offset + range.upperBound)]), at: offset + 4,
        count: 4)
    }
    if header {
      let sum = bytes.withSpan {
        RecordHeader.checksum(
          ofHead: $0.extracting(offset..<(offset + fields.headByteCount)), at: place, seed: seed)
      }
      bytes.set(UInt64(sum), at: offset, count: 4)
    }
    return fields.byteCount
  }

  /// Repairs the header and every record of a segment, also behind holes.
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

  private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    UInt64(Array(bytes).withSpan { CRC32C.checksum(of: $0) })
  }
}
