internal import CCairn

/// The processor's CRC32C instructions.
enum HardwareCRC32C {
  /// Whether this processor has the instructions.
  @inline(__always) static var isSupported: Bool { cairn_crc32c_is_supported() }

  /// Updates the register `state` with the bytes.
  @inline(__always)
  static func update(_ state: UInt32, with bytes: RawSpan) -> UInt32 {
    // SAFETY: reads exactly the span's bytes.
    unsafe bytes.withUnsafeBytes { unsafe cairn_crc32c(state, $0.baseAddress, $0.count) }
  }

  /// Copies the bytes, and updates the register `state` with them in the same pass.
  static func update(_ state: inout UInt32, copying bytes: RawSpan) -> [UInt8] {
    // SAFETY: reads exactly the span's bytes, and writes as many into memory that has room for
    // them, before setting their count.
    unsafe [UInt8](unsafeUninitializedCapacity: bytes.byteCount) { buffer, count in
      unsafe bytes.withUnsafeBytes {
        state = unsafe cairn_crc32c_copy(state, buffer.baseAddress, $0.baseAddress, $0.count)
      }
      count = bytes.byteCount
    }
  }

  /// The same, to the start of `target`.
  @_lifetime(target: copy target)
  static func update(
    _ state: inout UInt32, copying bytes: RawSpan, to target: inout MutableRawSpan
  ) {
    precondition(bytes.byteCount <= target.byteCount)
    // SAFETY: reads exactly the span's bytes, and writes as many, in bounds by the check above.
    unsafe target.withUnsafeMutableBytes { target in
      unsafe bytes.withUnsafeBytes {
        state = unsafe cairn_crc32c_copy(state, target.baseAddress, $0.baseAddress, $0.count)
      }
    }
  }

  /// Updates the register `state` with the eight bytes of a little-endian integer.
  @inline(__always)
  static func update(_ state: UInt32, with word: UInt64) -> UInt32 {
    cairn_crc32c_word(state, word)
  }
}
