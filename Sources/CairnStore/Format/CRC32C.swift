/// CRC32C (Castagnoli; polynomial 0x1EDC6F41, reflected; RFC 3720): the checksum of every byte on
/// disk. It detects accidents, not attacks.
///
/// Uses the processor's CRC instructions if it has them, and tables otherwise. Both give the same
/// results.
package struct CRC32C: Sendable {
  /// The shift register: the checksum so far, inverted.
  private var register: UInt32 = ~0

  package init() {}

  /// The checksum of all bytes so far.
  package var value: UInt32 { ~register }

  @inline(__always)
  package mutating func update(_ bytes: RawSpan) {
    register =
      HardwareCRC32C.isSupported
      ? HardwareCRC32C.update(register, with: bytes)
      : PortableCRC32C.update(register, with: bytes)
  }

  /// Copies the bytes and updates the checksum with them: one pass over memory instead of two.
  package mutating func update(copying bytes: RawSpan) -> [UInt8] {
    guard HardwareCRC32C.isSupported else {
      update(bytes)
      return bytes.copied()
    }
    return HardwareCRC32C.update(&register, copying: bytes)
  }

  /// Copies the bytes to the start of `target`, and updates the checksum with them in one pass.
  @_lifetime(target: copy target)
  package mutating func update(copying bytes: RawSpan, to target: inout MutableRawSpan) {
    guard HardwareCRC32C.isSupported else {
      target.copy(bytes, to: 0)
      return update(bytes)
    }
    HardwareCRC32C.update(&register, copying: bytes, to: &target)
  }

  /// Updates the checksum with the eight bytes of the little-endian integer.
  @inline(__always)
  package mutating func update(_ word: UInt64) {
    register =
      HardwareCRC32C.isSupported
      ? HardwareCRC32C.update(register, with: word)
      : PortableCRC32C.update(register, with: word)
  }

  @inline(__always)
  package static func checksum(of bytes: RawSpan) -> UInt32 {
    var checksum = CRC32C()
    checksum.update(bytes)
    return checksum.value
  }
}

/// CRC32C with eight 256-word tables, eight bytes a step (Kounavis and Berry, 2005).
package enum PortableCRC32C {
  /// `tables[k * 256 + b]` is the register after byte `b` and `k` zero bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var register = UInt32(byte)
      for _ in 0..<8 { register = register >> 1 ^ (register & 1 == 0 ? 0 : 0x82F6_3B78) }
      tables[byte] = register
    }
    for index in 256..<(8 * 256) {
      let before = tables[index - 256]
      tables[index] = before >> 8 ^ tables[Int(before & 0xFF)]
    }
    return tables
  }()

  package static func update(_ register: UInt32, with bytes: RawSpan) -> UInt32 {
    var register = register
    var offset = 0
    while offset + 8 <= bytes.byteCount {
      register = update(register, with: bytes.load(UInt64.self, at: offset))
      offset += 8
    }
    while offset < bytes.byteCount {
      let byte = bytes.load(UInt8.self, at: offset)
      register = register >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: register) ^ byte)]
      offset += 1
    }
    return register
  }

  package static func update(_ register: UInt32, with word: UInt64) -> UInt32 {
    let mixed = word ^ UInt64(register)
    var result: UInt32 = 0
    for position in 0..<8 {
      let byte = Int(UInt8(truncatingIfNeeded: mixed >> UInt64(8 * position)))
      result ^= tables[(7 - position) * 256 + byte]
    }
    return result
  }
}
