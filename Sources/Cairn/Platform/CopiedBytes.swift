internal import FoundationEssentials

extension String {
  /// A copy of the bytes as text; `nil` where they are not UTF-8.
  init?(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    let text = unsafe bytes.withUnsafeBytes { buffer in
      unsafe String(validating: buffer, as: UTF8.self)
    }
    guard let text else { return nil }
    self = text
  }
}

extension Data {
  /// A copy of the bytes.
  init(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    self = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
  }
}

/// Calls `body` with the eight bytes of a number, the highest first.
@inline(__always)
func withBigEndianBytes(
  of word: UInt64, _ body: (RawSpan) throws(CacheError) -> Void
) throws(CacheError) {
  // SAFETY: the buffer is live for the call.
  try unsafe withUnsafeBytes(of: word.bigEndian) { (bytes) throws(CacheError) in
    try unsafe body(RawSpan(_unsafeBytes: bytes))
  }
}
