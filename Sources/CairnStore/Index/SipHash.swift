/// SipHash-1-3 (Aumasson and Bernstein, 2012) with a 128-bit secret. An attacker who does not know
/// the secret cannot choose keys that collide.
package struct SipHash: Sendable {
  private let first: UInt64
  private let second: UInt64

  /// - Parameter secret: 16 bytes.
  package init(secret: [UInt8]) {
    precondition(secret.count == 16)
    (first, second) = (
      secret.rawSpan.load(UInt64.self, at: 0), secret.rawSpan.load(UInt64.self, at: 8)
    )
  }

  @inline(__always)
  package func hash(_ bytes: RawSpan) -> UInt64 {
    var v0 = first ^ 0x736f_6d65_7073_6575
    var v1 = second ^ 0x646f_7261_6e64_6f6d
    var v2 = first ^ 0x6c79_6765_6e65_7261
    var v3 = second ^ 0x7465_6462_7974_6573

    @inline(__always)
    func round() {
      v0 = v0 &+ v1
      v1 = (v1 << 13 | v1 >> 51) ^ v0
      v0 = v0 << 32 | v0 >> 32
      v2 = v2 &+ v3
      v3 = (v3 << 16 | v3 >> 48) ^ v2
      v0 = v0 &+ v3
      v3 = (v3 << 21 | v3 >> 43) ^ v0
      v2 = v2 &+ v1
      v1 = (v1 << 17 | v1 >> 47) ^ v2
      v2 = v2 << 32 | v2 >> 32
    }

    let count = bytes.byteCount
    var offset = 0
    while offset &+ 8 <= count {
      let word = bytes.load(UInt64.self, at: offset)
      v3 ^= word
      round()
      v0 ^= word
      offset &+= 8
    }
    var last = UInt64(truncatingIfNeeded: count) << 56
    let rest = UInt64(truncatingIfNeeded: count &- offset)
    if rest > 0, count > 8 {
      last |= bytes.load(UInt64.self, at: count &- 8) >> (64 &- 8 &* rest)
    } else {
      var shift: UInt64 = 0
      while offset < count {
        last |= UInt64(bytes.load(UInt8.self, at: offset)) << shift
        offset &+= 1
        shift &+= 8
      }
    }
    v3 ^= last
    round()
    v0 ^= last
    v2 ^= 0xff
    round()
    round()
    round()
    return v0 ^ v1 ^ v2 ^ v3
  }
}
