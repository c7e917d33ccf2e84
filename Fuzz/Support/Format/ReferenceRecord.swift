import CairnStore

/// A record as section 6 of the document describes it, parsed as simply as possible and without the
/// store's decoder, which must agree with it.
package struct ReferenceRecord: Hashable {
  package var offset = 0
  package var kind: UInt8 = 0
  package var flags: UInt8 = 0
  package var sequenceDelta: UInt64 = 0
  package var expires: Int64?
  package var idleLimit: UInt64?
  package var cost: UInt64 = 0
  package var batchIndex: UInt64 = 0
  package var batchCount: UInt64 = 0
  package var syncMark: UInt64 = 0
  package var headEnd = 0
  package var end = 0
  package var key: [UInt8] = []
  package var metadata: [UInt8] = []
  package var value: [UInt8] = []
  package var hasValidValue = false

  package var isRoll: Bool { kind == 3 }
  package var isInBatch: Bool { flags & 0x10 != 0 }

  /// The sizes of the optional fields by the bits of their flags.
  private static let optionalSizes = [8, 8, 8, 2, 8, 8]

  /// The valid record at an offset, or `nil`.
  ///
  /// - Parameters:
  ///   - place: its offset in the segment, if `bytes` is not the whole segment.
  ///   - checksummed: the number of bytes over which checksums of heads were computed.
  package init?(
    _ bytes: [UInt8], at offset: Int, place: Int? = nil, salt: UInt64, id: UInt64,
    checksummed: inout Int
  ) {
    guard offset + 24 <= bytes.count else { return nil }
    self.offset = offset
    kind = bytes[offset + 22]
    flags = bytes[offset + 23]
    guard (1...3).contains(kind), flags < 0x40 else { return nil }
    sequenceDelta = bytes.number(at: offset + 8, count: 4)
    let valueSize = Int(bytes.number(at: offset + 16, count: 4))
    let keySize = Int(bytes.number(at: offset + 20, count: 2))
    var position = offset + 24
    var metadataSize = 0
    for (bit, size) in Self.optionalSizes.enumerated() where flags & 1 << UInt8(bit) != 0 {
      guard position + size <= bytes.count else { return nil }
      let number = bytes.number(at: position, count: size)
      switch bit {
      case 0: expires = Int64(bitPattern: number)
      case 1: idleLimit = number
      case 2: cost = number
      case 3: metadataSize = Int(number)
      case 4:
        batchIndex = number & 0xFFFF_FFFF
        batchCount = number >> 32
        if batchIndex >= batchCount { return nil }
      case 5: syncMark = number
      default: break
      }
      position += size
    }
    switch kind {
    case 1: if keySize == 0 { return nil }
    case 2: if keySize == 0 || valueSize != 0 { return nil }
    default: if keySize != 0 || valueSize != 0 || flags != 0 { return nil }
    }
    headEnd = position + keySize + metadataSize
    let valueEnd = headEnd + valueSize
    end = (valueEnd + 7) / 8 * 8
    guard end <= bytes.count else { return nil }

    checksummed += headEnd - offset
    var seed: [UInt8] = []
    seed.append(littleEndian: salt)
    seed.append(littleEndian: id)
    seed.append(littleEndian: UInt64(place ?? offset))
    let register = PortableCRC32C.update(~0, with: seed.rawSpan)
    let checksum = ~PortableCRC32C.update(
      register, with: bytes.rawSpan.extracting((offset + 4)..<headEnd))
    guard UInt64(checksum) == bytes.number(at: offset, count: 4) else { return nil }
    key = Array(bytes[position..<(position + keySize)])
    metadata = Array(bytes[(position + keySize)..<headEnd])
    value = Array(bytes[headEnd..<valueEnd])
    let sum = CRC32C.checksum(of: value.rawSpan)
    hasValidValue = UInt64(sum) == bytes.number(at: offset + 4, count: 4)
  }
}
